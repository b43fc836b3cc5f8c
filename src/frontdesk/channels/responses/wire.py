"""The bodies of the Responses API: strict in what comes in, complete in what goes out."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
# In Python `$` matches before a newline at the end too, and `\Z` is no part of JSON Schema's dialect.
ToolName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$(?!\n)")]
CallId = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(max_length=10_485_760)]


class In(msgspec.Struct, kw_only=True, frozen=True):
    """Anything that comes in."""


class FunctionToolIn(In, frozen=True, kw_only=True):
    """A function that the client offers."""

    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class CustomToolIn(In, frozen=True, kw_only=True):
    """A tool of the client's that takes a text."""

    type: Literal["custom"]
    name: ToolName
    description: str | None = None
    format: dict[str, Any] | None = None


class NamedTool(In, frozen=True, kw_only=True):
    """One tool, by its name."""

    type: Literal["function", "custom"]
    name: ToolName


class AllowedTools(In, frozen=True, kw_only=True):
    """A choice among some of the tools."""

    type: Literal["allowed_tools"]
    tools: list[NamedTool]
    mode: Literal["auto", "required", "none"] = "auto"


class TextFormat(In, frozen=True, kw_only=True):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class TextIn(In, frozen=True, kw_only=True):
    """The options of the answer's text."""

    format: TextFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningIn(In, frozen=True, kw_only=True):
    """The options of the model's reasoning."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    mode: str | None = None
    context: str | None = None


class ModerationStep(In, frozen=True, kw_only=True):
    """The action on a finding of moderation."""

    mode: Literal["score", "block"]


class ModerationPolicy(In, frozen=True, kw_only=True):
    """The same for what goes in and what comes out."""

    input: ModerationStep | None = None
    output: ModerationStep | None = None


class ModerationIn(In, frozen=True, kw_only=True):
    """Whether somebody looks over what is said."""

    model: str | None = None
    policy: ModerationPolicy | None = None


class CacheOptions(In, frozen=True, kw_only=True):
    """The options of the cache of the model's service."""

    prewarm: bool | None = None


class StreamOptions(In, frozen=True, kw_only=True):
    """The options of the stream."""

    include_obfuscation: bool | None = None


class ConversationIn(In, frozen=True, kw_only=True):
    """The conversation that a response belongs to."""

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
    """The type of a message on a WebSocket; that of `response.create` is a `CreateBody` besides."""

    type: str
    stream_id: str | None = None
    response_id: str | None = None
    previous_response_id: str | None = None
    generate: bool | None = None


class OutputText(msgspec.Struct, kw_only=True):
    """Words of the answer."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Any] = []
    logprobs: list[Any] = []


class Refusal(msgspec.Struct, kw_only=True):
    """Words with which the model declines."""

    type: Literal["refusal"] = "refusal"
    refusal: str


class SummaryText(msgspec.Struct, kw_only=True):
    """A summary of the model's reasoning."""

    type: Literal["summary_text"] = "summary_text"
    text: str


class ReasoningText(msgspec.Struct, kw_only=True):
    """The text of the model's reasoning."""

    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class MessageItem(msgspec.Struct, kw_only=True):
    """A message of the answer."""

    type: Literal["message"] = "message"
    id: str
    status: str
    role: str = "assistant"
    content: list[Any]
    phase: str | msgspec.UnsetType = msgspec.UNSET


class ReasoningItem(msgspec.Struct, kw_only=True):
    """The model's reasoning."""

    type: Literal["reasoning"] = "reasoning"
    id: str
    summary: list[SummaryText]
    content: list[ReasoningText] | msgspec.UnsetType = msgspec.UNSET
    encrypted_content: str | msgspec.UnsetType = msgspec.UNSET


class FunctionCallItem(msgspec.Struct, kw_only=True):
    """A call of the client's own function."""

    type: Literal["function_call"] = "function_call"
    id: str
    call_id: str
    name: str
    arguments: str
    status: str
    namespace: str | msgspec.UnsetType = msgspec.UNSET


class CustomCallItem(msgspec.Struct, kw_only=True):
    """A call of a tool of the client's that takes a text."""

    type: Literal["custom_tool_call"] = "custom_tool_call"
    id: str
    call_id: str
    name: str
    input: str
    status: str
    namespace: str | msgspec.UnsetType = msgspec.UNSET


class ApprovalItem(msgspec.Struct, kw_only=True):
    """A tool call that waits for a human."""

    type: Literal["mcp_approval_request"] = "mcp_approval_request"
    id: str
    name: str
    arguments: str
    server_label: str
    waits_for: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The names of the people who decide, if that is not the caller alone; not of the published schema."""


class HostCallItem(msgspec.Struct, kw_only=True):
    """A tool call that the host has made itself."""

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
    """A picture that was made."""

    type: Literal["image_generation_call"] = "image_generation_call"
    id: str
    status: str
    result: str | None


class CompactionItem(msgspec.Struct, kw_only=True):
    """An item that stands for a compacted conversation."""

    type: Literal["compaction"] = "compaction"
    id: str
    encrypted_content: str


class Usage(msgspec.Struct, kw_only=True):
    """The tokens that the answer has cost."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: dict[str, int]
    output_tokens_details: dict[str, int]


class ResponseOut(msgspec.Struct, kw_only=True):
    """A response: every field that the published schema requires, whether it has a value or not."""

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
    """A compacted conversation."""

    id: str
    object: Literal["response.compaction"] = "response.compaction"
    created_at: int
    output: list[Any]
    usage: Usage


class TextDelta(msgspec.Struct, kw_only=True):
    """A piece of text, by far the most frequent event."""

    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    sequence_number: int
    item_id: str
    output_index: int
    content_index: int
    delta: str
    logprobs: list[Any] = []


class ErrorOut(msgspec.Struct, kw_only=True):
    """An error, in the form of the API."""

    message: str
    type: str
    param: str | None
    code: str | None


class SocketError(msgspec.Struct, kw_only=True):
    """An error, in the form of the WebSocket."""

    type: Literal["error"] = "error"
    status: int
    error: dict[str, Any]
    stream_id: str | msgspec.UnsetType = msgspec.UNSET
