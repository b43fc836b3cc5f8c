"""Codec of framework objects: JSON trees of their constructor arguments, by name.

The framework's own `to_dict` would lose types (tuples, dates, nested objects that look like plain dicts), and its
`from_dict` cannot read everything that `to_dict` writes. Not kept, as in `to_dict`:

- `raw_representation`, anywhere.
- The text of `Content.exception`, which may contain secrets. The framework's marker replaces it.
- Parts of additional properties, annotations or tool results without a JSON form (providers put objects there).
- `AgentResponse.response_format` (`value` is always kept), and the private progress mark of an update.

The framework is imported when the first of its objects is read.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from inspect import Parameter, signature
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from frontdesk import loggers
from frontdesk.errors import CodecError
from frontdesk.serialization.json_tree import (
    MAX_DEPTH,
    PLAIN,
    TAG,
    TOO_DEEP,
    Kind,
    NoFormError,
    Reader,
    Shared,
    Tree,
    Writer,
    check_items,
    detect_kind,
    get_kind,
    get_name,
    read,
    write,
)

if TYPE_CHECKING:
    from agent_framework import (
        AgentResponse,
        AgentResponseUpdate,
        AgentSession,
        Content,
        Message,
        WorkflowEvent,
        WorkflowRunResult,
    )


_LOOSE = frozenset(
    {"additional_properties", "annotations", "arguments", "result", "output", "outputs", "actions", "usage_details"}
)
_NEEDED = object()
_LEFT_OUT = object()


@cache
def _blank(kind: Kind) -> dict[str, Any]:
    parameters = signature(kind).parameters
    needed = [name for name, parameter in parameters.items() if parameter.default is Parameter.empty]
    attributes: Tree = kind(**dict.fromkeys(needed, "")).__dict__ | dict.fromkeys(needed, _NEEDED)
    kept = parameters.keys() - {"raw_representation", "exception"}
    return {name: value for name, value in attributes.items() if name in kept}


@cache
def _exception_marker() -> str:
    return get_kind("Content")("error", exception="any").to_dict()["exception"]


@cache
def _plan(kind: Kind, apart: str) -> list[tuple[str, Any, Kind]]:
    return [(name, default, type(default)) for name, default in _blank(kind).items() if name != apart]


def _write_fields(value: Any, depth: int, apart: str = "") -> Tree:
    """Write all fields except `apart`, which comes first and is written by the caller."""
    kind = detect_kind(value)
    tree: Tree = {TAG: kind.__name__}
    if apart:
        tree[apart] = None
    attributes: Tree = value.__dict__
    for name, default, common in _plan(kind, apart):
        item = attributes.get(name)
        if item is None:
            continue
        of = detect_kind(item)
        if of is common and item == default:
            continue
        if of in PLAIN:
            tree[name] = item
        elif isinstance(item, str):
            # Providers pass members of their own text enumerations.
            tree[name] = str.__str__(item)
        elif name in _LOOSE:
            _write_loose(tree, name, item, depth)
        else:
            tree[name] = write(item, depth)
    return tree


def _write_loose(tree: Tree, name: str, item: Any, depth: int) -> None:
    try:
        tree[name] = write(item, depth)
    except NoFormError as error:
        loggers.store.debug("part cannot be stored, leaving it out: type=%s.%s: %s", tree[TAG], name, error)
        kept = _with_form(item)
        if kept is not _LEFT_OUT:
            with suppress(NoFormError):
                tree[name] = write(kept, depth)


def _with_form(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        pairs = cast(Mapping[Any, Any], value).items()
        return {key: kept for key, item in pairs if (kept := _with_form(item)) is not _LEFT_OUT}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [kept for item in cast(Sequence[Any], value) if (kept := _with_form(item)) is not _LEFT_OUT]
    if get_name(type(value)) is not None:
        return value
    to_dict = getattr(value, "to_dict", None)
    return _with_form(to_dict()) if to_dict else _LEFT_OUT


def _read_fields(tree: Tree, depth: int, apart: str = "") -> Tree:
    # Fields that a newer version of the framework has added are skipped, as in a noun.
    fields = _blank(get_kind(tree[TAG]))
    return {name: read(item, depth) for name, item in tree.items() if name in fields or name == apart}


def _check_content(fields: Tree) -> None:
    # A value that is not a boolean must not pass for an approval.
    if type(fields.get("type")) is not str or type(fields.get("approved")) not in (bool, NoneType):
        raise CodecError("a Content is malformed: its type must be a string, and `approved` true or false")


@cache
def _empty_in_text() -> int:
    return list(get_kind("Content")("text", text="any").__dict__.values()).count(None)


def plain_text(content: "Content") -> str | None:
    """Return the text of a content that has nothing else, which is the usual case, or `None`."""
    fields = content.__dict__
    text = fields["text"]
    if fields["type"] != "text" or type(text) is not str or fields["raw_representation"] is not None:
        return None
    if fields["additional_properties"] or fields["informational_only"] is not False:
        return None
    return text if list(fields.values()).count(None) == _empty_in_text() else None


class _PlainText(Struct, tag_field=TAG, tag="Content"):
    """The form of a plain text, faster to create and encode than a tree."""

    type: str
    text: str


class _PlainMessage(Struct, tag_field=TAG, tag="Message", omit_defaults=True):
    """The form of a message that consists of one text."""

    role: str
    contents: list[_PlainText]
    author_name: str | None = None
    message_id: str | None = None
    additional_properties: Tree | None = None


def _write_content(content: "Content", depth: int) -> Tree | _PlainText:
    text = plain_text(content)
    if text is not None:
        return _PlainText("text", text)
    tree = _write_fields(content, depth)
    _check_content(tree)
    if content.exception is not None:
        tree["exception"] = _exception_marker()
    return tree


def _read_content(tree: Tree, depth: int) -> Any:
    fields = _read_fields(tree, depth, "exception")
    _check_content(fields)
    return get_kind("Content")(**fields)


def _write_update(update: "Message | AgentResponseUpdate", depth: int) -> Tree:
    contents = update.contents
    check_items(contents, "Content")
    tree = _write_fields(update, depth, "contents")
    tree["contents"] = _write_items(contents, _write_content, depth)
    return tree


def _write_message(message: "Message", depth: int) -> "Tree | _PlainMessage":
    fields: Tree = message.__dict__
    contents, extra = fields["contents"], fields["additional_properties"]
    role, author, message_id = fields["role"], fields["author_name"], fields["message_id"]
    if detect_kind(contents) is not list or len(contents) != 1 or detect_kind(role) is not str or depth >= MAX_DEPTH:
        return _write_update(message, depth)
    # Nearly all messages are one text with at most a name, an id and a stamp; `_write_update` writes them the same.
    text = plain_text(contents[0]) if detect_kind(contents[0]) is get_kind("Content") else None
    if (
        text is None
        or detect_kind(author) not in PLAIN
        or detect_kind(message_id) not in PLAIN
        or detect_kind(extra) is not dict
    ):
        return _write_update(message, depth)
    if not extra:
        return _PlainMessage(role, [_PlainText("text", text)], author, message_id)
    stamp = extra.get("hosting")
    if len(extra) == 1 and detect_kind(stamp) is Shared:
        return _PlainMessage(role, [_PlainText("text", text)], author, message_id, {"hosting": write(stamp, depth)})
    return _write_update(message, depth)


def _write_items(items: Sequence[Any], write_item: Writer, depth: int) -> list[Any]:
    if depth + bool(items) > MAX_DEPTH:
        raise CodecError(TOO_DEEP)
    return [write_item(item, depth + 2) for item in items]


def _read_message(tree: Tree, depth: int) -> Any:
    fields = _read_fields(tree, depth)
    check_items(fields.get("contents", []), "Content")
    return get_kind(tree[TAG])(**fields)


def _write_response(response: "AgentResponse[Any]", depth: int) -> Tree:
    messages = response.messages
    check_items(messages, "Message")
    tree = _write_fields(response, depth, "messages")
    tree["messages"] = _write_items(messages, _write_message, depth)
    try:
        value = response.value
    except ValueError:
        # It is parsed at the first access, and the model's answer did not match its type; the text is kept.
        value = None
    if value is not None:
        try:
            tree["value"] = write(value, depth)
        except NoFormError as error:
            raise _with_hint(error, response) from error
    return tree


def _with_hint(error: NoFormError, response: "AgentResponse[Any]") -> CodecError:
    value: Any = response.value
    parse = getattr(value, "model_validate_json", None)
    try:
        parsed = bool(parse and parse(response.text) == value)
    except ValueError:
        parsed = False
    hint = "; the response's text holds the JSON that the value was parsed from" if parsed else ""
    return CodecError(f"the value of an AgentResponse can't be kept: {error}{hint}")


def _read_response(tree: Tree, depth: int) -> Any:
    fields = _read_fields(tree, depth, "value")
    check_items(fields.get("messages", []), "Message")
    return get_kind("AgentResponse")(**fields)


def _write_session(session: "AgentSession", depth: int) -> Tree:
    # The framework's own form, because it knows the state types that were registered with it.
    return {**write(session.to_dict(), depth), TAG: "AgentSession"}


def _read_session(tree: Tree, depth: int) -> Any:
    fields = {name: read(item, depth + 1) for name, item in tree.items() if name != TAG}
    return get_kind("AgentSession").from_dict(fields)


FORMS: dict[str, tuple[Writer, Reader]] = {
    "Content": (_write_content, _read_content),
    "Message": (_write_message, _read_message),
    "AgentResponse": (_write_response, _read_response),
    "AgentResponseUpdate": (_write_update, _read_message),
    "AgentSession": (_write_session, _read_session),
}


_KEPT_EVENTS = frozenset({"output", "intermediate", "data", "request_info", "status"})
_TEXTS = ("type", "origin", "executor_id", "state", "request_id", "source_executor_id")


def _write_event(event: "WorkflowEvent[Any]", depth: int) -> Tree:
    if event.type not in _KEPT_EVENTS:
        raise CodecError(f"a workflow's {event.type!r} event has no JSON form")
    fields = {
        "type": event.type,
        "origin": event.origin.value,
        "data": write(event.data, depth),
        "executor_id": event.executor_id,
        "state": event.state and event.state.value,
    }
    if event.type == "request_info":
        fields["request_id"] = event.request_id
        fields["source_executor_id"] = event.source_executor_id
        # A type that has no name here comes back as `object`.
        fields["response_type"] = get_name(event.response_type)
    return {TAG: "WorkflowEvent", **{name: item for name, item in fields.items() if item is not None}}


def _read_event(tree: Tree, depth: int) -> Any:
    from agent_framework import WorkflowEvent, WorkflowEventSource, WorkflowRunState

    # Fields that a newer version has added are skipped, as in a noun.
    fields = {name: tree[name] for name in _TEXTS if name in tree}
    if fields.get("type") not in _KEPT_EVENTS or any(type(item) is not str for item in fields.values()):
        raise CodecError("a WorkflowEvent in the record is malformed")
    fields["data"] = read(tree.get("data"), depth)
    fields["origin"] = WorkflowEventSource(fields["origin"])
    if "state" in fields:
        fields["state"] = WorkflowRunState(fields["state"])
    if fields["type"] == "request_info":
        fields["request_type"] = type(fields["data"])
        fields["response_type"] = get_kind(tree["response_type"]) if "response_type" in tree else object
    return WorkflowEvent(**fields)


def _write_workflow(result: "WorkflowRunResult", depth: int) -> Tree:
    return {
        TAG: "WorkflowRunResult",
        "events": write([event for event in result if event.type in _KEPT_EVENTS], depth),
        "status": write(result.status_timeline(), depth),
    }


def _read_workflow(tree: Tree, depth: int) -> Any:
    fields = {name: read(tree[name], depth) for name in ("events", "status")}
    for events in fields.values():
        check_items(events, "WorkflowEvent")
    return get_kind("WorkflowRunResult")(fields["events"], fields["status"])


WORKFLOW_FORMS: dict[str, tuple[Writer, Reader]] = {
    "WorkflowEvent": (_write_event, _read_event),
    "WorkflowRunResult": (_write_workflow, _read_workflow),
}
