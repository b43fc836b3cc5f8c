"""An agent of the framework that says its first word at once, and the rest when it has heard all."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_framework import Agent, ChatResponseUpdate, Content, Message

from frontdesk.testing import ScriptedChatClient

Repeat = Callable[[str], Awaitable[str]]


class TellingChatClient(ScriptedChatClient):
    """Streams what is made of the last message."""

    def __init__(self, repeat: Repeat) -> None:
        super().__init__([])
        self._repeat = repeat

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        assert stream
        return self._build_response_stream(self._pieces(messages[-1].text))

    async def _pieces(self, text: str) -> AsyncIterator[ChatResponseUpdate]:
        yield _said("heard ")
        yield _said((await self._repeat(text)).removeprefix("heard "))


def _said(text: str) -> ChatResponseUpdate:
    return ChatResponseUpdate(role="assistant", contents=[Content.from_text(text)], message_id="message_1")


def telling(repeat: Repeat) -> Any:
    """Return the agent."""
    return Agent(TellingChatClient(repeat))
