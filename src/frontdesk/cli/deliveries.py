"""`frontdesk deliveries`: shows deliveries, and retries or drops those that failed."""

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
    """Run an action of `frontdesk deliveries`."""
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
    page = await deliveries.list(status=arguments.status, channel=arguments.channel, limit=arguments.limit)
    rows = [_row(delivery) for delivery in page]
    counts = await deliveries.counts()
    if arguments.json:
        shown = {"deliveries": rows, "counts": dict(counts), "unreadable": store.unreadable}
        print(json.dumps(shown, indent=2))
        return 0
    print_table(_COLUMNS, rows)
    summary = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    print(f"All together: {summary or 'none'}.")
    if store.unreadable:
        print(f"{store.unreadable} more can't be read by this version of Frontdesk, and are left to a newer one.")
    return 0


def _show(delivery: Delivery, *, as_json: bool) -> int:
    shown = _row(delivery) | {
        "run_id": delivery.run_id,
        "person": delivery.owner,
        "conversation": delivery.conversation_id,
        "echo": delivery.is_echo,
        "receipt": delivery.receipt,
        "due_at": _time(delivery.due_at) if delivery.ended_at is None else None,
        "ended_at": _time(delivery.ended_at),
    }
    if as_json:
        history = [{"at": _time(event.at), "what": event.code} for event in delivery.history]
        print(json.dumps({**shown, "history": history}, indent=2))
        return 0
    for name, value in shown.items():
        print(f"{name + ':':14}{visible(cell(value)) or '-'}")
    for event in delivery.history:
        print(f"  {_time(event.at)}  {visible(event.code)}")
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
    """Return the columns of a delivery, without its content."""
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
