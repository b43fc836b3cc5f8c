"""The contract of a store for the lists of operators."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.operations import INDEXED, PLACES, LedgerKind, LedgerRow
from frontdesk_testing.store_samples import (
    NOW,
    ODD_KEYS,
    OTHER,
    OWNER,
    audit_line,
    build_identity,
    build_messages,
    delivery,
    identity,
    inbox_item,
    job,
    keep_session,
    link,
    question,
    run,
    session,
)

KINDS: tuple[LedgerKind, ...] = tuple(PLACES)
_NAMES: Mapping[LedgerKind, str] = {
    "sessions": "session_id",
    "runs": "run_id",
    "deliveries": "delivery_id",
    "approvals": "approval_id",
    "people": "native_id",
    "links": "native_id",
    "inbox": "event_id",
    "audit": "subject",
}


async def fill(store: HostStateStore, count: int = 5) -> None:
    """Write some rows of each kind, of two owners in turn."""
    for number in range(count):
        owner = (OWNER, OTHER)[number % 2]
        channel = ("telegram", "slack")[number % 2]
        who = identity(f"n{number}", channel=channel)
        await keep_session(
            store, session(f"ses_{number}", owner=owner, updated_at=NOW + number), build_messages("hello")
        )
        async with store.transaction() as transaction:
            transaction.save_run(run(f"run_{number}", owner=owner, status=_outcome(number), finished_at=NOW + number))
            transaction.add_delivery(
                delivery(
                    f"dlv_{number}", owner=owner, channel=channel, run_id=f"run_{number}", status=_get_status(number)
                )
            )
            transaction.add_approval(question(f"apr_{number}", owner=owner))
            transaction.remember_identity(build_identity(who, owner))
            transaction.add_link(link(who, key=owner))
            transaction.accept(inbox_item(f"evt_{number}", channel=channel, chat=f"chat_{number}"))
            transaction.add_audit(audit_line(subject=f"apr_{number}").replace(owner=owner, by=owner))


def _outcome(number: int) -> Any:
    return "failed" if number == 1 else "completed"


def _get_status(number: int) -> Any:
    return "dead" if number == 1 else "pending"


def _names(kind: LedgerKind, rows: Sequence[LedgerRow]) -> list[str]:
    return [str(row.columns[_NAMES[kind]]) for row in rows]


async def _pages(store: HostStateStore, kind: LedgerKind, by: Mapping[str, str] | None, limit: int) -> list[LedgerRow]:
    listed: list[LedgerRow] = []
    while page := await store.ledger.rows(kind, by=by, after=listed[-1].place if listed else None, limit=limit):
        assert len(page) <= limit
        listed += page
    return listed


class Ledger:
    """Lists of operators."""

    @pytest.mark.parametrize("kind", KINDS)
    async def test_rows_of_every_owner_are_listed_page_by_page(self, store: HostStateStore, kind: LedgerKind) -> None:
        assert list(await store.ledger.rows(kind)) == []
        await fill(store)
        whole = list(await store.ledger.rows(kind))
        assert len(whole) == 5
        assert await _pages(store, kind, None, 2) == whole
        names = _names(kind, whole)
        if kind in ("people", "links"):
            assert names == ["n1", "n3", "n0", "n2", "n4"]
        else:
            assert [name[-1] for name in names] == ["4", "3", "2", "1", "0"]
        assert all(len(row.place) == len(PLACES[kind]) for row in whole)
        assert all(isinstance(value, PLACES[kind][at]) for row in whole for at, value in enumerate(row.place))

    @pytest.mark.parametrize("kind", KINDS)
    async def test_each_filter_leaves_the_rows_that_match(self, store: HostStateStore, kind: LedgerKind) -> None:
        await fill(store)
        for names in INDEXED[kind]:
            row = (await store.ledger.rows(kind))[3]
            by = {name: _value(kind, name, row) for name in names}
            if "status" in by and kind in ("runs", "deliveries"):
                by["status"] = "failed" if kind == "runs" else "dead"
            matching = await _pages(store, kind, by, 1)
            assert row.place in [each.place for each in matching]
            if by.get("status") not in ("pending", "waiting"):
                assert len(matching) < 5, names
            assert list(await store.ledger.rows(kind, by=dict.fromkeys(by, "nothing"))) == [] or "status" in by

    async def test_runs_that_go_on_come_first(self, store: HostStateStore) -> None:
        await fill(store)
        async with store.transaction() as transaction:
            queued = run("run_open", background=True, status="queued")
            transaction.queue_run(queued, job("run_open"), most_waiting=9, most_of_owner=9)
        rows = await store.ledger.rows("runs")
        assert _names("runs", rows)[0] == "run_open"
        assert (rows[0].columns["fence"], rows[0].columns["cancelled"], rows[1].columns["fence"]) == (0, 0, None)
        assert "run_open" in _names("runs", await store.ledger.rows("runs", by={"status": "queued"}))
        assert "run_open" not in _names("runs", await store.ledger.rows("runs", by={"status": "failed"}))

    async def test_an_event_that_failed_is_found(self, store: HostStateStore) -> None:
        await fill(store)
        item = await store.inbox.claim("slack", "chat_1", "host")
        assert item is not None
        async with store.transaction() as transaction:
            transaction.finish(item, error="down")
        failed = await store.ledger.rows("inbox", by={"status": "failed"})
        assert [(row.columns["event_id"], row.columns["error"]) for row in failed] == [("evt_1", "down")]
        assert len(await store.ledger.rows("inbox", by={"status": "waiting"})) == 4

    async def test_a_record_is_read_as_it_was_written(self, store: HostStateStore) -> None:
        await fill(store, 1)
        for kind in KINDS:
            row = (await store.ledger.rows(kind))[0]
            assert (row.record is None) is (kind == "audit")
        record = (await store.ledger.rows("deliveries"))[0].record
        assert record is not None
        assert record["payload"] == {"text": "hello"}

    async def test_odd_names_are_told_apart(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for name in ODD_KEYS:
                transaction.save_run(run("run_1", owner=name, finished_at=NOW))
        for name in ODD_KEYS:
            rows = await store.ledger.rows("runs", by={"person": name})
            assert [row.record["owner"] for row in rows if row.record] == [name]
        assert len(await _pages(store, "runs", {"id": "run_1"}, 7)) == len(ODD_KEYS)


def _value(kind: LedgerKind, name: str, row: LedgerRow) -> str:
    columns = row.columns
    if name == "status":
        return str(columns.get("status", "waiting"))
    if name == "id":
        return str(columns["number" if kind in ("inbox", "audit") else _NAMES[kind]])
    if name == "person":
        return str(columns.get("owner") or columns.get("isolation_key"))
    return str(columns[{"run": "run_id", "by": "actor"}.get(name, name)])
