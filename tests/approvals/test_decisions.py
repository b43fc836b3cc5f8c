"""Questions that are cancelled together: the messages that show them are settled in the same transaction."""

from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk import InMemoryStateStore
from frontdesk.approvals.decisions import Decisions
from frontdesk.errors import StoreError, UnreadableRecordError
from frontdesk.models.approval import PendingApproval
from frontdesk.models.delivery import Delivery
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW, OTHER, OWNER, delivery, question


class Settling:
    """Makes a delivery for each question, and remembers what it was asked."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        self.looked_again: list[tuple[str, str, str | None]] = []

    async def rows(self, question: PendingApproval, by: Any) -> Sequence[Delivery]:
        return [delivery(f"dlv_{question.approval_id}", payload=question.reason)]

    async def confirmations(self, event: Any, question: PendingApproval) -> Sequence[Delivery]:
        return ()

    async def rows_of_leavers(self, people: Any) -> Sequence[Delivery]:
        return ()

    async def wake(self, rows: Sequence[Delivery]) -> None:
        self.woken += [row.delivery_id for row in rows]

    async def settle_rest(self, question: PendingApproval, by: Any, rows: Sequence[Delivery]) -> None:
        self.looked_again.append((question.approval_id, question.status, question.reason))


async def add_approvals(store: InMemoryStateStore) -> None:
    async with store.transaction() as transaction:
        for approval_id in ("apr_1", "apr_2", "apr_3"):
            transaction.add_approval(question(approval_id))
        transaction.add_approval(question("apr_1", owner=OTHER))
    async with store.transaction() as transaction:
        # Decided, and nothing was done with it yet: what was shown of it stays.
        transaction.decide_approval(OWNER, "apr_3", "approved", at=NOW, attempt="att_1")


async def statuses(store: InMemoryStateStore) -> list[str]:
    questions = [await store.approvals.get(OWNER, f"apr_{number}") for number in (1, 2, 3)]
    return [question.status for question in questions if question is not None]


async def test_all_that_waits_is_cancelled_and_settled_at_once() -> None:
    store, settling = InMemoryStateStore(), Settling()
    await add_approvals(store)
    cancel, finish = await Decisions(store, FakeClock(NOW), None, settling).note_cancelled(OWNER, NOW + 1, "unlinked")
    async with store.transaction() as transaction:
        cancel(transaction)
    assert await statuses(store) == ["cancelled"] * 3
    rows = {row.delivery_id: row.payload for row in await store.outbox.find(limit=10)}
    assert rows == {"dlv_apr_1": "unlinked", "dlv_apr_2": "unlinked"}
    await finish()
    assert settling.woken == ["dlv_apr_1", "dlv_apr_2"]
    assert settling.looked_again == [("apr_1", "cancelled", "unlinked"), ("apr_2", "cancelled", "unlinked")]


async def test_if_nothing_is_written_nothing_is_settled() -> None:
    store, settling = InMemoryStateStore(), Settling()
    await add_approvals(store)
    cancel, _ = await Decisions(store, FakeClock(NOW), None, settling).note_cancelled(OWNER, NOW + 1, "unlinked")

    async def fail() -> None:
        async with store.transaction() as transaction:
            cancel(transaction)
            transaction.decide_approval(OWNER, "apr_none", "approved", at=NOW)

    with pytest.raises(StoreError):
        await fail()
    assert (await statuses(store), list(await store.outbox.find(limit=10))) == (["pending", "pending", "approved"], [])


async def test_what_only_a_newer_version_can_read_is_cancelled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    store, settling = InMemoryStateStore(), Settling()
    await add_approvals(store)

    async def unreadable(owner: str) -> Sequence[PendingApproval]:
        raise UnreadableRecordError

    monkeypatch.setattr(store.approvals, "pending", unreadable)
    cancel, finish = await Decisions(store, FakeClock(NOW), None, settling).note_cancelled(OWNER, NOW + 1, "unlinked")
    async with store.transaction() as transaction:
        cancel(transaction)
    await finish()
    assert (await statuses(store), settling.woken) == (["cancelled"] * 3, [])
