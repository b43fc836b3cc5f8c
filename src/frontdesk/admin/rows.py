"""Records as operators see them: without secrets, and without message text unless requested. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from frontdesk.display.person_names import plain_name
from frontdesk.identifiers import digest
from frontdesk.models.delivery import CANCELLED
from frontdesk.models.operations import LedgerKind, LedgerRow

Row = dict[str, Any]
_DIGITS = 16


def summary(kind: LedgerKind, row: LedgerRow) -> Row:
    """Return a list row. Its `seen` changes whenever anything else in it does."""
    shown = _SUMMARIES[kind](row.columns, _record(kind, row))
    if row.record is None and kind != "audit":
        shown["readable"] = False
    return {**shown, "seen": digest(msgspec.json.encode(shown, order="sorted").decode())[:_DIGITS]}


def details(kind: LedgerKind, row: LedgerRow, *, content: bool = False) -> Row:
    """Return the details of a row in addition to its summary. With `content`, include the text of messages."""
    record = _record(kind, row)
    shown = _DETAILS[kind](row.columns, record)
    return {**shown, **_CONTENTS[kind](row.columns, record)} if content else shown


def _record(kind: LedgerKind, row: LedgerRow) -> Mapping[str, Any]:
    record = row.record or {}
    return _tree(record.get("delivery")) if kind == "deliveries" and "delivery" in record else record


def _tree(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _name(identity: Mapping[str, Any]) -> str | None:
    name = _tree(identity.get("attributes")).get("name")
    return name if isinstance(name, str) else None


def _session(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {
        "session_id": record.get("session_id", columns["session_id"]),
        "person": record.get("owner", columns["owner"]),
        "turns": record.get("turns", 0),
        "messages": record.get("messages", 0),
        "created_at": record.get("created_at"),
        "updated_at": columns["updated_at"],
    }


def _session_details(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {"key": record.get("key"), "branched_from": columns["parent_id"]}


def _run(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {
        "run_id": record.get("run_id", columns["run_id"]),
        "status": record.get("status"),
        "person": record.get("owner", columns["owner"]),
        "channel": record.get("channel"),
        "session_id": record.get("session_id"),
        "background": columns["kind"] == "background",
        "cancelling": bool(columns["cancelled"]),
        "fence": columns["fence"],
        "created_at": record.get("created_at"),
        "ended_at": columns["ended_at"],
        "error": _tree(record.get("failure")).get("code"),
    }


def _run_details(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {"previous_run_id": record.get("previous_run_id"), "taken_up": bool(columns["holder"])}


def _run_content(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    failure = _tree(record.get("failure")).get("message")
    return {"input": record.get("input"), "result": record.get("result"), "failure": failure}


def _delivery(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    part = f"{record.get('part', 0) + 1} of {record.get('parts', 1)}"
    return {
        "delivery_id": record.get("delivery_id", columns["delivery_id"]),
        "status": columns["status"],
        "channel": record.get("channel", columns["channel"]),
        "to": _tree(record.get("identity")).get("native_id"),
        "part": part if record else None,
        "attempts": columns["attempts"],
        "created_at": record.get("created_at"),
        "error": columns["error"],
        "run_id": record.get("run_id", columns["run_id"]),
        "person": record.get("owner", columns["owner"]),
        "fence": columns["fence"],
    }


def _delivery_details(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    history = [_tree(attempt) for attempt in columns["history"] or ()]
    return {
        "conversation": record.get("conversation_id"),
        "echo": record.get("is_echo", False),
        "action": record.get("action", "send"),
        "receipt": columns["receipt"],
        "due_at": columns["due_at"] if columns["ended_at"] is None else None,
        "ended_at": columns["ended_at"],
        "history": [{"at": attempt.get("at"), "what": attempt.get("code")} for attempt in history],
    }


def _delivery_content(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {"payload": record.get("payload")}


def _approval(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    requester = _tree(_tree(record.get("requester")).get("identity"))
    return {
        "approval_id": record.get("approval_id", columns["approval_id"]),
        "status": columns["status"],
        "tool": record.get("tool"),
        "person": record.get("owner", columns["owner"]),
        "channel": requester.get("channel"),
        "session_id": record.get("session_id", columns["session_id"]),
        "run_id": record.get("run_id"),
        "created_at": record.get("created_at"),
        "expires_at": columns["expires_at"],
        "decided_at": columns["decided_at"],
        "acted_on": columns["status"] != "pending" and bool(columns["begun"]),
        **_requester(record),
    }


def _requester(record: Mapping[str, Any]) -> Row:
    identity, shown = _tree(_tree(record.get("requester")).get("identity")), _tree(record.get("requester_name"))
    given = shown.get("name") if shown else plain_name(_name(identity))
    return {
        "requester": identity.get("native_id"),
        "requester_name": given or None,
        "requester_name_verified": bool(shown.get("verified", False)),
    }


def _approval_details(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {**_rule(record.get("rule", "requester")), "digest": record.get("digest")}


def _rule(rule: Any) -> Row:
    if not isinstance(rule, dict):
        return {"rule": rule}
    terms = _tree(cast("Any", rule))
    people = [_tree(person) for person in _items(terms.get("approvers"))]
    named = [f"{person.get('native_id')} on {person.get('channel')}" for person in people]
    shown = [_tree(person) for person in _items(terms.get("people"))]
    return {
        "rule": "approvers",
        "approvers": named,
        "votes_needed": terms.get("votes", 1),
        "waits_for_people": [
            {
                "name": person.get("name") or None,
                "id": person.get("native_id"),
                "channel": person.get("channel"),
                "verified": person.get("verified", False),
            }
            for person in shown
        ],
    }


def _items(value: Any) -> list[Any]:
    tree = _tree(value)
    given: Any = tree.get("items") if tree else value
    return cast("list[Any]", given) if isinstance(given, list) else []


def _approval_content(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    call = _tree(_tree(record.get("request")).get("function_call"))
    return {"arguments": call.get("arguments"), "reason": columns["reason"]}


def _person(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    identity = _tree(record.get("identity"))
    return {
        "channel": identity.get("channel", columns["channel"]),
        "id": identity.get("native_id", columns["native_id"]),
        "name": _name(identity),
        "person": record.get("isolation_key", columns["isolation_key"]),
        "created_at": record.get("created_at"),
        "seen_at": columns["seen_at"],
    }


def _person_details(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {"earlier_keys": len(record.get("archived", ())), "version": columns["version"]}


def _link(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    identity = _tree(record.get("identity"))
    return {
        "channel": identity.get("channel", columns["channel"]),
        "id": identity.get("native_id", columns["native_id"]),
        "name": _name(identity),
        "linked_at": columns["linked_at"] or record.get("linked_at"),
        "linker": record.get("linker"),
        "person": record.get("isolation_key", columns["isolation_key"]),
        "link_id": record.get("link_id"),
    }


def _link_details(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {
        "subject": record.get("subject"),
        # The names of claims only: their values are private, as that somebody is in a group.
        "claims": sorted(_tree(record.get("claims"))),
        "owns_the_key": record.get("previous_key") is None,
    }


def _event(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {
        "number": columns["number"],
        "status": _event_status(columns),
        "channel": record.get("channel", columns["channel"]),
        "event_id": record.get("event_id", columns["event_id"]),
        "conversation": record.get("conversation_id", columns["conversation_id"]),
        "kind": columns["kind"],
        "sender": _tree(_tree(record.get("caller")).get("identity")).get("native_id"),
        "attempts": columns["attempts"],
        "received_at": record.get("received_at"),
        "done_at": columns["done_at"],
        "error": columns["error"],
        "cancelling": columns["done_at"] is None and columns["cancelled"] is not None,
        "fence": columns["fence"],
    }


def _event_status(columns: Mapping[str, Any]) -> str:
    if columns["done_at"] is None:
        return "working" if columns["holder"] else "waiting"
    return "done" if columns["error"] is None else "cancelled" if columns["error"] == CANCELLED else "failed"


def _event_details(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    request = _tree(record.get("request"))
    return {"run_id": record.get("run_id"), "operation": request.get("operation"), "group": request.get("group", False)}


def _event_content(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {"input": _tree(record.get("request")).get("input")}


def _line(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {
        "number": columns["number"],
        "at": columns["at"],
        "action": columns["action"],
        "subject": columns["subject"],
        "by": columns["actor"],
        "person": columns["owner"],
    }


def _reason(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {"reason": columns["reason"]}


def _nothing(columns: Mapping[str, Any], record: Mapping[str, Any]) -> Row:
    return {}


_View = Callable[[Mapping[str, Any], Mapping[str, Any]], Row]
_SUMMARIES: Mapping[LedgerKind, _View] = {
    "sessions": _session,
    "runs": _run,
    "deliveries": _delivery,
    "approvals": _approval,
    "people": _person,
    "links": _link,
    "inbox": _event,
    "audit": _line,
}
_DETAILS: Mapping[LedgerKind, _View] = {
    "sessions": _session_details,
    "runs": _run_details,
    "deliveries": _delivery_details,
    "approvals": _approval_details,
    "people": _person_details,
    "links": _link_details,
    "inbox": _event_details,
    "audit": _nothing,
}
_CONTENTS: Mapping[LedgerKind, _View] = {
    "sessions": _nothing,
    "runs": _run_content,
    "deliveries": _delivery_content,
    "approvals": _approval_content,
    "people": _nothing,
    "links": _nothing,
    "inbox": _event_content,
    "audit": _reason,
}
