"""The database was away while background streams ran; no word was lost, and none came twice."""

import asyncio
from collections.abc import AsyncIterator

from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from tests.databases import postgres_server
from tests.scenarios.desk import open_client
from tests.scenarios.test_background_streams import follow
from tests.scenarios.test_cancel import MINE


async def test_the_database_was_away_in_the_middle_of_a_stream() -> None:
    spoke, go_on = asyncio.Event(), asyncio.Event()

    async def story(text: str) -> AsyncIterator[str]:
        for number in range(40):
            yield f"word{number} "
            await asyncio.sleep(0)
            if number == 9:
                spoke.set()
                await go_on.wait()

    with postgres_server() as server, server.database() as place:
        async with open_client(story, store=PostgresStateStore(place, lease_seconds=60)) as desk:
            async with desk.open_stream("it", background=True, headers=MINE):
                await spoke.wait()
            following = asyncio.create_task(follow(desk))
            server.stop()
            go_on.set()
            server.start()
            told = await following
            assert [event.number for event in told] == list(range(42))
            assert "".join(event.data["text"] for event in told[1:-1]) == told[-1].data["text"]
            assert told[-1].name == "completed"
            assert await follow(desk) == told
