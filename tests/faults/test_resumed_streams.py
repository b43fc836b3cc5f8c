"""What went wrong elsewhere when a stream was taken up again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk.sessions.job import MAX_RECENT_UPDATES
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.scenarios.desk import open_client, until
from tests.scenarios.test_background_streams import follow
from tests.scenarios.test_cancel import MINE, Slow


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return InMemoryStateStore() if request.param == "memory" else SqliteStateStore(tmp_path / "frontdesk.db")


async def test_a_resumed_stream_repeated_text(store: Any) -> None:
    slow = Slow()
    async with open_client(slow.pieces, store=store) as desk:
        async with desk.open_stream("it", background=True, headers=MINE) as (_, events):
            read = [await anext(events), await anext(events)]
        rest = asyncio.create_task(follow(desk, after=read[-1].number))
        slow.go_on.set()
        told = [*read, *await rest]
        assert [event.number for event in told] == [0, 1, 2, 3]
        assert "".join(event.data["text"] for event in told[1:-1]) == told[-1].data["text"] == "begun, done"


async def test_a_stream_could_not_be_taken_up_before_its_first_event(store: Any) -> None:
    slow = Slow()
    async with open_client(slow.whole, store=store, max_background_runs=1) as desk:
        await desk.ask("one", background=True)
        await slow.began.wait()
        async with desk.open_stream("two", background=True, headers=MINE):
            pass
        assert (await desk.get("mine")).json()["status"] == "queued"
        following = [asyncio.create_task(follow(desk, after=after)) for after in (None, 0)]
        await until(lambda: desk.requests == 2)
        slow.go_on.set()
        whole, rest = await asyncio.gather(*following)
        assert whole[1:] == rest
        assert [event.name for event in whole] == ["started", "update", "completed"]


async def test_events_between_the_snapshot_and_the_live_part_were_skipped(store: Any) -> None:
    count, said = 2 * MAX_RECENT_UPDATES, asyncio.Event()

    async def chatter(text: str) -> AsyncIterator[str]:
        for number in range(count):
            await asyncio.sleep(0)
            if number == 50:
                said.set()
            yield f"{number} "

    async with open_client(chatter, store=store) as desk:
        async with desk.open_stream("it", background=True, headers=MINE):
            await said.wait()
        following: list[Any] = []
        while (await desk.get("mine")).json()["status"] == "running" and len(following) < 30:
            following.append(asyncio.create_task(follow(desk, after=len(following))))
            await asyncio.sleep(0)
        told = await follow(desk)
        assert [event.number for event in told] == list(range(count + 2))
        for after, one in enumerate(await asyncio.gather(*following)):
            assert one == told[after + 1 :]
