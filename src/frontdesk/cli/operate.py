"""`frontdesk sessions`, `runs`, `deliveries` and so on: list records of all owners, show one, or act on it."""

import json
import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from frontdesk.admin.client import user_name
from frontdesk.auth.api_keys import extract_time, parse_seconds
from frontdesk.cli.admin_client import AdminClient, open_client
from frontdesk.cli.operator_options import KINDS
from frontdesk.cli.terminal import CommandError, cell, name_cells, print_table, show_audit, visible
from frontdesk.clock import SystemClock

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sessions": ("session_id", "person", "turns", "messages", "updated_at"),
    "runs": ("run_id", "status", "person", "channel", "session_id", "created_at", "ended_at", "error"),
    "deliveries": ("delivery_id", "status", "channel", "to", "part", "attempts", "created_at", "error"),
    "approvals": ("approval_id", "status", "tool", "requester", "channel", "person", "created_at", "expires_at"),
    "people": ("channel", "id", "name", "person", "seen_at"),
    "links": ("channel", "id", "name", "linked_at", "linker", "person"),
    "inbox": ("number", "status", "channel", "conversation", "sender", "attempts", "received_at", "error"),
    "audit": ("number", "at", "action", "subject", "by", "by_name", "person", "person_name"),
}
_PAGE_ROWS = 200
_MAX_PAGES = 50
_LENGTH = re.compile(r"([1-9][0-9]{0,5})([mhd])")
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_AGO = {
    "host": "The host does it at once.",
    "shared": "A host or a worker that runs does it within a few seconds.",
    "alone": "It is done when the host is started.",
}
_TOLD = {
    "host": "The people concerned were notified where the host can reach them.",
    "shared": "A running host applies it within a second. No one was notified: only a running host can do that.",
    "alone": "No one was notified: only a running host can do that.",
}


def run(arguments: Namespace) -> int:
    with open_client(arguments) as client:
        if arguments.action == "list":
            return _list(client, arguments)
        if arguments.action == "show":
            return _show(client, arguments)
        if arguments.action == "export":
            return _export(client, arguments)
        return _act(client, arguments)


def _list(client: AdminClient, arguments: Namespace) -> int:
    kind: str = arguments.command
    given = {name: getattr(arguments, name) for name in KINDS[kind].filters}
    filters = {name: str(value) for name, value in given.items() if value is not None}
    if "since" in filters:
        filters["since"] = repr(_since(filters["since"]))
    rows: list[dict[str, Any]] = []
    cursor, scanned = arguments.after, 0
    for _ in range(_MAX_PAGES):
        wanted = min(_PAGE_ROWS, arguments.limit - len(rows))
        asked = {"kind": kind, "filters": filters, "after": cursor, "limit": wanted}
        page = client.call("page", asked)
        rows += map(_readable, page["items"])
        cursor, scanned = page["next"], scanned + page["scanned"]
        if cursor is None or len(rows) >= arguments.limit:
            break
    counts = client.call("counts", {}) if kind == "deliveries" else None
    if arguments.json:
        more = {} if counts is None else {"counts": counts}
        print(json.dumps({kind: rows, **more, "next": cursor, "scanned": scanned}, indent=2))
        return 0
    print_table(COLUMNS[kind], [name_cells(kind, row) for row in rows])
    if counts is not None:
        summary = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        print(f"All together: {summary or 'none'}.")
    if cursor is not None:
        print(f"There may be more: --after {cursor}")
    return 0


def _since(text: str) -> float:
    length = _LENGTH.fullmatch(text)
    try:
        return SystemClock().now() - int(length[1]) * _UNITS[length[2]] if length else parse_seconds(text)
    except ValueError as error:
        raise CommandError(f"--since: {error}, or like 30m, 12h or 7d") from None


def _readable(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    if name in _LINES:
        return [_readable(line) for line in value]
    is_time = (name == "at" or name.endswith("_at")) and isinstance(value, (int, float))
    return extract_time(value) if is_time else value


_LINES = ("history", "linked_with", "last_messages", "shown_to", "votes", "audit")


def _export(client: AdminClient, arguments: Namespace) -> int:
    """Print a JSON line for each question: content, recipients, votes and audit log."""
    filters = {} if arguments.status is None else {"status": arguments.status}
    if arguments.since is not None:
        filters["since"] = repr(_since(arguments.since))
    cursor, by = None, arguments.by or user_name()
    while True:
        page = client.call("page", {"kind": "approvals", "filters": filters, "after": cursor, "limit": _PAGE_ROWS})
        for row in page["items"]:
            asked = {"kind": "approvals", "name": {"id": row["approval_id"], "person": row["person"]}}
            print(json.dumps(_readable(client.call("show", {**asked, "content": True, "export": True, "by": by}))))
        cursor = page["next"]
        if cursor is None:
            return 0


def _show(client: AdminClient, arguments: Namespace) -> int:
    asked = {"kind": arguments.command, "name": _name(arguments), "content": arguments.content, "by": user_name()}
    shown = _readable(client.call("show", asked))
    if arguments.json:
        print(json.dumps(shown, indent=2))
        return 0
    shown = name_cells(arguments.command, shown)
    lines = [name for name in _LINES if name in shown and name != "linked_with"]
    width = max(len(name) for name in shown) + 2
    for name, value in shown.items():
        if name not in lines:
            print(f"{name + ':':{width}}{_text(name, value)}")
    for name in lines:
        for line in shown[name]:
            print("  " + "  ".join(visible(cell(value)) for value in line.values()))
    return 0


def _text(name: str, value: Any) -> str:
    if name == "linked_with":
        return visible(", ".join(f"{other['id']} on {other['channel']}" for other in value)) or "-"
    if name == "claims":
        return visible(", ".join(value)) or "-"
    if isinstance(value, (list, dict)):
        return visible(json.dumps(value, ensure_ascii=False))
    return visible(cell(value)) or "-"


def _name(arguments: Namespace) -> dict[str, str]:
    given = {name: getattr(arguments, name, None) for name in ("channel", "id", "person")}
    return {name: value for name, value in given.items() if value is not None}


def _act(client: AdminClient, arguments: Namespace) -> int:
    show_audit()
    kind, name = arguments.command, _name(arguments)
    before = client.call("show", {"kind": kind, "name": name})
    seen = arguments.seen or before["seen"]
    action = ("approve" if arguments.yes else "reject") if arguments.action == "answer" else arguments.action
    asked = {"kind": kind, "action": action, "name": name, "seen": seen, "by": arguments.by or user_name()}
    if arguments.action == "answer":
        asked["reason"] = arguments.reason
    after = client.call("act", asked)
    print(_OUTCOMES[kind, action](before, after, client))
    return 0


def _describe_retried(before: Mapping[str, Any], after: Mapping[str, Any], client: AdminClient) -> str:
    return f"{visible(str(before['delivery_id']))} is tried again. {_AGO[client.where]}"


def _describe_dropped(before: Mapping[str, Any], after: Mapping[str, Any], client: AdminClient) -> str:
    return f"{visible(str(before['delivery_id']))} is dropped."


def _describe_cancelled_run(before: Mapping[str, Any], after: Mapping[str, Any], client: AdminClient) -> str:
    name = visible(str(before["run_id"]))
    if after["status"] == "cancelled":
        return f"{name} is cancelled."
    return f"{name} is to be cancelled. {_AGO[client.where]}"


def _describe_cancelled_event(before: Mapping[str, Any], after: Mapping[str, Any], client: AdminClient) -> str:
    if after["status"] in ("waiting", "working") and "gone" not in after:
        return f"Event {before['number']} is to be cancelled. {_AGO[client.where]}"
    return f"Event {before['number']} is cancelled."


def _describe_cancelled_approval(before: Mapping[str, Any], after: Mapping[str, Any], client: AdminClient) -> str:
    left = "" if client.where == "host" else " Messages that show it keep their buttons."
    return f"{visible(str(before['approval_id']))} is cancelled.{left}"


def _describe_answered(before: Mapping[str, Any], after: Mapping[str, Any], client: AdminClient) -> str:
    left = "" if client.where == "host" else " Messages that show it keep their buttons."
    return f"{visible(str(before['approval_id']))} is {after['status']}. {_AGO[client.where]}{left}"


def _describe_revoked(before: Mapping[str, Any], after: Mapping[str, Any], client: AdminClient) -> str:
    lines = [f"{_account(before)} is no longer linked. {_TOLD[client.where]}"]
    rest = client.call("page", {"kind": "links", "filters": {"person": before["person"]}})["items"]
    staying = {(link["channel"], link["id"]) for link in rest}
    lines += [
        f"{_account(other)} was linked through it, and is not any more."
        for other in before["linked_with"]
        if (other["channel"], other["id"]) not in staying
    ]
    return "\n".join(lines)


def _account(link: Mapping[str, Any]) -> str:
    return f"{visible(str(link['id']))} on {visible(str(link['channel']))}"


_OUTCOMES: Mapping[tuple[str, str], Callable[[Mapping[str, Any], Mapping[str, Any], AdminClient], str]] = {
    ("deliveries", "retry"): _describe_retried,
    ("deliveries", "drop"): _describe_dropped,
    ("runs", "cancel"): _describe_cancelled_run,
    ("inbox", "cancel"): _describe_cancelled_event,
    ("approvals", "cancel"): _describe_cancelled_approval,
    ("approvals", "approve"): _describe_answered,
    ("approvals", "reject"): _describe_answered,
    ("links", "revoke"): _describe_revoked,
}
