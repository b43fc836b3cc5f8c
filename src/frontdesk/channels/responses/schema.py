"""The wire format of the Responses API: strict for requests, complete for responses."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from frontdesk.http.bodies import NAME

Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
ToolName = Annotated[str, Meta(min_length=1, max_length=64, pattern=NAME)]
CallId = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(max_length=10_485_760)]


class In(msgspec.Struct, kw_only=True, frozen=True):
    """Base of incoming structs."""


class FunctionToolIn(In, frozen=True, kw_only=True):
    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class CustomToolIn(In, frozen=True, kw_only=True):
    type: Literal["custom"]
    name: ToolName
    description: str | None = None
    format: dict[str, Any] | None = None


class NamedTool(In, frozen=True, kw_only=True):
    type: Literal["function", "custom"]
    name: ToolName


class AllowedTools(In, frozen=True, kw_only=True):
    """A choice among some of the tools."""

    type: Literal["allowed_tools"]
    tools: list[NamedTool]
    mode: Literal["auto", "required", "none"] = "auto"


class TextFormat(In, frozen=True, kw_only=True):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class TextIn(In, frozen=True, kw_only=True):
    format: TextFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningIn(In, frozen=True, kw_only=True):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    mode: str | None = None
    context: str | None = None


class ModerationStep(In, frozen=True, kw_only=True):
    mode: Literal["score", "block"]


class ModerationPolicy(In, frozen=True, kw_only=True):
    """The moderation actions for input and output."""

    input: ModerationStep | None = None
    output: ModerationStep | None = None


class ModerationIn(In, frozen=True, kw_only=True):
    model: str | None = None
    policy: ModerationPolicy | None = None


class CacheOptions(In, frozen=True, kw_only=True):
    prewarm: bool | None = None


class StreamOptions(In, frozen=True, kw_only=True):
    include_obfuscation: bool | None = None


class ConversationIn(In, frozen=True, kw_only=True):
    id: str


class CreateBody(In, frozen=True, kw_only=True):
    """`POST /responses`."""

    model: str | None = None
    input: Text | list[dict[str, Any]] | None = None
    previous_response_id: str | None = None
    metadata: Metadata | None = None
    store: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    # From here on, a plain request has nothing; `parse` looks at all of it in one step.
    background: bool | None = None
    conversation: str | ConversationIn | None = None
    instructions: Text | None = None
    include: list[str] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=16)] | None = None
    max_tool_calls: Annotated[int, Meta(ge=1)] | None = None
    parallel_tool_calls: bool | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    text: TextIn | None = None
    reasoning: ReasoningIn | None = None
    truncation: Literal["auto", "disabled"] | None = None
    service_tier: Literal["auto", "default", "flex", "priority", "scale", "fast", "ultrafast"] | None = None
    safety_identifier: Annotated[str, Meta(max_length=128)] | None = None
    prompt_cache_key: Annotated[str, Meta(max_length=64)] | None = None
    # What can't be done here is refused by its name.
    prompt: dict[str, Any] | None = None
    moderation: ModerationIn | None = None
    context_management: list[Any] | None = None
    prompt_cache_options: CacheOptions | None = None
    generate: bool | None = None


class CompactBody(In, frozen=True, kw_only=True):
    """`POST /responses/compact`."""

    model: str | msgspec.UnsetType | None = msgspec.UNSET
    input: Text | list[dict[str, Any]] | None = None
    previous_response_id: str | None = None
    instructions: Text | None = None
    prompt_cache_key: Annotated[str, Meta(max_length=64)] | None = None


class SocketEvent(In, frozen=True, kw_only=True):
    """The type of a WebSocket message. A `response.create` message is also a `CreateBody`."""

    type: str
    stream_id: str | None = None
    response_id: str | None = None
    previous_response_id: str | None = None
    generate: bool | None = None


class OutputText(msgspec.Struct, kw_only=True):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Any] = []
    logprobs: list[Any] = []


class Refusal(msgspec.Struct, kw_only=True):
    type: Literal["refusal"] = "refusal"
    refusal: str


class SummaryText(msgspec.Struct, kw_only=True):
    type: Literal["summary_text"] = "summary_text"
    text: str


class ReasoningText(msgspec.Struct, kw_only=True):
    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class MessageItem(msgspec.Struct, kw_only=True):
    type: Literal["message"] = "message"
    id: str
    status: str
    role: str = "assistant"
    content: list[Any]
    phase: str | msgspec.UnsetType = msgspec.UNSET


class ReasoningItem(msgspec.Struct, kw_only=True):
    type: Literal["reasoning"] = "reasoning"
    id: str
    summary: list[SummaryText]
    content: list[ReasoningText] | msgspec.UnsetType = msgspec.UNSET
    encrypted_content: str | msgspec.UnsetType = msgspec.UNSET


class FunctionCallItem(msgspec.Struct, kw_only=True):
    type: Literal["function_call"] = "function_call"
    id: str
    call_id: str
    name: str
    arguments: str
    status: str
    namespace: str | msgspec.UnsetType = msgspec.UNSET


class CustomCallItem(msgspec.Struct, kw_only=True):
    type: Literal["custom_tool_call"] = "custom_tool_call"
    id: str
    call_id: str
    name: str
    input: str
    status: str
    namespace: str | msgspec.UnsetType = msgspec.UNSET


class ApprovalItem(msgspec.Struct, kw_only=True):
    type: Literal["mcp_approval_request"] = "mcp_approval_request"
    id: str
    name: str
    arguments: str
    server_label: str
    waits_for: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The names of the people who decide, if that is not the caller alone; not of the published schema."""
    waits_for_people: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    """The same people with `id`, `channel` and `verified`; not of the published schema."""


class HostCallItem(msgspec.Struct, kw_only=True):
    type: Literal["mcp_call"] = "mcp_call"
    id: str
    name: str
    arguments: str
    server_label: str
    status: str
    output: str | None = None
    error: Any = None
    approval_request_id: str | None = None


class ImageItem(msgspec.Struct, kw_only=True):
    type: Literal["image_generation_call"] = "image_generation_call"
    id: str
    status: str
    result: str | None


class CompactionItem(msgspec.Struct, kw_only=True):
    """An item that replaces a compacted conversation."""

    type: Literal["compaction"] = "compaction"
    id: str
    encrypted_content: str


class Usage(msgspec.Struct, kw_only=True):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: dict[str, int]
    output_tokens_details: dict[str, int]


class ResponseOut(msgspec.Struct, kw_only=True):
    """A response, with every field that the published schema requires, including empty ones."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: str
    incomplete_details: Any = None
    model: str
    previous_response_id: str | None = None
    conversation: dict[str, str] | None = None
    instructions: str | None = None
    output: list[Any] = []
    error: Any = None
    tools: list[Any] = []
    tool_choice: Any = "auto"
    truncation: str = "disabled"
    parallel_tool_calls: bool = True
    text: Any = None
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    top_logprobs: int = 0
    temperature: float = 1.0
    reasoning: Any = None
    usage: Usage | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    store: bool = True
    background: bool = False
    service_tier: str = "default"
    metadata: Any = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    continued_by: str | msgspec.UnsetType = msgspec.UNSET
    """The response that goes on after somebody else has decided a question of this one; not of the published schema."""
    decisions: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    """The outcomes of the caller's answers to questions of others; not of the published schema."""


class CompactionOut(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["response.compaction"] = "response.compaction"
    created_at: int
    output: list[Any]
    usage: Usage


class TextDelta(msgspec.Struct, kw_only=True):
    """A text delta, the most frequent event."""

    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    sequence_number: int
    item_id: str
    output_index: int
    content_index: int
    delta: str
    logprobs: list[Any] = []


class ErrorOut(msgspec.Struct, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str | None


class FailureOut(msgspec.Struct, kw_only=True):
    """The error of a failed run.

    All failed runs have the same code, because clients use it to decide about retries. The Codex CLI retries after
    `server_error` and all unknown codes, the AI SDK after most codes without `invalid`. After `invalid_prompt`, an API
    code, neither retries and both display the message.
    """

    code: str = "invalid_prompt"
    message: str
    type: str = "server_error"
    param: None = None


class SocketError(msgspec.Struct, kw_only=True):
    type: Literal["error"] = "error"
    status: int
    error: dict[str, Any]
    stream_id: str | msgspec.UnsetType = msgspec.UNSET
