"""The result of a workflow as a JSON tree: its outputs, its requests and its status timeline.

Events about its steps are not kept: their data is internal to the executors.
"""

from typing import TYPE_CHECKING, Any

from frontdesk.data.json_tree import TAG, Reader, Tree, Writer, check_items, name_of, read, type_of, write
from frontdesk.errors import CodecError

if TYPE_CHECKING:
    from agent_framework import WorkflowEvent, WorkflowRunResult

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
        fields["response_type"] = name_of(event.response_type)
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
        fields["response_type"] = type_of(tree["response_type"]) if "response_type" in tree else object
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
    return type_of("WorkflowRunResult")(fields["events"], fields["status"])


FORMS: dict[str, tuple[Writer, Reader]] = {
    "WorkflowEvent": (_write_event, _read_event),
    "WorkflowRunResult": (_write_workflow, _read_workflow),
}
