"""The bodies of the Invocations protocol, as strict as they are documented."""

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
    """Anything that comes in; a field that is not known is an error."""


class TextPart(Body, tag="text", tag_field="type", frozen=True, kw_only=True):
    """Words."""

    text: str


class DataPart(Body, tag="data", tag_field="type", frozen=True, kw_only=True):
    """An image, a sound or a file, in base64."""

    data: Base64
    media_type: MediaType
    name: str | None = None


class UriPart(Body, tag="uri", tag_field="type", frozen=True, kw_only=True):
    """An image, a sound or a file that the agent's model may fetch; the host itself does not."""

    uri: HttpUri
    media_type: MediaType


Parts = Annotated[list[TextPart | DataPart | UriPart], Meta(min_length=1, max_length=256)]


class Options(Body, frozen=True, kw_only=True):
    """The options that a caller may set for the model."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    seed: int | None = None
    stop: Annotated[list[str], Meta(max_length=4)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None


class ApprovalAnswer(Body, frozen=True, kw_only=True):
    """A human's word on a tool call that waits for it."""

    id: Id
    approved: bool
    reason: Annotated[str, Meta(max_length=4096)] | None = None


class Place(Body, frozen=True, kw_only=True):
    """The caller on a channel."""

    channel: Annotated[str, Meta(min_length=1, max_length=256)]
    native_id: Annotated[str, Meta(min_length=1, max_length=1024)]


class Back(Body, tag="originating", tag_field="kind", frozen=True, kw_only=True):
    """The answer comes back, as it does if nothing is said."""


class Nowhere(Body, tag="none", tag_field="kind", frozen=True, kw_only=True):
    """The answer waits to be fetched."""


class Elsewhere(Body, tag_field="kind", frozen=True, kw_only=True):
    """The answer goes to the caller in other places."""

    echo_input: bool = False
    """Also sends the question there, before the answer."""


class Active(Elsewhere, tag="active", frozen=True, kw_only=True):
    """The target at which the caller was last seen."""


class AllLinked(Elsewhere, tag="all_linked", frozen=True, kw_only=True):
    """Every place that the caller has linked."""


class Channels(Elsewhere, tag="channels", frozen=True, kw_only=True):
    """Channels by their names."""

    channels: Annotated[list[Annotated[str, Meta(min_length=1, max_length=256)]], Meta(min_length=1, max_length=32)]


class Identities(Elsewhere, tag="identities", frozen=True, kw_only=True):
    """Certain places, which must be the caller's own."""

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
    """The same, with fields beside those of the protocol, which are for the operator's hook."""


class Text(msgspec.Struct, tag="text", tag_field="type"):
    """Plain text that goes out, by far the most frequent content."""

    text: str


class MessageOut(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One message of an answer."""

    role: str
    contents: list[Any]
    author: str | None = None


class ApprovalOut(msgspec.Struct, kw_only=True):
    """A tool call that waits for a human."""

    id: str
    tool: str
    arguments: Any
    waits_for: list[str] | UnsetType = UNSET
    """The names of the people who decide, if that is not the caller alone."""


class WaitingOut(msgspec.Struct, kw_only=True):
    """A tool call of somebody else that waits for the caller."""

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


class WaitingList(msgspec.Struct, kw_only=True):
    """`GET /invocations/approvals/pending`: the tool calls that wait for the caller, the oldest first."""

    object: Literal["list"] = "list"
    data: list[WaitingOut]
    after: str | None = None
    """The `after` of the next page; `null` on the last one."""


class RequestOut(msgspec.Struct, kw_only=True):
    """A request for information that a workflow waits for."""

    id: str
    data: Any
    response_type: str


class ErrorOut(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An error."""

    code: str
    message: str
    param: str | None = None
    id: str | None = None


class ErrorEnvelope(msgspec.Struct, kw_only=True):
    """Every error has this shape."""

    error: ErrorOut


class InvocationOut(msgspec.Struct, kw_only=True):
    """An invocation, running or ended."""

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
    """The first event of a stream."""

    id: str
    session_id: str | None


class Update(msgspec.Struct, omit_defaults=True):
    """A piece of the answer."""

    text: str = ""
    contents: list[Any] | None = None
    output: Any = None
