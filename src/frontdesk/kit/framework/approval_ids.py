"""Shows the approval requests of a target under the host's own ids; the target's objects stay as they are. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar, cast

from agent_framework import AgentResponseUpdate, Content, Message, WorkflowRunResult

from frontdesk.kit.framework.types import is_event, is_messages, is_response

T = TypeVar("T")

_WITH_CONTENTS = (AgentResponseUpdate, Message)
_REQUEST = "function_approval_request"
_WAITS_FOR = "waits_for"
_SHOWN = "approval_id"
"""The property of an approval response that has the id of ours; its own id is the target's."""


def requests_in(value: Any) -> list[Content]:
    """Return all approval requests of an update or a result, wherever they are in it."""
    if isinstance(value, _WITH_CONTENTS):
        # Every piece of a stream comes by here, and hardly any has one.
        for content in value.contents or ():
            if content.type == _REQUEST:
                return [content for content in value.contents if content.type == _REQUEST]
        return []
    if isinstance(value, Content):
        return [value] if value.type == _REQUEST else []
    if is_response(value):
        return _all(value.messages)
    if is_event(value):
        return requests_in(value.data)
    if isinstance(value, WorkflowRunResult):
        return _all(cast("list[Any]", value))
    return _all(value) if is_messages(value) else []


def _all(values: Iterable[Any]) -> list[Content]:
    return [content for value in values for content in requests_in(value)]


def with_shown_ids(value: T, ids: Mapping[str, str]) -> T:
    """Return a copy of an update or a result whose approval requests have the ids that are shown, by the target's."""
    return cast(T, _copied(value, ids)) if requests_in(value) else value


def _copied(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, Content):
        shown = ids.get(value.id) if value.type == _REQUEST and isinstance(value.id, str) else None
        return value if shown is None else with_id(value, shown)
    if isinstance(value, WorkflowRunResult):
        events = [with_shown_ids(event, ids) for event in cast("list[Any]", value)]
        return WorkflowRunResult(events, value.status_timeline())
    if isinstance(value, list):
        return [with_shown_ids(part, ids) for part in cast("list[Any]", value)]
    changed: Any = copy(value)
    if is_response(value):
        changed.messages = [with_shown_ids(message, ids) for message in value.messages]
    elif is_event(value):
        changed.data = with_shown_ids(value.data, ids)
    else:
        changed.contents = [_copied(content, ids) for content in value.contents]
    return changed


def with_id(request: Content, approval_id: str) -> Content:
    """Return a copy of an approval request with another id."""
    changed = copy(request)
    changed.id = approval_id
    return changed


def note_waiting(value: Any, people: Mapping[str, Sequence[str]]) -> None:
    """Note in the approval requests of a result, which are copies, the names of those whom they wait for, by id."""
    for request in requests_in(value):
        names = None if request.id is None else people.get(request.id)
        if names is not None:
            request.additional_properties = {**request.additional_properties, _WAITS_FOR: list(names)}


def waits_for(request: Content) -> list[str] | None:
    """Return the names of those whom an approval request waits for; `None` if that is the requester alone."""
    names: Any = request.additional_properties.get(_WAITS_FOR)
    return [str(name) for name in cast("list[Any]", names)] if isinstance(names, list) else None


def mark_shown(response: Content, approval_id: str) -> None:
    """Note in an approval response, which has the target's id, under which id its question was shown."""
    response.additional_properties = {**response.additional_properties, _SHOWN: approval_id}


def shown_id(response: Content) -> str:
    """Return the id under which the question of an approval response was shown."""
    return str(response.additional_properties.get(_SHOWN) or response.id)
