"""Replaces the ids of a target's approval requests by the host's own. Does not change the originals. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar, cast

from agent_framework import AgentResponseUpdate, Content, Message, WorkflowRunResult

from frontdesk.display.escaping import escape_line
from frontdesk.display.person_names import build_label, short_id
from frontdesk.framework.types import is_event, is_messages, is_response
from frontdesk.models.person_name import PersonName

T = TypeVar("T")

_WITH_CONTENTS = (AgentResponseUpdate, Message)
_REQUEST = "function_approval_request"
_WAITS_FOR, _PEOPLE = "waits_for", "waits_for_people"
_SHOWN = "approval_id"
"""The property of an approval response that has the id of ours; its own id is the target's."""


def requests_in(value: Any) -> list[Content]:
    """Return all approval requests of an update or a result, at any depth."""
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
    """Return a copy of an update or result with the displayed approval ids, given by the target's ids."""
    return cast(T, _copy(value, ids)) if requests_in(value) else value


def _copy(value: Any, ids: Mapping[str, str]) -> Any:
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
        changed.contents = [_copy(content, ids) for content in value.contents]
    return changed


def with_id(request: Content, approval_id: str) -> Content:
    changed = copy(request)
    changed.id = approval_id
    return changed


def note_waiting(value: Any, people: Mapping[str, Sequence[PersonName]]) -> None:
    """Add the pending approvers, by id, to the approval requests of a result, which are copies."""
    for request in requests_in(value):
        shown = None if request.id is None else people.get(request.id)
        if shown is not None:
            noted = {_WAITS_FOR: [build_label(person) for person in shown], _PEOPLE: [person_out(one) for one in shown]}
            request.additional_properties = {**request.additional_properties, **noted}


def waits_for(request: Content) -> list[str] | None:
    """Return the display names of the pending approvers, or None if the requester is the only one."""
    names: Any = request.additional_properties.get(_WAITS_FOR)
    return [escape_line(str(name)) for name in cast("list[Any]", names)] if isinstance(names, list) else None


def waits_for_people(request: Content) -> list[dict[str, Any]] | None:
    """Like `waits_for`, with account and channel. None also for requests of earlier versions."""
    people: Any = request.additional_properties.get(_PEOPLE)
    return cast("list[dict[str, Any]]", people) if isinstance(people, list) else None


def person_out(person: PersonName) -> dict[str, Any]:
    """Return a person in the format of the HTTP APIs. Roles have a name only."""
    if not person.native_id:
        return {"name": person.name}
    id_on = {"id": short_id(person.native_id), "channel": escape_line(person.channel)}
    return {"name": person.name or None, **id_on, "verified": person.verified}


def mark_shown(response: Content, approval_id: str) -> None:
    """Record in an approval response, which has the target's id, the displayed id of its question."""
    response.additional_properties = {**response.additional_properties, _SHOWN: approval_id}


def get_shown_id(response: Content) -> str:
    """Return the displayed id of the question of an approval response."""
    return str(response.additional_properties.get(_SHOWN) or response.id)
