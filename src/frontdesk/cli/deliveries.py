"""`frontdesk deliveries`: what is on its way out, and what is done about what did not arrive."""

import asyncio
import json
from argparse import Namespace
from typing import Any

from frontdesk.cli.mistakes import CommandError
from frontdesk.cli.places import place_of, store_at
from frontdesk.cli.tables import cell, print_table, show_audit
from frontdesk.cli.terminal import visible
from frontdesk.clock import SystemClock
from frontdesk.data.delivery import Delivery
from frontdesk.errors import LostDeliveryError, RequestError
from frontdesk.host.deliveries import Deliveries
from frontdesk.kit.auth.key_file import time_of
from frontdesk.stores.sql.store import SqlStateStore

_COLUMNS = ("delivery_id", "status", "channel", "to", "part", "attempts", "created_at", "error")
_BY = "the command line"
_LIVE = "A host or a worker that runs does it within a few seconds."
_LATER = "It is done when the host is started."


def run(arguments: Namespace) -> int:
    """Does what is asked with the deliveries."""
    place = place_of("--state", arguments.state, arguments.state_env)
    with store_at(place) as store:
        return asyncio.run(_run(arguments, store, live=isinstance(place, str)))


async def _run(arguments: Namespace, store: SqlStateStore, *, live: bool) -> int:
    deliveries = Deliveries(store, SystemClock())
    try:
        await store.open()
        if arguments.action == "list":
            return await _list(deliveries, arguments, store)
        if arguments.action == "show":
            return _show(await deliveries.get(arguments.delivery_id), as_json=arguments.json)
        return await _change(deliveries, arguments, live=live)
    except RequestError as error:
        raise CommandError(error.message) from None
    except LostDeliveryError:
        raise CommandError("the delivery was changed meanwhile; look at it again") from None
    finally:
        await store.close()


async def _list(deliveries: Deliveries, arguments: Namespace, store: SqlStateStore) -> int:
    found = await deliveries.list(status=arguments.status, channel=arguments.channel, limit=arguments.limit)
    counts = await deliveries.counts()
    if arguments.json:
        shown = {"deliveries": [_row(one) for one in found], "counts": dict(counts), "unreadable": store.unreadable}
        print(json.dumps(shown, indent=2))
        return 0
    print_table(_COLUMNS, [_row(one) for one in found])
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    print(f"All together: {told or 'none'}.")
    if store.unreadable:
        print(f"{store.unreadable} more can't be read by this version of Frontdesk, and are left to a newer one.")
    return 0


def _show(found: Delivery, *, as_json: bool) -> int:
    shown = _row(found) | {
        "run_id": found.run_id,
        "person": found.owner,
        "conversation": found.conversation_id,
        "echo": found.is_echo,
        "receipt": found.receipt,
        "due_at": _time(found.due_at) if found.ended_at is None else None,
        "ended_at": _time(found.ended_at),
    }
    if as_json:
        history = [{"at": _time(one.at), "what": one.code} for one in found.history]
        print(json.dumps({**shown, "history": history}, indent=2))
        return 0
    for name, value in shown.items():
        print(f"{name + ':':14}{visible(cell(value)) or '-'}")
    for one in found.history:
        print(f"  {_time(one.at)}  {visible(one.code)}")
    return 0


async def _change(deliveries: Deliveries, arguments: Namespace, *, live: bool) -> int:
    show_audit()
    if arguments.action == "drop":
        dropped = await deliveries.drop(arguments.delivery_id, by=_BY)
        print(f"{visible(dropped.delivery_id)} is dropped.")
        return 0
    tried = await deliveries.retry(arguments.delivery_id, by=_BY)
    print(f"{visible(tried.delivery_id)} is tried again. {_LIVE if live else _LATER}")
    return 0


def _row(delivery: Delivery) -> dict[str, Any]:
    """What may be shown: not what it says."""
    return {
        "delivery_id": delivery.delivery_id,
        "status": delivery.status,
        "channel": delivery.channel,
        "to": delivery.identity.native_id,
        "part": f"{delivery.part + 1} of {delivery.parts}",
        "attempts": delivery.attempts,
        "created_at": _time(delivery.created_at),
        "error": delivery.error,
    }


def _time(at: float | None) -> str | None:
    return None if at is None else time_of(at)
