"""The agent under judgement: its answer lists every word that it has heard, so that loss and doubling can be seen.

A message is a word, and perhaps what to do with it: `w7`, `w7 wait:gate` (wait for a file), `w7 say:20` (twenty pieces
first), `w7 hold:gate` (wait behind them), `w7 pour:64` (so many pieces of 64 KiB), `w7 drip:9000` (so many pieces of a
word), `w7 act:key` (call a tool that needs approval), `w7 crash:always` (end the process at once, as a fault in a
library does). A tool whose key begins with `slow` waits for a gate of that name.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)

PIECE = 64 * 1024
SLOW = "slow"
"""The beginning of the keys with which the tool takes its time."""
_LOOK = 0.004
_PAUSE = 0.01


class Journal:
    """Appends what happens to the agent to a file that all processes share."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def note(self, kind: str, word: str) -> None:
        """Write one line, whole and at once."""
        place = os.open(self._directory / "effects", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(place, f"{kind} {word} {os.getpid()} {time.time()!r}\n".encode())
        finally:
            os.close(place)

    async def gate(self, name: str, word: str) -> None:
        """Wait until the judge opens a gate."""
        self.note("held", word)
        try:
            # Another process opens it, and a file is all that they share.
            while not (self._directory / f"{name}.go").exists():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK)
        except BaseException:
            self.note("interrupted", word)
            raise


class Listener(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A chat client without a model."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        if stream:
            return self._build_response_stream(self._updates(list(messages)))
        return self._whole(list(messages))

    async def _whole(self, messages: list[Message]) -> ChatResponse[Any]:
        contents = [content async for content in self._contents(messages)]
        texts = [one.text or "" for one in contents if one.type == "text"]
        calls = [one for one in contents if one.type != "text"]
        said = calls or [Content.from_text("".join(texts))]
        return ChatResponse(messages=[Message("assistant", said)], response_id=f"r{len(messages)}")

    async def _updates(self, messages: list[Message]) -> AsyncIterator[ChatResponseUpdate]:
        async for content in self._contents(messages):
            yield ChatResponseUpdate(
                role="assistant", contents=[content], response_id="r", message_id=f"m{len(messages)}"
            )

    async def _contents(self, messages: list[Message]) -> AsyncIterator[Content]:
        said = [one.text for one in messages if one.role == "user" and one.text]
        words = [text.split()[0] for text in said]
        own = said[-1].split() if said else [""]
        asked = dict(order.split(":", 1) for order in own[1:])
        if messages[-1].role == "tool":
            results = [str(one.result) for one in messages[-1].contents if one.type == "function_result"]
            yield Content.from_text(json.dumps({"heard": words, "did": results}))
            return
        self._journal.note("heard", own[0])
        if "crash" in asked:
            os.kill(os.getpid(), signal.SIGKILL)
        if "act" in asked:
            arguments = json.dumps({"key": asked["act"]})
            yield Content.from_function_call(f"call-{asked['act']}", "act", arguments=arguments)
            return
        if "wait" in asked:
            await self._journal.gate(asked["wait"], own[0])
        for number in range(int(asked.get("say", "0"))):
            yield Content.from_text(f"p{number} ")
            await asyncio.sleep(_PAUSE)
        if "hold" in asked:
            await self._journal.gate(asked["hold"], own[0])
        for _ in range(int(asked.get("pour", "0"))):
            self._journal.note("poured", own[0])
            yield Content.from_text("x" * PIECE)
        for _ in range(int(asked.get("drip", "0"))):
            self._journal.note("poured", own[0])
            yield Content.from_text("w ")
        yield Content.from_text(json.dumps({"heard": words}))


def agent(directory: Path) -> Agent:
    """Make the agent with its one tool, whose every effect is noted."""
    journal = Journal(directory)

    @tool(approval_mode="always_require")
    async def act(key: str) -> str:
        """Do something that must be done once."""
        if key.startswith(SLOW):
            await journal.gate(key, key)
        journal.note("did", key)
        return key

    return Agent(client=Listener(journal), name="Listener", tools=[act])
