"""The contract of stores for chains of runs, and for the list of an owner's runs."""

from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk.errors import TooManyRequestsError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.run import MAX_COUNTED_RUNS, RunFilter, RunPosition, RunRecord, RunSlice
from frontdesk.models.watcher import WatcherRecord
from frontdesk_testing.store_samples import NOW, ODD_KEYS, OTHER, OWNER, job, question, run, watcher

LONG_LIST = 2 * MAX_COUNTED_RUNS + 10


async def save(store: HostStateStore, *runs: RunRecord) -> None:
    async with store.transaction() as transaction:
        for one in runs:
            transaction.save_run(one)


def build_ended_run(number: int, **fields: Any) -> RunRecord:
    """Return a run with a unique end time."""
    return run(f"run_{number:04}", finished_at=NOW + number, **fields)


def ids(runs: Sequence[RunRecord]) -> list[str]:
    return [one.run_id for one in runs]


async def pages(store: HostStateStore, where: RunFilter, limit: int) -> list[RunSlice]:
    """Read a whole list, page by page."""
    parts: list[RunSlice] = []
    after: RunPosition | None = None
    while not parts or after is not None:
        parts.append(await store.runs.page(OWNER, where, after=after, limit=limit))
        after = parts[-1].after
    return parts


class RunChains:
    """The runs that continue another one."""

    async def test_a_chain_has_its_newest_run_and_the_order_of_all(self, store: HostStateStore) -> None:
        root, second, third = (
            build_ended_run(1),
            build_ended_run(2, root_run_id="run_0001"),
            build_ended_run(3, root_run_id="run_0001"),
        )
        await save(
            store, third, root, second, build_ended_run(4), build_ended_run(5, owner=OTHER, root_run_id="run_0001")
        )
        assert await store.runs.newest_of_chain(OWNER, "run_0001") == third
        assert await store.runs.newest_of_chain(OWNER, "run_0004") is None
        assert await store.runs.newest_of_chain(OTHER, "run_0001") == build_ended_run(
            5, owner=OTHER, root_run_id="run_0001"
        )
        assert await store.runs.next_of_chain(OWNER, "run_0001", root) == second
        assert await store.runs.next_of_chain(OWNER, "run_0001", second) == third
        assert await store.runs.next_of_chain(OWNER, "run_0001", third) is None

    async def test_an_open_run_is_the_newest_of_its_chain(self, store: HostStateStore) -> None:
        first, second = run("run_9", status="running", root_run_id="run_1"), build_ended_run(2, root_run_id="run_1")
        await save(store, run(finished_at=NOW), first, second)
        assert await store.runs.newest_of_chain(OWNER, "run_1") == first
        assert await store.runs.next_of_chain(OWNER, "run_1", second) == first
        await save(store, first.replace(status="completed", finished_at=NOW + 1))
        assert await store.runs.newest_of_chain(OWNER, "run_1") == second

    async def test_a_queued_run_is_in_its_chain(self, store: HostStateStore) -> None:
        waiting = run("run_3", status="queued", background=True, root_run_id="run_1")
        async with store.transaction() as transaction:
            transaction.queue_run(waiting, job("run_3"), most_waiting=9, most_of_owner=9)
        assert await store.runs.newest_of_chain(OWNER, "run_1") == waiting

    async def test_a_deleted_run_leaves_its_chain_and_the_list(self, store: HostStateStore) -> None:
        await save(store, build_ended_run(1), build_ended_run(2, root_run_id="run_0001"))
        assert ids((await store.runs.page(OWNER, RunFilter())).runs) == ["run_0002", "run_0001"]
        async with store.transaction() as transaction:
            transaction.delete_run(OWNER, "run_0002")
        assert await store.runs.newest_of_chain(OWNER, "run_0001") is None
        part = await store.runs.page(OWNER, RunFilter())
        assert (ids(part.runs), part.total) == (["run_0001"], 1)

    async def test_a_chain_has_the_questions_of_all_its_runs(self, store: HostStateStore) -> None:
        asked = [
            question("apr_1", run_id="run_1"),
            question("apr_2", run_id="run_2", root_run_id="run_1", session_id="ses_2", target_request_id="q"),
            question("apr_3", run_id="run_3"),
        ]
        async with store.transaction() as transaction:
            for one in asked:
                transaction.add_approval(one)
            transaction.add_approval(question("apr_4", owner=OTHER, run_id="run_1"))
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_1", "rejected", at=NOW)
        found = await store.approvals.of_chain(OWNER, "run_1")
        assert [(one.approval_id, one.status) for one in found] == [("apr_1", "rejected"), ("apr_2", "pending")]
        assert [one.approval_id for one in await store.approvals.of_chain(OTHER, "run_1")] == ["apr_4"]

    async def test_odd_ids_are_chains_like_any_other(self, store: HostStateStore) -> None:
        for key in ODD_KEYS:
            await save(store, run("later", owner=key, root_run_id=key or "run_0"))
        for key in ODD_KEYS:
            newest = await store.runs.newest_of_chain(key, key or "run_0")
            assert newest is not None
            assert newest.owner == key


class RunLists:
    """The list of an owner's runs."""

    async def test_open_runs_come_first_then_those_that_ended_last(self, store: HostStateStore) -> None:
        await save(
            store,
            build_ended_run(2),
            run("run_open", status="running"),
            build_ended_run(3),
            build_ended_run(1),
            build_ended_run(4, owner=OTHER),
        )
        part = await store.runs.page(OWNER, RunFilter())
        assert ids(part.runs) == ["run_open", "run_0003", "run_0002", "run_0001"]
        assert (part.total, part.is_total_exact, part.after) == (4, True, None)
        # It moves to its end when it ends.
        await save(store, run("run_open", finished_at=NOW + 2.5))
        assert ids((await store.runs.page(OWNER, RunFilter())).runs)[:2] == ["run_0003", "run_open"]
        assert await store.runs.page("nobody", RunFilter()) == RunSlice()

    @pytest.mark.parametrize("limit", [1, 3, 7, 50])
    async def test_pages_lead_through_all_runs(self, store: HostStateStore, limit: int) -> None:
        # Several end at the same time.
        await save(store, *(run(f"run_{number:02}", finished_at=NOW + number // 3) for number in range(20)))
        parts = await pages(store, RunFilter(), limit)
        read = [one for part in parts for one in part.runs]
        assert ids(read) == [f"run_{number:02}" for number in reversed(range(20))]
        assert all(len(part.runs) <= limit and part.total == 20 for part in parts)
        assert parts[-1].runs

    async def test_runs_that_end_meanwhile_are_not_read_twice(self, store: HostStateStore) -> None:
        await save(store, *(build_ended_run(number) for number in range(6)))
        first = await store.runs.page(OWNER, RunFilter(), limit=3)
        await save(store, build_ended_run(9))
        second = await store.runs.page(OWNER, RunFilter(), after=first.after, limit=3)
        assert ids([*first.runs, *second.runs]) == [f"run_{number:04}" for number in reversed(range(6))]

    async def test_each_filter_leaves_what_matches(self, store: HostStateStore) -> None:
        await save(
            store,
            build_ended_run(1, channel="a2a", session_key="s"),
            build_ended_run(2, channel="a2a", session_key="t", root_run_id="run_0001"),
            build_ended_run(3, channel="mcp", status="failed"),
            build_ended_run(4, channel="mcp", session_key="s", status="cancelled"),
            run("run_5", status="queued", channel="a2a"),
            run("run_6", status="running", session_key="s"),
        )
        for where, expected in (
            (RunFilter(channel="a2a"), ["run_5", "run_0002", "run_0001"]),
            (RunFilter(session="s"), ["run_6", "run_0004", "run_0001"]),
            (RunFilter(status="completed"), ["run_0002", "run_0001"]),
            (RunFilter(status="failed"), ["run_0003"]),
            (RunFilter(status="queued"), ["run_5"]),
            (RunFilter(status="running"), ["run_6"]),
            (RunFilter(since=NOW + 3), ["run_6", "run_5", "run_0004", "run_0003"]),
            (RunFilter(roots_only=True, channel="a2a"), ["run_5", "run_0001"]),
            (RunFilter(channel="a2a", session="s", status="completed"), ["run_0001"]),
            (RunFilter(channel="web", since=NOW + 9), ["run_6"]),
            (RunFilter(session="nobody's"), []),
            (RunFilter(session_prefix="s"), ["run_6", "run_0004", "run_0001"]),
            (RunFilter(session_prefix="s~"), []),
            (RunFilter(session_prefix="%"), []),
        ):
            part = await store.runs.page(OWNER, where)
            assert sorted(ids(part.runs)) == sorted(expected), where
            assert [one.run_id for one in part.runs if one.finished_at] == [one for one in expected if "_0" in one]
            assert (part.after, part.is_total_exact) == (None, True)

    async def test_a_long_list_is_read_in_bounded_parts(self, store: HostStateStore) -> None:
        # The only run of the channel is the oldest one.
        await save(
            store, *(build_ended_run(number, channel="rare" if number == 0 else "web") for number in range(LONG_LIST))
        )
        whole = await store.runs.page(OWNER, RunFilter(), limit=50)
        assert not whole.is_total_exact
        assert whole.total >= MAX_COUNTED_RUNS
        assert ids(whole.runs) == [f"run_{number:04}" for number in reversed(range(LONG_LIST - 50, LONG_LIST))]
        first = await store.runs.page(OWNER, RunFilter(channel="rare"), limit=50)
        assert not first.runs
        assert first.after is not None
        parts = await pages(store, RunFilter(channel="rare"), 50)
        assert [one.run_id for part in parts for one in part.runs] == ["run_0000"]
        assert len(parts) <= LONG_LIST // MAX_COUNTED_RUNS + 2


async def add(store: HostStateStore, *watchers: WatcherRecord, of_owner: int = 9, of_chain: int = 9) -> None:
    async with store.transaction() as transaction:
        for one in watchers:
            transaction.add_watcher(one, most_of_owner=of_owner, most_of_chain=of_chain)


class Watchers:
    """The watchers of chains."""

    async def test_a_watcher_is_found_by_its_chain_until_it_expires(self, store: HostStateStore) -> None:
        assert await store.watchers.may_exist() is False
        first, second = watcher("watch_1"), watcher("watch_2", created_at=NOW + 1, expires_at=NOW + 10)
        await add(store, second)
        await add(store, first, watcher("watch_3", chain_id="run_2"), watcher("watch_4", owner=OTHER))
        assert await store.watchers.may_exist() is True
        assert await store.watchers.of_chain(OWNER, "run_1", now=NOW) == [first, second]
        assert await store.watchers.of_chain(OWNER, "run_1", now=NOW + 10) == [first]
        assert await store.watchers.get(OWNER, "watch_1") == first
        assert await store.watchers.get(OWNER, "watch_4") is None

    async def test_a_removed_watcher_is_gone(self, store: HostStateStore) -> None:
        await add(store, watcher("watch_1"), watcher("watch_2"))
        async with store.transaction() as transaction:
            transaction.remove_watcher(OWNER, "watch_1")
            transaction.remove_watcher(OTHER, "watch_2")
        assert await store.watchers.of_chain(OWNER, "run_1", now=NOW) == [watcher("watch_2")]

    async def test_watchers_go_with_the_first_run_of_their_chain(self, store: HostStateStore) -> None:
        await save(store, run("run_1", finished_at=NOW), run("run_2", finished_at=NOW, root_run_id="run_1"))
        await add(store, watcher())
        for run_id, left in (("run_2", 1), ("run_1", 0)):
            async with store.transaction() as transaction:
                transaction.delete_run(OWNER, run_id)
            assert len(await store.watchers.of_chain(OWNER, "run_1", now=NOW)) == left

    @pytest.mark.parametrize("bounds", [{"of_owner": 2}, {"of_chain": 2}], ids=["owner", "chain"])
    async def test_their_number_is_bounded(self, store: HostStateStore, bounds: dict[str, int]) -> None:
        await add(store, watcher("watch_1"))
        await add(store, watcher("watch_2", expires_at=NOW + 10))
        with pytest.raises(TooManyRequestsError):
            await add(store, watcher("watch_3"), **bounds)
        await add(store, watcher("watch_4", owner=OTHER), **bounds)
        # Expired ones do not count.
        await add(store, watcher("watch_5", created_at=NOW + 10), **bounds)
        found = await store.watchers.of_chain(OWNER, "run_1", now=NOW)
        assert [one.watcher_id for one in found] == ["watch_1", "watch_2", "watch_5"]

    async def test_another_chain_has_a_bound_of_its_own(self, store: HostStateStore) -> None:
        await add(store, watcher("watch_1"), of_chain=1)
        await add(store, watcher("watch_2", chain_id="run_2"), of_chain=1)
        assert await store.watchers.get(OWNER, "watch_2") is not None
