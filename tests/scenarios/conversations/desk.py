"""A host with a Responses and a Conversations door, and the `openai` package's two clients behind one face."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any

from agent_framework import Message

from frontdesk import Channel, HttpAuth
from frontdesk.channels.conversations import ConversationsChannel
from tests.scenarios.responses.cast import build_answering
from tests.scenarios.responses.desk import ANYONE, ResponsesHost
from tests.scenarios.responses.desk import open_client as open_responses

MODEL = "Concierge"


@asynccontextmanager
async def open_client(
    target: Any, *, auth: HttpAuth | None = None, more: Sequence[Channel] = (), **settings: Any
) -> AsyncIterator[ResponsesHost]:
    """A started host; at the end everything that it said is looked at."""
    beside = [ConversationsChannel(auth=auth), *more]
    async with open_responses(target, beside=beside, auth=auth, **settings) as desk:
        yield desk


class AsyncGuest:
    """Speaks with `AsyncOpenAI`."""

    def __init__(self, desk: ResponsesHost, key: str = ANYONE) -> None:
        self.api: Any = desk.client(key)

    async def do(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Calls a method by its name."""
        return await attrgetter(name)(self.api)(*arguments, **options)

    async def items(self, conversation_id: str, **options: Any) -> list[Any]:
        """All items, page by page."""
        return [one async for one in self.api.conversations.items.list(conversation_id, **options)]

    async def ask(self, said: Any, conversation: Any, **options: Any) -> Any:
        """One question in a conversation."""
        return await self.do("responses.create", model=MODEL, input=said, conversation=conversation, **options)

    async def stream(self, said: Any, conversation: Any, **options: Any) -> Any:
        """The response at the end of a stream."""
        events: Any = await self.ask(said, conversation, stream=True, **options)
        return [event async for event in events][-1].response


class SyncGuest(AsyncGuest):
    """Speaks with `OpenAI`, in a thread."""

    def __init__(self, desk: ResponsesHost, key: str = ANYONE) -> None:
        self.api = desk.sync_client(key)

    async def do(self, name: str, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(attrgetter(name)(self.api), *arguments, **options)

    async def items(self, conversation_id: str, **options: Any) -> list[Any]:
        listed = self.api.conversations.items.list
        return await asyncio.to_thread(lambda: list(listed(conversation_id, **options)))

    async def stream(self, said: Any, conversation: Any, **options: Any) -> Any:
        events: Any = await self.ask(said, conversation, stream=True, **options)
        return (await asyncio.to_thread(list, events))[-1].response


GUESTS = [AsyncGuest, SyncGuest]


def user(text: str) -> dict[str, Any]:
    """Words of a user's."""
    return {"type": "message", "role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    """Words of an agent's."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def build_counting() -> Any:
    """An `Agent` that says how much it was told; its client has seen what."""
    return build_answering(lambda messages: [f"{len(messages)} heard"])


def list_heard(target: Any) -> list[str]:
    """What the agent was told last."""
    return [_text(message) for message in target.client.seen[-1]]


def _text(message: Message) -> str:
    return "".join(one.text or "" for one in message.contents if one.type == "text")


def texts(items: list[Any]) -> list[str]:
    """What the messages among items say."""
    return ["".join(part.text for part in one.content) for one in items if one.type == "message"]
