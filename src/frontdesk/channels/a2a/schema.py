"""The messages of A2A 1.0 in their JSON form. Unknown fields are ignored, as parsers of ProtoJSON do."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

SUBMITTED = "TASK_STATE_SUBMITTED"
WORKING = "TASK_STATE_WORKING"
COMPLETED = "TASK_STATE_COMPLETED"
FAILED = "TASK_STATE_FAILED"
CANCELED = "TASK_STATE_CANCELED"
INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
REJECTED = "TASK_STATE_REJECTED"
AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"
STATES = (
    "TASK_STATE_UNSPECIFIED",
    SUBMITTED,
    WORKING,
    COMPLETED,
    FAILED,
    CANCELED,
    INPUT_REQUIRED,
    REJECTED,
    AUTH_REQUIRED,
)
"""The states by their number."""
TERMINAL = frozenset((COMPLETED, FAILED, CANCELED, REJECTED))
ROLE_USER, ROLE_AGENT = "ROLE_USER", "ROLE_AGENT"


def format_time(at: float) -> str:
    """Return a time as RFC 3339 with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Number = int | str | None
"""A 32 bit integer, which ProtoJSON also accepts as a string."""


class Given(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Base of messages from clients."""


class PartIn(Given, frozen=True, kw_only=True):
    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: Any = UNSET
    metadata: dict[str, Any] | None = None
    filename: str | None = None
    media_type: str | None = None


class MessageIn(Given, frozen=True, kw_only=True):
    message_id: str | None = None
    context_id: str | None = None
    task_id: str | None = None
    role: str | int | None = None
    parts: list[PartIn] | None = None
    metadata: dict[str, Any] | None = None
    extensions: list[str] | None = None
    reference_task_ids: list[str] | None = None


class AuthenticationIn(Given, frozen=True, kw_only=True):
    scheme: str | None = None
    credentials: str | None = None


class PushConfigIn(Given, frozen=True, kw_only=True):
    tenant: str | None = None
    id: str | None = None
    task_id: str | None = None
    url: str | None = None
    token: str | None = None
    authentication: AuthenticationIn | None = None


class ConfigurationIn(Given, frozen=True, kw_only=True):
    accepted_output_modes: list[str] | None = None
    task_push_notification_config: PushConfigIn | None = None
    history_length: Number = None
    return_immediately: bool | None = None


class SendIn(Given, frozen=True, kw_only=True):
    tenant: str | None = None
    message: MessageIn | None = None
    configuration: ConfigurationIn | None = None
    metadata: dict[str, Any] | None = None


class TaskIn(Given, frozen=True, kw_only=True):
    """`GetTaskRequest`, `CancelTaskRequest` and `SubscribeToTaskRequest`."""

    tenant: str | None = None
    id: str | None = None
    history_length: Number = None


class ListIn(Given, frozen=True, kw_only=True):
    tenant: str | None = None
    context_id: str | None = None
    status: str | int | None = None
    page_size: Number = None
    page_token: str | None = None
    history_length: Number = None
    status_timestamp_after: str | None = None
    include_artifacts: bool | None = None


class PushConfigNameIn(Given, frozen=True, kw_only=True):
    """The requests that name a push config, or the task of several."""

    tenant: str | None = None
    task_id: str | None = None
    id: str | None = None
    page_size: Number = None
    page_token: str | None = None


class CardIn(Given, frozen=True, kw_only=True):
    tenant: str | None = None


class CallIn(Given, frozen=True, kw_only=True):
    """A JSON-RPC request. The id is checked where it is used."""

    jsonrpc: Any = None
    id: Any = None
    method: Any = None
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Shown(msgspec.Struct, kw_only=True, rename="camel"):
    """Base of messages to clients. Unset fields are left out."""


class PartOut(Shown, kw_only=True):
    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    filename: str | UnsetType = UNSET
    media_type: str | UnsetType = UNSET


class MessageOut(Shown, kw_only=True):
    message_id: str
    context_id: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    role: str
    parts: list[PartOut]
    metadata: dict[str, Any] | UnsetType = UNSET
    extensions: list[str] | UnsetType = UNSET
    reference_task_ids: list[str] | UnsetType = UNSET


class StatusOut(Shown, kw_only=True):
    state: str
    message: MessageOut | UnsetType = UNSET
    timestamp: str


class ArtifactOut(Shown, kw_only=True):
    artifact_id: str
    name: str | UnsetType = UNSET
    parts: list[PartOut]
    metadata: dict[str, Any] | UnsetType = UNSET


class TaskOut(Shown, kw_only=True):
    id: str
    context_id: str
    status: StatusOut
    artifacts: list[ArtifactOut] | UnsetType = UNSET
    history: list[MessageOut] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class StatusUpdateOut(Shown, kw_only=True):
    task_id: str
    context_id: str
    status: StatusOut


class ArtifactUpdateOut(Shown, kw_only=True):
    task_id: str
    context_id: str
    artifact: ArtifactOut
    append: bool | UnsetType = UNSET
    last_chunk: bool | UnsetType = UNSET


class AnswerOut(Shown, kw_only=True):
    """`SendMessageResponse` and `StreamResponse`: one of the fields is set."""

    task: TaskOut | UnsetType = UNSET
    message: MessageOut | UnsetType = UNSET
    status_update: StatusUpdateOut | UnsetType = UNSET
    artifact_update: ArtifactUpdateOut | UnsetType = UNSET


class ListOut(Shown, kw_only=True):
    tasks: list[TaskOut]
    next_page_token: str
    page_size: int
    total_size: int


class AuthenticationOut(Shown, kw_only=True):
    scheme: str
    credentials: str | UnsetType = UNSET


class PushConfigOut(Shown, kw_only=True):
    id: str
    task_id: str
    url: str
    token: str | UnsetType = UNSET
    authentication: AuthenticationOut | UnsetType = UNSET
    tenant: str | UnsetType = UNSET


class PushConfigsOut(Shown, kw_only=True):
    configs: list[PushConfigOut]
    next_page_token: str = ""
