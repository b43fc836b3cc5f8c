"""A chat client without a model: it follows the script, streams word by word and counts words as tokens."""

import asyncio
import json
import re
from collections.abc import AsyncIterable, Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Annotation,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    UsageDetails,
)

from frontdesk.demo.script import Step, next_step
from frontdesk.ids import Ids, RandomIds

MODEL = "marmalade-script"
_WORDS = re.compile(r"\S++\s*+")


class ScriptedClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Answers by rules; `pause` is the time between two words."""

    def __init__(self, *, pause: float = 0.02, ids: Ids | None = None) -> None:
        super().__init__()
        self._pause = pause
        self._ids = ids or RandomIds()

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        step = next_step(messages)
        usage = _usage(messages, step)
        if stream:
            return self._build_response_stream(self._words(step, usage))
        return self._whole(step, usage)

    async def _whole(self, step: Step, usage: UsageDetails) -> ChatResponse:
        text = [Content.from_text(step.text, annotations=_annotations(step))] if step.text else []
        message = Message("assistant", [*text, *_picture(step), *self._call(step)])
        return ChatResponse(messages=message, response_id=self._ids.new("resp"), model=MODEL, usage_details=usage)

    async def _words(self, step: Step, usage: UsageDetails) -> AsyncIterable[ChatResponseUpdate]:
        response, message = self._ids.new("resp"), self._ids.new("msg")
        words = [Content.from_text(word) for word in _WORDS.findall(step.text)]
        if words:
            words[-1].annotations = _annotations(step)
        for content in [*words, *_picture(step), *self._call(step), Content.from_usage(usage)]:
            yield ChatResponseUpdate(
                role="assistant", contents=[content], response_id=response, message_id=message, model=MODEL
            )
            await asyncio.sleep(self._pause)

    def _call(self, step: Step) -> list[Content]:
        if step.tool is None:
            return []
        arguments = json.dumps(dict(step.arguments))
        return [Content.from_function_call(self._ids.new("call"), step.tool, arguments=arguments)]


def _annotations(step: Step) -> list[Annotation] | None:
    return [Annotation(type="citation", title=title, url=url) for title, url in step.sources.items()] or None


def _picture(step: Step) -> list[Content]:
    if step.picture is None:
        return []
    named = {"filename": "sea-view.png"}
    return [Content.from_data(step.picture, media_type="image/png", additional_properties=named)]


def _usage(messages: Sequence[Message], step: Step) -> UsageDetails:
    read = sum(len(message.text.split()) for message in messages)
    written = len(step.text.split()) + len(step.arguments)
    return UsageDetails(input_token_count=read, output_token_count=written, total_token_count=read + written)
