"""An agent of the framework that says its first word at once, and the rest when it has heard all."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_framework import Agent, ChatResponseUpdate, Content, Message

from frontdesk.scripted import ScriptedChatClient

Repeat = Callable[[str], Awaitable[str]]


class TellingChatClient(ScriptedChatClient):
    """Streams what is made of the last message: as a whole, or with a pause before each word."""

    def __init__(self, repeat: Repeat, pause: float) -> None:
        super().__init__([])
        self._repeat = repeat
        self._pause = pause

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        assert stream
        return self._build_response_stream(self._pieces(messages[-1].text))

    async def _pieces(self, text: str) -> AsyncIterator[ChatResponseUpdate]:
        yield _build_update("heard ")
        rest = (await self._repeat(text)).removeprefix("heard ")
        for piece in re.findall(r"\S+\s*", rest) if self._pause else [rest]:
            await asyncio.sleep(self._pause)
            yield _build_update(piece)


def _build_update(text: str) -> ChatResponseUpdate:
    return ChatResponseUpdate(role="assistant", contents=[Content.from_text(text)], message_id="message_1")


def build_agent(repeat: Repeat, pause: float = 0.0) -> Any:
    """Return the agent."""
    return Agent(TellingChatClient(repeat, pause))
