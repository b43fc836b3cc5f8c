"""`frontdesk people join-principals`: joins the identities that a principal has on several channels."""

import json
from argparse import Namespace
from threading import Event
from typing import Any

from frontdesk.admin.client import user_name
from frontdesk.cli.admin_client import REFUSED, AdminClient, open_client
from frontdesk.cli.terminal import CommandError, print_table, show_audit, visible

_COLUMNS = ("outcome", "id", "channel", "joins", "person", "person_there", "reason")
_PAGE_ROWS = 100


def run(arguments: Namespace) -> int:
    by = arguments.by or user_name()
    with open_client(arguments) as client:
        steps, channels = _all(client, "list", by)
        conflicts = [step for step in steps if step["outcome"] == "conflict"]
        if arguments.apply and not conflicts:
            if not arguments.json:
                show_audit()
            _apply(client, by)
    if arguments.json:
        print(
            json.dumps({"applied": arguments.apply and not conflicts, "channels": channels, "steps": steps}, indent=2)
        )
    else:
        _print(steps, channels)
    if arguments.apply and conflicts:
        raise CommandError(_CONFLICTS.format(len(conflicts)), exit_code=REFUSED)
    if not arguments.json:
        print(_summary(steps, channels, applied=arguments.apply))
    return 0


_CONFLICTS = (
    "nothing was joined: {} of these are linked in ways that exclude each other; end links with `frontdesk links "
    "revoke`, and run it again"
)


def _apply(client: AdminClient, by: str) -> None:
    _all(client, "join", by)
    switched = client.call("principals", {"action": "switch", "by": by})
    # Other hosts look at the rule every few seconds, and use the earlier identities until then.
    Event().wait(switched["wait_seconds"])
    _all(client, "close", by)


def _all(client: AdminClient, action: str, by: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    steps: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        page = client.call("principals", {"action": action, "by": by, "after": after, "limit": _PAGE_ROWS})
        steps += page["items"]
        after = page["next"]
        if after is None:
            return steps, page["channels"]


def _print(steps: list[dict[str, Any]], channels: dict[str, str]) -> None:
    for channel, home in sorted(channels.items()):
        print(f"Principals of {visible(channel)} become those of {visible(home)}.")
    if steps:
        print_table(_COLUMNS, steps)


def _summary(steps: list[dict[str, Any]], channels: dict[str, str], *, applied: bool) -> str:
    if not channels:
        return "No channels share an auth object, or no host with this version has used the state yet."
    if applied:
        return f"Joined: {len(steps)}. The channels share their principals from now on."
    return f"Nothing was changed. --apply would join {len(steps)}, and let the channels share their principals."
