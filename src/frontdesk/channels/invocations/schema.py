"""The wire format of the Invocations API, validated as strictly as documented."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

ID: dict[str, Any] = {"minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9_:-][A-Za-z0-9_.:-]*$"}
"""The pattern that `parse` asks of an id, in the words of the document."""

_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_WORD = "[A-Za-z0-9!#$&^_.+-]{1,127}"

# What `parse` checks itself, to say more clearly what is wrong.
Id = Annotated[str, Meta(extra_json_schema=ID)]
Base64 = Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64", "pattern": _BASE64})]
MediaType = Annotated[str, Meta(extra_json_schema={"pattern": f"^{_WORD}/{_WORD}$"})]
HttpUri = Annotated[str, Meta(extra_json_schema={"pattern": "^https?://"})]


class Body(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Base of incoming bodies. Unknown fields are rejected."""


class TextPart(Body, tag="text", tag_field="type", frozen=True, kw_only=True):
    text: str


class DataPart(Body, tag="data", tag_field="type", frozen=True, kw_only=True):
    """A base64-encoded image, audio or other file."""

    data: Base64
    media_type: MediaType
    name: str | None = None


class UriPart(Body, tag="uri", tag_field="type", frozen=True, kw_only=True):
    """An image, audio or other file that the agent's model may fetch. The host does not fetch it."""

    uri: HttpUri
    media_type: MediaType


Parts = Annotated[list[TextPart | DataPart | UriPart], Meta(min_length=1, max_length=256)]


class Options(Body, frozen=True, kw_only=True):
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    seed: int | None = None
    stop: Annotated[list[str], Meta(max_length=4)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None


class ApprovalAnswer(Body, frozen=True, kw_only=True):
    """A human's decision about a pending tool call."""

    id: Id
    approved: bool
    reason: Annotated[str, Meta(max_length=4096)] | None = None


class Place(Body, frozen=True, kw_only=True):
    """The caller's identity on a channel."""

    channel: Annotated[str, Meta(min_length=1, max_length=256)]
    native_id: Annotated[str, Meta(min_length=1, max_length=1024)]


class Back(Body, tag="originating", tag_field="kind", frozen=True, kw_only=True):
    """Send the answer to the caller. This is the default."""


class Nowhere(Body, tag="none", tag_field="kind", frozen=True, kw_only=True):
    """Keep the answer until it is fetched."""


class Elsewhere(Body, tag_field="kind", frozen=True, kw_only=True):
    """Send the answer to other identities of the caller."""

    echo_input: bool = False
    """Also sends the question there, before the answer."""


class Active(Elsewhere, tag="active", frozen=True, kw_only=True):
    """Send the answer to the caller's last active identity."""


class AllLinked(Elsewhere, tag="all_linked", frozen=True, kw_only=True):
    """Send the answer to all linked identities of the caller."""


class Channels(Elsewhere, tag="channels", frozen=True, kw_only=True):
    """Send the answer to channels by name."""

    channels: Annotated[list[Annotated[str, Meta(min_length=1, max_length=256)]], Meta(min_length=1, max_length=32)]


class Identities(Elsewhere, tag="identities", frozen=True, kw_only=True):
    """Send the answer to specific identities, which must be the caller's own."""

    identities: Annotated[list[Place], Meta(min_length=1, max_length=32)]


Target = Back | Nowhere | Active | AllLinked | Channels | Identities


class InvocationBody(Body, frozen=True, kw_only=True):
    """`POST /invocations`: one of `message`, `input`, `approval` and `responses`, or `checkpoint_id` by itself."""

    message: str | Parts | UnsetType = UNSET
    input: Any | UnsetType = UNSET
    approval: ApprovalAnswer | UnsetType = UNSET
    responses: Annotated[dict[str, Any], Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    checkpoint_id: Id | None = None
    session_id: Id | None = None
    stream: bool = False
    background: bool = False
    response_target: Target | None = None
    options: Options | None = None
    metadata: Annotated[dict[str, str], Meta(max_length=16)] | None = None


class OpenInvocationBody(InvocationBody, forbid_unknown_fields=False, frozen=True, kw_only=True):
    """The same, with additional fields for the operator's hook."""


class Text(msgspec.Struct, tag="text", tag_field="type"):
    """Outgoing plain text, the most frequent content."""

    text: str


class MessageOut(msgspec.Struct, kw_only=True, omit_defaults=True):
    role: str
    contents: list[Any]
    author: str | None = None


class ApprovalOut(msgspec.Struct, kw_only=True):
    id: str
    tool: str
    arguments: Any
    waits_for: list[str] | UnsetType = UNSET
    """The names of the people who decide, if that is not the caller alone."""
    waits_for_people: list[dict[str, Any]] | UnsetType = UNSET
    """The same people: `name`, short `id`, `channel`, and whether a link has `verified` the name; a role has a name."""


class WaitingOut(msgspec.Struct, kw_only=True):
    """A pending tool call: one of the caller's own, or another person's that the caller may decide."""

    id: str
    tool: str
    arguments: Any
    asker: str
    """The name of the person for whom the run asks."""
    channel: str
    """The channel on which the run was asked for."""
    created_at: float
    expires_at: float | None
    """When the answer is no, if nobody has answered."""
    votes: int
    """The number of people who have to approve."""
    own: bool
    """Whether the run of the caller has asked."""
    asked_for: dict[str, Any] | UnsetType = UNSET
    """The asker: `name`, short `id`, `channel`, and whether a link has `verified` the name."""
    waits_for: list[str] | UnsetType = UNSET
    """The names of the people who decide a question of the caller, if that is not the caller alone."""
    waits_for_people: list[dict[str, Any]] | UnsetType = UNSET
    """The same people, as in `asked_for`; a role has only a name."""


class WaitingList(msgspec.Struct, kw_only=True):
    """`GET /invocations/approvals/pending`: the pending tool calls, oldest first."""

    object: Literal["list"] = "list"
    data: list[WaitingOut]
    after: str | None = None
    """The `after` of the next page; `null` on the last one."""


class RequestOut(msgspec.Struct, kw_only=True):
    """A request for information on which a workflow waits."""

    id: str
    data: Any
    response_type: str


class ErrorOut(msgspec.Struct, kw_only=True, omit_defaults=True):
    code: str
    message: str
    param: str | None = None
    id: str | None = None


class ErrorEnvelope(msgspec.Struct, kw_only=True):
    error: ErrorOut


class InvocationOut(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["invocation"] = "invocation"
    status: str
    session_id: str | None
    created_at: float
    finished_at: float | None = None
    text: str = ""
    messages: list[MessageOut] = []
    outputs: list[Any] | None = None
    value: Any = None
    approvals: list[ApprovalOut] = []
    requests: list[RequestOut] = []
    checkpoint_id: str | None = None
    usage: dict[str, Any] | None = None
    error: ErrorOut | None = None
    metadata: dict[str, Any] = {}
    continued_by: str | UnsetType = UNSET
    decisions: list[dict[str, Any]] | UnsetType = UNSET
    """The outcomes of the caller's answers to questions of others."""


class Started(msgspec.Struct):
    id: str
    session_id: str | None


class Update(msgspec.Struct, omit_defaults=True):
    text: str = ""
    contents: list[Any] | None = None
    output: Any = None
