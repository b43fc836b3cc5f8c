"""The contract of stores for answers: an answer may be repeated until it takes effect, and takes effect once."""

import asyncio

import pytest

from frontdesk.errors import LostAnswerError, StoreError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import ApprovalStatus, PendingApproval
from frontdesk_testing.store_samples import NOW, OTHER, OWNER, question


class Answers:
    """Attempts to act on the answer to a question."""

    async def test_the_same_answer_counts_again_until_it_is_acted_on(self, store: HostStateStore) -> None:
        await _ask(store)
        await _decide(store, "approved", "att_1")
        assert [approval.approval_id for approval in await store.approvals.pending(OWNER)] == ["apr_1"]
        await _decide(store, "approved", "att_2", reason="again")
        approval = await _get_approval(store)
        assert (approval.status, approval.attempt, approval.begun, approval.reason) == (
            "approved",
            "att_2",
            False,
            "again",
        )
        for other in ("rejected", "cancelled"):
            assert not await _decided(store, other, "att_3")
        await _begin(store, "att_2")
        for status in ("approved", "rejected", "cancelled"):
            assert not await _decided(store, status, "att_3")
        approval = await _get_approval(store)
        assert (approval.status, approval.attempt, approval.begun) == ("approved", "att_2", True)
        assert list(await store.approvals.pending(OWNER)) == []

    async def test_only_the_attempt_that_has_the_answer_begins(self, store: HostStateStore) -> None:
        await _ask(store)
        with pytest.raises(LostAnswerError):
            await _begin(store, "att_1")
        await _decide(store, "approved", "att_1")
        await _decide(store, "approved", "att_2")
        with pytest.raises(LostAnswerError):
            await _begin(store, "att_1")
        assert not (await _get_approval(store)).begun
        # An attempt that got no answer to its write repeats it.
        await _begin(store, "att_2")
        await _begin(store, "att_2")
        with pytest.raises(LostAnswerError):
            await _begin(store, "att_1")

    async def test_nothing_is_written_with_a_beginning_that_is_refused(self, store: HostStateStore) -> None:
        await _ask(store)
        await _decide(store, "approved", "att_1")
        with pytest.raises(LostAnswerError):
            await _begin(store, "att_0", question("apr_2"))
        assert await store.approvals.get(OWNER, "apr_2") is None

    async def test_an_answer_that_is_given_back_counts_again(self, store: HostStateStore) -> None:
        await _ask(store)
        await _decide(store, "rejected", "att_1")
        await _begin(store, "att_1")
        for attempt in ("att_0", "att_1"):
            async with store.transaction() as transaction:
                transaction.release_approval(OWNER, "apr_1", attempt)
            approval = await _get_approval(store)
            assert (approval.status, approval.begun) == ("rejected", attempt == "att_0")
        # What the attempt has sent before arrives too late.
        with pytest.raises(LostAnswerError):
            await _begin(store, "att_1")
        assert not await _decided(store, "approved", "att_2")
        await _decide(store, "rejected", "att_2")
        await _begin(store, "att_2")

    async def test_an_answer_that_was_not_acted_on_is_cancelled_too(self, store: HostStateStore) -> None:
        await _ask(store, "apr_1", "apr_2")
        for number in (1, 2):
            await _decide(store, "approved", f"att_{number}", approval_id=f"apr_{number}")
        async with store.transaction() as transaction:
            transaction.begin_approval(OWNER, "apr_2", "att_2")
        async with store.transaction() as transaction:
            transaction.cancel_approvals(OWNER, at=NOW + 9, reason="unlinked")
        approvals = await store.approvals.of_session(OWNER, "ses_1")
        assert [(approval.status, approval.reason) for approval in approvals] == [
            ("cancelled", "unlinked"),
            ("approved", None),
        ]
        with pytest.raises(LostAnswerError):
            await _begin(store, "att_1")
        assert not await _decided(store, "approved", "att_3")
        assert list(await store.approvals.pending(OWNER)) == []

    async def test_of_twenty_attempts_at_once_one_begins(self, store: HostStateStore) -> None:
        await _ask(store)

        async def act(number: int) -> bool:
            if not await _decided(store, "approved", f"att_{number}"):
                return False
            try:
                await _begin(store, f"att_{number}")
            except LostAnswerError:
                return False
            return True

        acted = await asyncio.gather(*(act(number) for number in range(20)))
        assert acted.count(True) == 1
        assert (await _get_approval(store)).attempt == f"att_{acted.index(True)}"

    async def test_an_attempt_has_nothing_of_another_owner_s(self, store: HostStateStore) -> None:
        await _ask(store)
        async with store.transaction() as transaction:
            transaction.add_approval(question(owner=OTHER))
        await _decide(store, "approved", "att_1")
        with pytest.raises(LostAnswerError):
            async with store.transaction() as transaction:
                transaction.begin_approval(OTHER, "apr_1", "att_1")
        async with store.transaction() as transaction:
            transaction.release_approval(OTHER, "apr_1", "att_1")
        assert (await _get_approval(store)).attempt == "att_1"
        assert [approval.status for approval in await store.approvals.pending(OTHER)] == ["pending"]


async def _ask(store: HostStateStore, *ids: str) -> None:
    async with store.transaction() as transaction:
        for approval_id in ids or ("apr_1",):
            transaction.add_approval(question(approval_id))


async def _decide(
    store: HostStateStore,
    status: ApprovalStatus,
    attempt: str,
    *,
    reason: str | None = None,
    approval_id: str = "apr_1",
) -> None:
    async with store.transaction() as transaction:
        transaction.decide_approval(OWNER, approval_id, status, at=NOW + 1, reason=reason, attempt=attempt)


async def _decided(store: HostStateStore, status: ApprovalStatus, attempt: str) -> bool:
    try:
        await _decide(store, status, attempt)
    except StoreError:
        return False
    return True


async def _begin(store: HostStateStore, attempt: str, *asked: PendingApproval) -> None:
    async with store.transaction() as transaction:
        for approval in asked:
            transaction.add_approval(approval)
        transaction.begin_approval(OWNER, "apr_1", attempt)


async def _get_approval(store: HostStateStore) -> PendingApproval:
    approval = await store.approvals.get(OWNER, "apr_1")
    assert approval is not None
    return approval
