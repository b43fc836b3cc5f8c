"""The contract of stores for background runs that have not ended."""

from typing import Any

import pytest

from frontdesk.errors import LostRunError, RunExistsError, TooManyRequestsError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.run import BackgroundRun, RunRecord
from frontdesk.models.session import CheckpointRef
from frontdesk_testing.store_samples import NOW, ODD_KEYS, OTHER, OWNER, event, job, run

ME, YOU = "host_me", "host_you"


class Background:
    """Runs that wait, and runs that a process works on."""

    async def test_a_run_that_waits_is_taken_up_once(self, store: HostStateStore) -> None:
        await _queue(store, job())
        assert await store.background.get(OWNER, "run_1") == job()
        (mine,) = await store.background.claim(ME, limit=5)
        assert mine == job(holder=ME, fence=1)
        assert list(await store.background.claim(ME, limit=5)) == []
        assert await store.background.get(OWNER, "run_1") == mine
        record = await store.runs.get(OWNER, "run_1")
        assert record is not None
        assert record.status == "queued"

    async def test_they_are_taken_up_in_their_order(self, store: HostStateStore) -> None:
        names = [f"run_{number}" for number in (3, 1, 2, 5, 4)]
        for name in names:
            await _queue(store, job(name))
        first = await store.background.claim(ME, limit=2)
        rest = await store.background.claim(ME, limit=9)
        assert [claimed.admitted.run_id for claimed in (*first, *rest)] == names

    async def test_an_owner_finds_their_own(self, store: HostStateStore) -> None:
        for name in ("run_2", "run_1"):
            await _queue(store, job(name))
        assert [owned.admitted.run_id for owned in await store.background.of_owner(OWNER)] == ["run_2", "run_1"]
        assert list(await store.background.of_owner(OTHER)) == []

    async def test_one_that_was_begun_at_once_does_not_wait(self, store: HostStateStore) -> None:
        await _queue(store, job(holder=ME, fence=1))
        assert list(await store.background.claim(ME, limit=5)) == []
        assert await store.background.get(OWNER, "run_1") == job(holder=ME, fence=1)

    async def test_an_id_is_queued_once(self, store: HostStateStore) -> None:
        await _queue(store, job())
        async with store.transaction() as transaction:
            transaction.save_run(run("run_2"))
        for name in ("run_1", "run_2"):
            with pytest.raises(RunExistsError):
                await _queue(store, job(name))
        assert await store.runs.get(OWNER, "run_2") == run("run_2")
        await _queue(store, job(owner=OTHER))
        assert len(await store.background.claim(ME, limit=9)) == 2

    async def test_only_so_many_wait_and_only_so_many_are_of_one_owner(self, store: HostStateStore) -> None:
        await _queue(store, job("run_1"), waiting=2, owned=2)
        await _queue(store, job("run_2"), waiting=2, owned=2)
        with pytest.raises(TooManyRequestsError, match="your") as own:
            await _queue(store, job("run_3"), waiting=9, owned=2)
        with pytest.raises(TooManyRequestsError, match="wait") as waiting:
            await _queue(store, job("run_3", owner=OTHER), waiting=2, owned=2)
        assert own.value.retry_after
        assert waiting.value.retry_after
        assert await store.runs.get(OTHER, "run_3") is None
        # What begins at once does not wait, and what was taken up waits no more.
        await _queue(store, job("run_4", owner=OTHER, holder=ME, fence=1), waiting=2, owned=2)
        await store.background.claim(ME, limit=1)
        await _queue(store, job("run_5", owner=OTHER), waiting=2, owned=2)

    async def test_how_far_it_is_is_kept(self, store: HostStateStore) -> None:
        await _queue(store, job())
        (mine,) = await store.background.claim(ME, limit=1)
        ref = CheckpointRef(session_id="ses_1", checkpoint_id="point")
        further = mine.replace(begun=True, checkpoint=ref, events=7)
        async with store.transaction() as transaction:
            transaction.save_job(further)
        assert await store.background.get(OWNER, "run_1") == further

    async def test_one_that_is_given_up_is_taken_by_another(self, store: HostStateStore) -> None:
        await _queue(store, job())
        (mine,) = await store.background.claim(ME, limit=1)
        async with store.transaction() as transaction:
            transaction.save_job(mine.replace(holder="", begun=True))
        (yours,) = await store.background.claim(YOU, limit=1)
        assert yours == job(holder=YOU, fence=2, begun=True)

    async def test_whoever_lost_it_writes_nothing_more(self, store: HostStateStore) -> None:
        await _queue(store, job())
        (mine,) = await store.background.claim(ME, limit=1)
        async with store.transaction() as transaction:
            transaction.save_job(mine.replace(holder=""))
        (yours,) = await store.background.claim(YOU, limit=1)
        for call, arguments in (("save_job", (mine,)), ("end_job", (mine,)), ("add_events", ([event(1)], mine))):
            with pytest.raises(LostRunError):
                await _write(store, call, *arguments)
        record = await store.runs.get(OWNER, "run_1")
        assert record is not None
        assert record.status == "queued"
        assert list(await store.background.renew([mine, yours])) == [yours]
        assert list(await store.runs.events(OWNER, "run_1")) == []

    async def test_the_end_is_written_with_the_last_events(self, store: HostStateStore) -> None:
        await _queue(store, job())
        (mine,) = await store.background.claim(ME, limit=1)
        every = [event(number) for number in range(1, 251)]
        async with store.transaction() as transaction:
            transaction.add_events(every[:200], mine)
        async with store.transaction() as transaction:
            transaction.add_events(every[200:], mine)
            transaction.save_run(run(finished_at=NOW))
            transaction.end_job(mine)
        assert list(await store.runs.events(OWNER, "run_1")) == every
        assert await store.background.get(OWNER, "run_1") is None
        assert await store.runs.get(OWNER, "run_1") == run(finished_at=NOW)
        with pytest.raises(LostRunError):
            async with store.transaction() as transaction:
                transaction.end_job(mine)

    async def test_the_wish_that_it_should_end_reaches_whoever_works_on_it(self, store: HostStateStore) -> None:
        await _queue(store, job())
        (mine,) = await store.background.claim(ME, limit=1)
        async with store.transaction() as transaction:
            transaction.cancel_job(OTHER, "run_1")
            transaction.cancel_job(OWNER, "run_unknown")
        assert list(await store.background.renew([mine])) == [mine]
        async with store.transaction() as transaction:
            transaction.cancel_job(OWNER, "run_1")
        assert list(await store.background.renew([mine])) == [mine.replace(cancelled=True)]
        async with store.transaction() as transaction:
            transaction.save_job(mine.replace(begun=True))
        stored = await store.background.get(OWNER, "run_1")
        assert stored is not None
        assert stored.cancelled

    async def test_a_cancellation_with_a_fence_is_for_the_run_that_was_seen(self, store: HostStateStore) -> None:
        await _queue(store, job())
        (mine,) = await store.background.claim(ME, limit=1)
        for owner, run_id, fence in ((OWNER, "run_1", mine.fence - 1), (OTHER, "run_1", mine.fence), (OWNER, "no", 0)):
            with pytest.raises(LostRunError):
                await _cancel_seen(store, owner, run_id, fence)
        assert list(await store.background.renew([mine])) == [mine]
        assert await store.runs.get(OWNER, "run_2") is None
        await _cancel_seen(store, OWNER, "run_1", mine.fence)
        assert list(await store.background.renew([mine])) == [mine.replace(cancelled=True)]

    async def test_a_deleted_run_is_no_work_any_more(self, store: HostStateStore) -> None:
        await _queue(store, job())
        async with store.transaction() as transaction:
            transaction.delete_run(OTHER, "run_1")
        assert await store.background.get(OWNER, "run_1") == job()
        async with store.transaction() as transaction:
            transaction.delete_run(OWNER, "run_1")
        assert list(await store.background.claim(ME, limit=1)) == []

    async def test_odd_ids_are_work_like_any_other(self, store: HostStateStore) -> None:
        for key in ODD_KEYS:
            await _queue(store, job(key, owner=key))
        assert [claimed.key for claimed in await store.background.claim(ME, limit=99)] == [
            (key, key) for key in ODD_KEYS
        ]


async def _cancel_seen(store: HostStateStore, owner: str, run_id: str, fence: int) -> None:
    async with store.transaction() as transaction:
        transaction.save_run(run("run_2"))
        transaction.cancel_job(owner, run_id, fence=fence)


async def _write(store: HostStateStore, call: str, *arguments: Any) -> None:
    async with store.transaction() as transaction:
        transaction.save_run(run(status="completed"))
        getattr(transaction, call)(*arguments)


async def _queue(store: HostStateStore, queued: BackgroundRun, *, waiting: int = 99, owned: int = 99) -> None:
    owner, run_id = queued.key
    record: RunRecord = run(run_id, owner=owner, status="queued", background=True)
    async with store.transaction() as transaction:
        transaction.queue_run(record, queued, most_waiting=waiting, most_of_owner=owned)
