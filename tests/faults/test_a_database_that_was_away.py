"""The database was away while background streams ran; no word was lost, and none came twice."""

import asyncio
from collections.abc import AsyncIterator

from frontdesk.stores.sql.postgres import PostgresStateStore
from tests.databases import postgres_server
from tests.scenarios.desk import open_desk, until
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
        async with open_desk(story, store=PostgresStateStore(place, lease_seconds=60)) as desk:
            async with desk.streaming("it", background=True, headers=MINE):
                await spoke.wait()
            following = asyncio.create_task(follow(desk))
            server.stop()
            go_on.set()
            # The rest is said while there is nobody who could write it down.
            await asyncio.sleep(0)
            server.start()
            await until(lambda: "mine" in str(desk.runs()) and desk.run("mine").status != "running", within=50)
            told = await follow(desk)
            assert (told[-1].name, len(told)) in [("completed", 42), ("failed", len(told))]
            read = await asyncio.wait([following])
            assert read
            texts = [event.data["text"] for event in told[1:-1]]
            assert texts == [f"word{number} " for number in range(len(texts))]
