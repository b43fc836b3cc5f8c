"""The wire format of the Chat Completions API: strict for requests, complete for responses."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from frontdesk.http.bodies import NAME

Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
ToolName = Annotated[str, Meta(min_length=1, max_length=64, pattern=NAME)]
Stop = Annotated[list[str], Meta(min_length=1, max_length=4)]
Bias = Annotated[float, Meta(ge=-100, le=100)]


class In(msgspec.Struct, kw_only=True, frozen=True):
    """Base of incoming structs."""


class FunctionIn(In, frozen=True, kw_only=True):
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(In, frozen=True, kw_only=True):
    type: Literal["function"]
    function: FunctionIn


class CustomIn(In, frozen=True, kw_only=True):
    name: ToolName
    description: str | None = None
    format: dict[str, Any] | None = None


class CustomTool(In, frozen=True, kw_only=True):
    type: Literal["custom"]
    custom: CustomIn


class Named(In, frozen=True, kw_only=True):
    name: ToolName


class NamedTool(In, frozen=True, kw_only=True):
    type: Literal["function", "custom"]
    function: Named | None = None
    custom: Named | None = None


class AllowedTools(In, frozen=True, kw_only=True):
    tools: list[NamedTool]
    mode: Literal["auto", "required"] = "auto"


class AllowedChoice(In, frozen=True, kw_only=True):
    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


class JsonSchema(In, frozen=True, kw_only=True):
    name: str
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class ResponseFormat(In, frozen=True, kw_only=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(In, frozen=True, kw_only=True):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class CompletionBody(In, frozen=True, kw_only=True):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    stop: str | Stop | None = None
    seed: int | None = None
    logit_bias: dict[str, Bias] | None = None
    parallel_tool_calls: bool | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    metadata: Metadata | None = None
    user: str | None = None
    service_tier: Literal["auto", "default", "flex", "priority", "scale", "fast", "ultrafast"] | None = None
    safety_identifier: Annotated[str, Meta(max_length=128)] | None = None
    prompt_cache_key: Annotated[str, Meta(max_length=64)] | None = None
    # What can't be done here is refused by its name.
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    store: bool | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None
    functions: list[Any] | None = None
    function_call: Any = None


class Out(msgspec.Struct, kw_only=True):
    """Base of outgoing structs."""


class CalledFunction(Out, kw_only=True, omit_defaults=True):
    """A function call. In a stream chunk, only its new part."""

    name: str | None = None
    arguments: str


class CalledCustom(Out, kw_only=True):
    name: str
    input: str


class ToolCall(Out, kw_only=True, omit_defaults=True):
    """A call of a client tool. `index` is its position in a stream."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: CalledFunction | None = None
    custom: CalledCustom | None = None


class MessageOut(Out, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    tool_calls: list[ToolCall] | msgspec.UnsetType = msgspec.UNSET
    annotations: list[Any] = []


class Choice(Out, kw_only=True):
    index: int = 0
    message: MessageOut
    logprobs: None = None
    finish_reason: str


class Usage(Out, kw_only=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int]


class Completion(Out, kw_only=True):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | msgspec.UnsetType = msgspec.UNSET


class Delta(Out, kw_only=True, omit_defaults=True):
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None


class ChunkChoice(Out, kw_only=True):
    index: int = 0
    delta: Delta
    logprobs: None = None
    finish_reason: str | None = None


class Chunk(Out, kw_only=True):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET


class ErrorOut(Out, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str | None
