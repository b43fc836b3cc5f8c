"""An attempt to act on answers writes that it begins, once, before any of its tools goes ahead."""

import asyncio
from typing import Any

import pytest

from frontdesk.approvals import answers as module
from frontdesk.approvals.answers import ApprovalAttempt
from frontdesk.errors import LostAnswerError, StoreUnavailableError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.store_samples import NOW, OWNER, question

YES = ApprovalAnswer(approval_id="apr_1", approved=True)


class Commits:
    """Holds the commits of a store, counts them, and may lose the replies to some."""

    def __init__(self, store: InMemoryStateStore) -> None:
        self.count = 0
        self.lost = 0
        self.go_on = asyncio.Event()
        self.reached = asyncio.Event()
        plain = store.transaction
        commits = self

        class Held:
            async def __aenter__(self) -> Any:
                self._transaction = plain()
                return await self._transaction.__aenter__()

            async def __aexit__(self, *given: Any) -> None:
                commits.reached.set()
                await commits.go_on.wait()
                commits.count += 1
                await self._transaction.__aexit__(*given)
                if commits.lost:
                    commits.lost -= 1
                    raise StoreUnavailableError

        store.transaction = Held  # type: ignore[method-assign, assignment]


@pytest.fixture
async def store() -> InMemoryStateStore:
    store = InMemoryStateStore()
    async with store.transaction() as transaction:
        transaction.add_approval(question())
    async with store.transaction() as transaction:
        transaction.decide_approval(OWNER, "apr_1", "approved", at=NOW, attempt="att_1")
    return store


async def _begun(store: HostStateStore) -> bool:
    found = await store.approvals.get(OWNER, "apr_1")
    assert found is not None
    return found.begun


async def test_of_two_tools_at_once_neither_goes_ahead_of_the_commit(store: InMemoryStateStore) -> None:
    commits, attempt = Commits(store), ApprovalAttempt(store, OWNER, [YES], "att_1")
    tools = [asyncio.create_task(attempt.begin(None)) for _ in range(2)]
    await commits.reached.wait()
    await asyncio.sleep(0)
    assert not any(one.done() for one in tools)
    commits.go_on.set()
    await asyncio.gather(*tools)
    assert (attempt.begun, commits.count, await _begun(store)) == (True, 1, True)


async def test_after_a_failure_no_tool_begins(store: InMemoryStateStore) -> None:
    attempt = ApprovalAttempt(store, OWNER, [YES], "att_0")
    for _ in range(2):
        with pytest.raises(LostAnswerError):
            await attempt.begin(None)
    await attempt.give_back()
    assert not attempt.begun
    assert not await _begun(store)


async def test_an_answer_was_lost_with_the_reply_to_its_beginning(
    store: InMemoryStateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_INTERVAL_SECONDS", 0.0)
    commits, attempt = Commits(store), ApprovalAttempt(store, OWNER, [YES], "att_1")
    commits.go_on.set()
    # The reply to the first try to give it back is lost too.
    commits.lost = 2
    with pytest.raises(StoreUnavailableError):
        await attempt.begin(None)
    assert await _begun(store)
    await attempt.give_back()
    assert (await _begun(store), commits.count) == (False, 3)


async def test_an_answer_was_lost_when_its_run_was_cancelled_during_the_commit(store: InMemoryStateStore) -> None:
    commits, attempt = Commits(store), ApprovalAttempt(store, OWNER, [YES], "att_1")
    beginning = asyncio.create_task(attempt.begin(None))
    await commits.reached.wait()
    beginning.cancel()
    await asyncio.wait([beginning])
    # It may have been written all the same.
    async with InMemoryStateStore.transaction(store) as transaction:
        transaction.begin_approval(OWNER, "apr_1", "att_1")
    commits.go_on.set()
    await attempt.give_back()
    assert not await _begun(store)
    with pytest.raises(asyncio.CancelledError):
        await attempt.begin(None)


async def test_what_has_begun_is_not_given_back(store: InMemoryStateStore) -> None:
    attempt = ApprovalAttempt(store, OWNER, [YES], "att_1")
    await attempt.begin(None)
    await attempt.give_back()
    assert await _begun(store)
