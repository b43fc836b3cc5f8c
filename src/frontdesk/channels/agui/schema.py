"""The input of AG-UI 1.0, as far as the channel reads it. Unknown fields are ignored, as the protocol requires."""

from typing import Any, Literal

import msgspec


class _Input(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class DataSource(_Input, frozen=True, kw_only=True, tag_field="type", tag="data"):
    value: str
    mime_type: str


class UrlSource(_Input, frozen=True, kw_only=True, tag_field="type", tag="url"):
    value: str
    mime_type: str | None = None


class FileSource(_Input, frozen=True, kw_only=True, tag_field="type", tag="file"):
    value: str


Source = DataSource | UrlSource | FileSource


class TextPart(_Input, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class ImagePart(_Input, frozen=True, kw_only=True, tag_field="type", tag="image"):
    source: Source


class AudioPart(_Input, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    source: Source


class VideoPart(_Input, frozen=True, kw_only=True, tag_field="type", tag="video"):
    source: Source


class DocumentPart(_Input, frozen=True, kw_only=True, tag_field="type", tag="document"):
    source: Source


class BinaryPart(_Input, frozen=True, kw_only=True, tag_field="type", tag="binary"):
    """The file of clients before 1.0. It has one of `id`, `url` and `data`."""

    mime_type: str
    id: str | None = None
    url: str | None = None
    data: str | None = None
    filename: str | None = None


MediaPart = ImagePart | AudioPart | VideoPart | DocumentPart
Part = TextPart | ImagePart | AudioPart | VideoPart | DocumentPart | BinaryPart
Text = str | list[Part]


class UserMessage(_Input, frozen=True, kw_only=True, tag_field="role", tag="user"):
    id: str
    content: Text


class AssistantMessage(_Input, frozen=True, kw_only=True, tag_field="role", tag="assistant"):
    id: str


class ToolMessage(_Input, frozen=True, kw_only=True, tag_field="role", tag="tool"):
    id: str
    tool_call_id: str
    content: Text
    error: str | None = None


class SystemMessage(_Input, frozen=True, kw_only=True, tag_field="role", tag="system"):
    id: str
    content: Text


class DeveloperMessage(_Input, frozen=True, kw_only=True, tag_field="role", tag="developer"):
    id: str
    content: Text


class ReasoningMessage(_Input, frozen=True, kw_only=True, tag_field="role", tag="reasoning"):
    id: str


class ActivityMessage(_Input, frozen=True, kw_only=True, tag_field="role", tag="activity"):
    id: str


InputMessage = (
    UserMessage | AssistantMessage | ToolMessage | SystemMessage | DeveloperMessage | ReasoningMessage | ActivityMessage
)


class Tool(_Input, frozen=True, kw_only=True):
    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None


class ContextEntry(_Input, frozen=True, kw_only=True):
    description: str
    value: str


class ResumeEntry(_Input, frozen=True, kw_only=True):
    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunInput(_Input, frozen=True, kw_only=True):
    """The body of a run: `RunAgentInput`."""

    thread_id: str
    run_id: str
    messages: list[InputMessage]
    protocol_version: str | None = None
    """Clients before 1.0 send none. They reject a few fields of newer events."""
    state: Any = None
    tools: list[Tool] | None = None
    context: list[ContextEntry] | None = None
    forwarded_props: dict[str, Any] | None = None
    resume: list[ResumeEntry] | None = None


class Interrupt(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An open question, in `RUN_FINISHED` and in the route of a thread."""

    id: str
    reason: str
    message: str
    tool_call_id: str | None = None
    response_schema: dict[str, Any] | None = None
    expires_at: str | None = None
    metadata: dict[str, Any] = {}
