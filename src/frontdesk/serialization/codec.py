"""The JSON codec for all stored and scheduled data: `{"v": 1, "data": ...}`.

An encoded value decodes to an equal value of the same type. Otherwise encoding raises a `CodecError`. `json_tree`
describes the format. Record fields that a newer version has added are skipped on reading, and kept in `unknown_fields`
for the next write. Any other unreadable record raises `UnreadableRecordError`, because a newer version may read it.
Only bytes that no version has ever written raise `BrokenRecordError`.

Application types are registered at import, under a permanent name:

register_dataclass(Order, "order")
    register_model(Invoice, "invoice")
    register(Colour, "colour", lambda colour: colour.value, Colour)
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from frontdesk.errors import BrokenRecordError, CodecError, UnknownVersionError, UnreadableRecordError
from frontdesk.models.approval import (
    ApprovalAnswer,
    ApprovalPlace,
    ApprovalVote,
    ApproverClaim,
    ApproverTerms,
    PendingApproval,
    Resumption,
)
from frontdesk.models.base import UNKNOWN, StoredRecord
from frontdesk.models.channel_storage import SealedToken
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.models.delivery import Attempt, Delivery, EditDelivery, InboxItem, Route, Skipped
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord, IsolationKeys, LastSeen, PushGroup
from frontdesk.models.link import Grant, LinkChallenge, LinkProof, LinkRecord, Whoami
from frontdesk.models.operations import TaskRecord
from frontdesk.models.person_name import PersonName
from frontdesk.models.reply import Address, Reply, ReplyButton, ResponseTarget
from frontdesk.models.request import AdmittedRequest, ChannelRequest, ChannelSession, ClientOutput, ClientTool
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import BackgroundRun, ContinuationToken, RunEvent, RunFailure, RunRecord
from frontdesk.models.session import CheckpointRef, ClientCall, ForkPoint, Lease, SessionName, SessionRecord
from frontdesk.models.watcher import WatcherRecord
from frontdesk.serialization import framework_codec
from frontdesk.serialization.json_tree import (
    PLAIN,
    TAG,
    Prepared,
    Tree,
    add,
    add_lazy,
    detect_kind,
    get_name,
    read,
    write,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

VERSION = 1

STORED_AS: Mapping[str, type[StoredRecord]] = {
    "Address": Address,
    "AdmittedRequest": AdmittedRequest,
    "ApprovalAnswer": ApprovalAnswer,
    "ApprovalPlace": ApprovalPlace,
    "ApprovalVote": ApprovalVote,
    "ApproverClaim": ApproverClaim,
    "ApproverTerms": ApproverTerms,
    "Attempt": Attempt,
    "BackgroundRun": BackgroundRun,
    "Caller": Caller,
    "ChannelIdentity": ChannelIdentity,
    "ChannelRequest": ChannelRequest,
    "ChannelSession": ChannelSession,
    "CheckpointRef": CheckpointRef,
    "ClientCall": ClientCall,
    "ClientOutput": ClientOutput,
    "ClientTool": ClientTool,
    "ContinuationToken": ContinuationToken,
    "Conversation": Conversation,
    "ConversationItem": ConversationItem,
    "Delivery": Delivery,
    "EditDelivery": EditDelivery,
    "ForkPoint": ForkPoint,
    "Grant": Grant,
    "HostedRunResult": HostedRunResult,
    "IdentityRecord": IdentityRecord,
    "InboxItem": InboxItem,
    "IsolationKeys": IsolationKeys,
    "LastSeen": LastSeen,
    "Lease": Lease,
    "LinkChallenge": LinkChallenge,
    "LinkProof": LinkProof,
    "LinkRecord": LinkRecord,
    "PendingApproval": PendingApproval,
    "PersonName": PersonName,
    "PushGroup": PushGroup,
    "Reply": Reply,
    "ReplyButton": ReplyButton,
    "ResponseTarget": ResponseTarget,
    "Resumption": Resumption,
    "Route": Route,
    "RunEvent": RunEvent,
    "RunFailure": RunFailure,
    "RunRecord": RunRecord,
    "SealedToken": SealedToken,
    "SessionName": SessionName,
    "SessionRecord": SessionRecord,
    "Skipped": Skipped,
    "TaskRecord": TaskRecord,
    "WatcherRecord": WatcherRecord,
    "Whoami": Whoami,
}
"""The nouns by the tags that they have in records.

A tag that was released stays: a type that is renamed in Python gets the old one as its `tag=`, and a field the old name
as `msgspec.field(name=...)`.
"""
RECORD_TYPES: tuple[type[StoredRecord], ...] = tuple(STORED_AS.values())

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound="BaseModel")
Form = tuple[Callable[[Any], Any], Callable[[Any], Any]]

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_moment: Any = Annotated[float, msgspec.Meta(ge=0, lt=2**53)]
_count: Any = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
_COUNTS: dict[Any, Any] = {float: _moment, float | None: _moment | None, int: _count, int | None: _count | None}
"""The number types whose usual values are their own form."""
_registered: dict[str, tuple[type, Form]] = {}


def encode(value: Any) -> bytes:
    return seal(build_form(value))


def encode_within(value: Any, longest: int, name: str) -> bytes:
    """Encode a small value. Raise `ValueError` with its name if it is not JSON or too long."""
    try:
        data = encode(value)
    except CodecError as error:
        raise ValueError(f"{name} must be JSON: {error}") from None
    if len(data) > longest:
        raise ValueError(f"{name} has {len(data)} bytes, the maximum is {longest}")
    return data


def seal(form: Any) -> bytes:
    try:
        return _encoder.encode({"v": VERSION, "data": form})
    except (ValueError, RecursionError) as error:
        raise CodecError(f"cannot encode the value as JSON: {type(error).__name__}") from error


def decode(data: bytes) -> Any:
    try:
        record = _decoder.decode(data)
    except (ValueError, RecursionError) as error:
        raise BrokenRecordError("the record is not JSON") from error
    if detect_kind(record) is not dict or "v" not in record:
        raise BrokenRecordError("the record has no format version")
    version = record["v"]
    if detect_kind(version) is not int or version != VERSION:
        raise UnknownVersionError(version)
    if "data" not in record:
        raise UnreadableRecordError("the record has no `data`")
    try:
        return from_json(record["data"])
    except CodecError as error:
        raise UnreadableRecordError(str(error)) from error


def to_json(value: Any) -> Any:
    """Return the JSON tree of a value, without a version. Only `encode` validates strings."""
    return msgspec.to_builtins(build_form(value))


def build_form(value: Any) -> Any:
    """Return the JSON tree of a value. Stored records stay as they are, for the encoder to write."""
    try:
        return write(value, 0)
    except CodecError:
        raise
    except Exception as error:  # Registered functions may raise anything.
        raise CodecError(f"cannot encode a {type(value).__qualname__}: {type(error).__name__}") from error


def prepare(make: Callable[[], Mapping[str, Any]]) -> Prepared:
    """Encode a slow field before its record. `make` returns the field's value."""
    try:
        prepared = Prepared(make())
        # As deep as in a record, of which it is a field.
        written = _encoder.encode(write(dict(prepared), 1))
    except CodecError:
        raise
    except Exception as error:  # `make` may raise anything.
        raise CodecError(f"cannot encode the value: {type(error).__name__}") from error
    prepared.tree, prepared.size = msgspec.Raw(written), len(written)
    return prepared


def from_json(tree: Any) -> Any:
    try:
        return read(tree, 0)
    except CodecError:
        raise
    except Exception as error:  # Registered functions and the framework's constructors may raise anything.
        raise CodecError(f"cannot decode the record: {type(error).__name__}") from error


def register(kind: type[T], name: str, to_json: Callable[[T], Any], from_json: Callable[[Any], T]) -> None:
    """Register a JSON form. `to_json` returns anything that the codec can write, `from_json` reverts it."""
    entry = (kind, (to_json, from_json))
    if _registered.get(name) == entry:
        return
    # The prefix keeps an application's names apart from the nouns of today and of later versions.
    tag = f"user:{name}"

    def write_own(value: T, depth: int) -> Tree:
        return {TAG: tag, "value": write(to_json(value), depth)}

    def read_own(tree: Tree, depth: int) -> T:
        if tree.keys() != {TAG, "value"}:
            raise CodecError(f"a {name!r} in the record is malformed")
        return from_json(read(tree["value"], depth))

    add(kind, tag, write_own, read_own)
    _registered[name] = entry


def register_dataclass(kind: type[Any], name: str) -> None:
    """Register a dataclass with a JSON form, field by field."""
    register(kind, name, *_dataclass_form(kind))


def register_model(kind: type[ModelT], name: str) -> None:
    """Register a Pydantic model with Pydantic's JSON form, by field names."""
    register(kind, name, *_model_form(kind))


def register_answer(kind: Any) -> bool:
    """Register an agent's response type under its own name. Return False if the name is taken."""
    if not isinstance(kind, type) or not hasattr(kind, "model_validate_json") or get_name(kind) is not None:
        return True
    try:
        register_model(cast("type[BaseModel]", kind), f"{kind.__module__}.{kind.__qualname__}")
    except CodecError:
        return False
    return True


@cache
def _dataclass_form(kind: type[Any]) -> Form:
    names = tuple(field.name for field in dataclasses.fields(kind) if field.init)

    def to_fields(value: Any) -> Tree:
        return {name: getattr(value, name) for name in names}

    def from_fields(fields: Tree) -> Any:
        return kind(**fields)

    return to_fields, from_fields


@cache
def _model_form(kind: "type[BaseModel]") -> Form:
    def to_fields(model: "BaseModel") -> Tree:
        return model.model_dump(mode="json", by_alias=False, round_trip=True)

    def from_fields(fields: Tree) -> Any:
        # From text, because a strict model takes a date from text in JSON mode only.
        return kind.model_validate_json(_encoder.encode(fields), by_alias=False, by_name=True)

    return to_fields, from_fields


def _add_record_type(tag: str, kind: type[StoredRecord]) -> None:
    if kind.__struct_config__.tag != tag:
        raise CodecError(f"{kind.__qualname__} is stored as {tag!r}. Give it tag={tag!r}")
    infos = [info for info in msgspec.structs.fields(kind) if info.name != UNKNOWN]
    defaults = {info.name: _default(info) for info in infos}
    encode_names = {TAG, *(info.encode_name for info in infos)}
    kinds = {info.name: info.type for info in infos}
    # Texts have one form only, so they need no conversion.
    others = [name for name, kind in kinds.items() if not _is_text(kind) or type(defaults[name]) is str]
    every = _Fields(others, defaults, kinds)
    # Nor do times and counts with usual values.
    most = _Fields([name for name in others if kinds[name] not in _COUNTS], defaults, kinds)
    twin = _twin(kind)
    # Without this a text would pass for bytes, as base64; with it every check takes longer.
    builtin_types = (bytes,) if any(info.type is bytes for info in infos) else None

    def check(fields: Any, *, from_attributes: bool = False) -> StoredRecord:
        try:
            return msgspec.convert(fields, kind, builtin_types=builtin_types, from_attributes=from_attributes)
        except msgspec.ValidationError as error:
            raise CodecError(f"a {tag} is malformed: {error}") from error

    def write_record(record: StoredRecord, depth: int) -> StoredRecord | Tree:
        if record.unknown_fields is not None:
            return _with_unknown(
                write_record(msgspec.structs.replace(record, unknown_fields=None), depth), record.unknown_fields
            )
        fields = most
        # A noun does not check its own types, and a record that can't be read again is lost.
        try:
            msgspec.convert(record, twin, from_attributes=True, builtin_types=builtin_types)
        except msgspec.ValidationError:
            # It is malformed, or a number in it has another form.
            check({info.encode_name: getattr(record, info.name) for info in infos}, from_attributes=True)
            fields = every
        values = fields.values(record)
        if values == fields.usual:
            return record
        changes = fields.forms(values, depth)
        return msgspec.structs.replace(record, **changes) if changes else record

    def read_record(tree: Tree, depth: int) -> StoredRecord:
        if encode_names.issuperset(tree):
            return check({name: read(item, depth) for name, item in tree.items() if name != TAG})
        fields = {name: read(item, depth) for name, item in tree.items() if name in encode_names and name != TAG}
        unknown = {name: item for name, item in tree.items() if name not in encode_names}
        return check({**fields, UNKNOWN: _encoder.encode(unknown).decode()})

    add(kind, tag, write_record, read_record)


def _with_unknown(form: "StoredRecord | Tree", unknown: str) -> Tree:
    """Return a record's form with the fields that a newer version added."""
    return {**_decoder.decode(unknown), **msgspec.to_builtins(form)}


class _Fields:
    """The fields of a record that may need conversion."""

    def __init__(self, names: Sequence[str], defaults: Tree, kinds: Mapping[str, Any]) -> None:
        self.names = names
        self.defaults = tuple(defaults[name] for name in names)
        # A field is left out of a record only if it is the default object itself, which an equal text need not be; and
        # values of any type may fail to be compared.
        odd = any(type(defaults[name]) is str or kinds[name] is Any for name in names)
        self.usual = None if odd else self.defaults
        self.values: Callable[[Any], tuple[Any, ...]] = (
            attrgetter(*names) if len(names) > 1 else lambda record: tuple(getattr(record, name) for name in names)
        )

    def forms(self, values: Sequence[Any], depth: int) -> Tree:
        changes: Tree = {}
        for name, value, default in zip(self.names, values, self.defaults, strict=False):
            if value is default or value is None:
                continue
            if detect_kind(value) is type(default) and value == default:
                if value:
                    # Only the default object itself is left out.
                    changes[name] = default
                continue
            form = write(value, depth)
            if form is not value:
                changes[name] = form
        return changes


def _twin(kind: type[StoredRecord]) -> type[msgspec.Struct]:
    """Create another type with the same fields, because msgspec does not validate instances of the right type."""
    infos = [info for info in msgspec.structs.fields(kind) if info.name != UNKNOWN]
    fields = [(info.name, _COUNTS.get(info.type, info.type), None) for info in infos]
    return msgspec.defstruct(kind.__name__, fields, kw_only=True, gc=False)


def _is_text(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return all(_is_text(member) for member in get_args(kind))
    return kind in PLAIN or (get_origin(kind) is Literal and all(type(member) is str for member in get_args(kind)))


def _default(info: msgspec.structs.FieldInfo) -> Any:
    return info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()


for _tag, _record_name in STORED_AS.items():
    _add_record_type(_tag, _record_name)
for _name, _form in (framework_codec.FORMS | framework_codec.WORKFLOW_FORMS).items():
    add_lazy("agent_framework", _name, *_form)
