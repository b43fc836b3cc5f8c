"""`ScriptedChatClient`: a chat client with scripted responses, for demos and tests without a model."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

Reply = str | Sequence[Content]
Answers = Iterable[Reply] | Callable[[Sequence[Message]], Reply]


class ScriptedChatClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A chat client for an `Agent` that returns scripted replies instead of calling a model.

    `replies` is a list, or a function from the messages to a reply. A reply is a string or a list of contents. Streams
    yield strings word by word. `seen` contains the messages of every call, `options` the options.
    """

    def __init__(self, replies: Answers) -> None:
        super().__init__()
        self._reply = replies if callable(replies) else _one_by_one(replies)
        self.seen: list[list[Message]] = []
        self.options: list[dict[str, Any]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        self.seen.append(list(messages))
        self.options.append(dict(options))
        number = len(self.seen)
        reply = self._reply(messages)
        if stream:
            return self._build_response_stream(_pieces(reply, number), response_format=options.get("response_format"))
        return _whole(reply, number, options.get("response_format"))


def _one_by_one(replies: Iterable[Reply]) -> Callable[[Sequence[Message]], Reply]:
    script = iter(replies)

    def reply(messages: Sequence[Message]) -> Reply:
        for answer in script:
            return answer
        raise AssertionError("the script has no more replies")

    return reply


async def _pieces(reply: Reply, number: int) -> AsyncIterator[ChatResponseUpdate]:
    for content in _contents(reply):
        yield ChatResponseUpdate(
            role="assistant", contents=[content], response_id=f"response_{number}", message_id=f"message_{number}"
        )


async def _whole(reply: Reply, number: int, response_format: Any) -> ChatResponse[Any]:
    contents = [Content.from_text(reply)] if isinstance(reply, str) else list(reply)
    said = [content for content in contents if content.type != "usage"]
    usage = next((content.usage_details for content in contents if content.type == "usage"), None)
    return ChatResponse(
        messages=[Message("assistant", said, message_id=f"message_{number}")],
        response_id=f"response_{number}",
        usage_details=usage,
        response_format=response_format,
    )


def _contents(reply: Reply) -> list[Content]:
    return [Content.from_text(word) for word in split_words(reply)] if isinstance(reply, str) else list(reply)


def split_words(text: str) -> list[str]:
    """Split a text after every space. The joined pieces equal the text."""
    return [word + " " for word in text.split(" ")[:-1]] + [text.split(" ")[-1]]
