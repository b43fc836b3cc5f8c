"""The contract of stores for tasks."""

import asyncio
from collections.abc import Mapping
from typing import Any

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.operations import TaskRecord
from frontdesk_testing.store_samples import NOW, ODD_KEYS

ME, OTHER = "host_me", "host_other"


def task(task_id: str = "task_1", *, name: str = "mail", due_at: float = NOW, **payload: Any) -> TaskRecord:
    """Make a task as it is scheduled."""
    return TaskRecord(task_id=task_id, name=name, payload=payload, due_at=due_at)


async def claim_task(store: HostStateStore, task_id: str = "task_1", holder: str = ME, now: float = NOW) -> TaskRecord:
    """Claim a task that is due."""
    record = await store.tasks.claim(task_id, holder, now=now)
    assert record is not None
    return record


async def settle_task(store: HostStateStore, taken: TaskRecord) -> TaskRecord | None:
    """End a task with success."""
    return await store.tasks.settle(taken, "succeeded", due_at=taken.due_at, attempts=taken.attempts)


class Tasks:
    """Tasks that were scheduled."""

    async def test_a_task_is_read_as_it_was_scheduled(self, store: HostStateStore) -> None:
        assert await store.tasks.get("task_1") is None
        sample = task(text="\0", parts=[1, None, {"a": 1.5}])
        await store.tasks.schedule(sample)
        assert await store.tasks.get("task_1") == sample

    async def test_what_is_due_comes_in_its_order(self, store: HostStateStore) -> None:
        for task_id, seconds in {"b": 2.0, "a": 3.0, "c": 1.0, "later": 9.0}.items():
            await store.tasks.schedule(task(task_id, due_at=NOW + seconds))
        await store.tasks.schedule(task("foreign", name="other"))
        assert await self._due(store, NOW + 4) == ["c", "b", "a"]
        assert await self._due(store, NOW + 4, limit=2) == ["c", "b"]
        assert await self._due(store, NOW) == []

    async def _due(self, store: HostStateStore, before: float, limit: int = 100, holder: str = ME) -> list[str]:
        return [record.task_id for record in await store.tasks.due(["mail", "x"], before, holder=holder, limit=limit)]

    async def test_a_task_is_taken_up_when_it_is_due_and_the_attempt_counts(self, store: HostStateStore) -> None:
        await store.tasks.schedule(task(due_at=NOW + 1))
        assert await store.tasks.claim("task_1", ME, now=NOW) is None
        taken = await claim_task(store, now=NOW + 1)
        assert (taken.status, taken.attempts, taken.holder) == ("running", 1, ME)
        assert await store.tasks.claim("task_1", ME, now=NOW + 9) is None
        assert await self._due(store, NOW + 9) == []
        assert await store.tasks.claim("task_unknown", ME, now=NOW) is None

    async def test_of_twenty_that_want_a_task_one_gets_it(self, store: HostStateStore) -> None:
        await store.tasks.schedule(task())
        claims = await asyncio.gather(*(store.tasks.claim("task_1", ME, now=NOW) for _ in range(20)))
        assert sum(claim is not None for claim in claims) == 1

    async def test_a_task_that_waits_is_one_task_at_the_earlier_time(self, store: HostStateStore) -> None:
        await store.tasks.schedule(task(due_at=NOW + 5, text="first"))
        for seconds in (9, 2, 7):
            await store.tasks.schedule(task(due_at=NOW + seconds, text=str(seconds)))
        record = await store.tasks.get("task_1")
        assert record is not None
        assert (record.due_at, record.payload) == (NOW + 2, {"text": "first"})

    async def test_a_task_that_ended_is_known_and_begins_anew(self, store: HostStateStore) -> None:
        await store.tasks.schedule(task())
        settled = await settle_task(store, await claim_task(store))
        assert settled is not None
        assert await store.tasks.get("task_1") == settled
        assert (settled.status, settled.holder) == ("succeeded", "")
        assert await store.tasks.claim("task_1", OTHER, now=NOW) is None
        await store.tasks.schedule(task(text="new"))
        again = await claim_task(store, holder=OTHER)
        assert (again.attempts, again.payload) == (1, {"text": "new"})

    async def test_a_task_that_is_scheduled_while_it_runs_runs_again(self, store: HostStateStore) -> None:
        await store.tasks.schedule(task())
        taken = await claim_task(store)
        await store.tasks.schedule(task(due_at=NOW + 7))
        await store.tasks.schedule(task(due_at=NOW + 3, text="new"))
        settled = await settle_task(store, taken)
        assert settled is not None
        assert (settled.status, settled.due_at, settled.attempts) == ("pending", NOW + 3, 0)
        again = await claim_task(store, now=NOW + 3)
        assert again.payload == {"text": "new"}
        assert (await settle_task(store, again) or taken).status == "succeeded"

    async def test_a_task_that_failed_waits_with_its_attempts(self, store: HostStateStore) -> None:
        await store.tasks.schedule(task())
        taken = await claim_task(store)
        await store.tasks.settle(taken, "pending", due_at=NOW + 5, attempts=1, error="OSError \ud800")
        record = await store.tasks.get("task_1")
        assert record is not None
        assert (record.status, record.attempts, record.due_at, record.error) == (
            "pending",
            1,
            NOW + 5,
            "OSError \ud800",
        )
        assert (await claim_task(store, now=NOW + 5)).attempts == 2

    async def test_what_was_tried_and_is_due_too_far_ahead_is_found(self, store: HostStateStore) -> None:
        for task_id in ("soon", "b", "a", "runs"):
            await store.tasks.schedule(task(task_id))
            taken = await claim_task(store, task_id)
            if task_id != "runs":
                due_at = NOW + {"soon": 60.0, "a": 61.0, "b": 62.0}[task_id]
                await store.tasks.settle(taken, "pending", due_at=due_at, attempts=1, error="OSError")
        await store.tasks.schedule(task("untried", due_at=NOW + 90))
        stranded = await store.tasks.stranded(["mail"], NOW + 60, holder=ME, limit=9)
        assert [record.task_id for record in stranded] == ["a", "b"]
        assert [record.task_id for record in await store.tasks.stranded(["mail"], NOW, holder=ME, limit=1)] == ["soon"]
        assert list(await store.tasks.stranded(["other"], NOW, holder=ME, limit=9)) == []

    async def test_a_task_is_cancelled_once_and_nothing_of_it_counts_then(self, store: HostStateStore) -> None:
        assert not await store.tasks.cancel("task_1")
        await store.tasks.schedule(task("waits"))
        await store.tasks.schedule(task("runs"))
        taken = await claim_task(store, "runs")
        for task_id in ("waits", "runs"):
            assert await store.tasks.cancel(task_id)
            assert not await store.tasks.cancel(task_id)
        assert await settle_task(store, taken) is None
        assert list(await store.tasks.renew([taken])) == []
        records = [await store.tasks.get(task_id) for task_id in ("waits", "runs")]
        assert [record and record.status for record in records] == ["cancelled", "cancelled"]
        assert await self._due(store, NOW + 9) == []

    async def test_only_what_is_held_can_be_kept_and_settled(self, store: HostStateStore) -> None:
        await store.tasks.schedule(task())
        taken = await claim_task(store)
        assert list(await store.tasks.renew([taken])) == [taken]
        assert list(await store.tasks.renew([])) == []
        old = taken.replace(fence=taken.fence - 1)
        assert list(await store.tasks.renew([old, taken])) == [taken]
        assert await settle_task(store, old) is None
        assert await settle_task(store, taken) is not None
        assert await settle_task(store, taken) is None

    async def test_odd_ids_are_tasks_like_any_other(self, store: HostStateStore) -> None:
        for key in ODD_KEYS:
            await store.tasks.schedule(task(key))
        assert sorted(await self._due(store, NOW + 1)) == sorted(ODD_KEYS)
        for key in ODD_KEYS:
            payload: Mapping[str, Any] = (await claim_task(store, key)).payload
            assert payload == {}
