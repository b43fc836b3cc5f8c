"""`frontdesk links`: shows links, and revokes them."""

import asyncio
import json
from argparse import Namespace
from collections.abc import AsyncIterator
from typing import Any, cast

from frontdesk.access.identify import IdentityKeys
from frontdesk.access.links import Links
from frontdesk.cli.mistakes import CommandError
from frontdesk.cli.places import place_of, store_at
from frontdesk.cli.tables import cell, print_table, show_audit
from frontdesk.cli.terminal import visible
from frontdesk.clock import SystemClock
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import LinkRecord
from frontdesk.ids import RandomIds
from frontdesk.kit.auth.key_file import time_of
from frontdesk.stores.sql.store import SqlStateStore

_PAGE = 500
_COLUMNS = ("channel", "id", "name", "linked_at", "linker", "person")
_NOBODY_TOLD = "Nobody was told: only a host can do that."
_SEEN = "A host that runs sees it within a second."


def run(arguments: Namespace) -> int:
    """Run an action of `frontdesk links`."""
    place = place_of("--state", arguments.state, arguments.state_env)
    with store_at(place) as store:
        return asyncio.run(_run(arguments, store, live=isinstance(place, str)))


async def _run(arguments: Namespace, store: SqlStateStore, *, live: bool) -> int:
    try:
        await store.open()
        if arguments.action == "list":
            return await _list(store, as_json=arguments.json)
        identity = ChannelIdentity(channel=arguments.channel, native_id=arguments.native_id)
        link = await store.identities.link(identity)
        if link is None:
            raise CommandError(f"{visible(identity.native_id)} on {visible(identity.channel)} is not linked")
        if arguments.action == "show":
            return await _show(store, link, as_json=arguments.json)
        return await _revoke(store, link, live=live)
    finally:
        await store.close()


async def _list(store: SqlStateStore, *, as_json: bool) -> int:
    rows = [_row(link) async for link in _all(store)]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(_COLUMNS, rows)
    return 0


async def _all(store: SqlStateStore) -> AsyncIterator[LinkRecord]:
    after: ChannelIdentity | None = None
    while page := await store.identities.all_links(after=after, limit=_PAGE):
        for link in page:
            yield link
        after = page[-1].identity


async def _show(store: SqlStateStore, link: LinkRecord, *, as_json: bool) -> int:
    family = await store.identities.links(link.isolation_key)
    shown = _row(link) | {
        "link_id": link.link_id,
        "subject": link.subject,
        # The names of claims only: their values are private, as that somebody is in a group.
        "claims": sorted(link.claims),
        "owns_the_key": link.previous_key is None,
        "linked_with": [_row(other) for other in family if other.identity.key != link.identity.key],
    }
    if as_json:
        print(json.dumps(shown, indent=2))
        return 0
    for name, value in shown.items():
        print(f"{name + ':':14}{_text(value)}")
    return 0


async def _revoke(store: SqlStateStore, link: LinkRecord, *, live: bool) -> int:
    show_audit()
    ids, clock = RandomIds(), SystemClock()
    before = {other.identity.key: other for other in await store.identities.links(link.isolation_key)}
    await Links(store, IdentityKeys(store, ids, clock), ids, clock).part(link.identity)
    after = {other.identity.key for other in await store.identities.links(link.isolation_key)}
    print(f"{_name(link)} is no longer linked. {_SEEN if live else _NOBODY_TOLD}")
    for key, other in before.items():
        if key not in after and key != link.identity.key:
            print(f"{_name(other)} was linked through it, and is not any more.")
    if live:
        print(_NOBODY_TOLD)
    return 0


def _row(link: LinkRecord) -> dict[str, Any]:
    name = link.identity.attributes.get("name")
    return {
        "channel": link.identity.channel,
        "id": link.identity.native_id,
        "name": name if isinstance(name, str) else None,
        "linked_at": time_of(link.linked_at),
        "linker": link.linker,
        "person": link.isolation_key,
    }


def _name(link: LinkRecord) -> str:
    return f"{visible(link.identity.native_id)} on {visible(link.identity.channel)}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        texts = (item if isinstance(item, str) else f"{item['id']} on {item['channel']}" for item in items)
        return ", ".join(map(visible, texts))
    return visible(cell(value)) or "-"
