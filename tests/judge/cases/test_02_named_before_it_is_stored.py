"""Point 2: the id of a new session is announced, and used elsewhere before the session is stored."""

import asyncio
from typing import Any

import pytest

from tests.databases import PostgresServer
from tests.judge.ledger import Ledger
from tests.judge.site import Process, Site, site
from tests.judge.steps import check, enter, turn
from tests.judge.wire import Answer

WINDOW = 2.0


async def _uses(ledger: Ledger, place: Site, host: Process, session: str) -> "asyncio.Task[Answer]":
    """Use an announced session, until that is answered or heard, or clearly waits."""
    task = asyncio.create_task(turn(ledger, host, session, "second"))
    await place.until(lambda: task.done() or "second" in place.effects("heard"), within=WINDOW)
    return task


async def _ends(ledger: Ledger, host: Process, session: str, second: "asyncio.Task[Answer]") -> None:
    await second
    answer = await turn(ledger, host, session, "third")
    assert answer.ok, answer
    check(ledger)


async def test_a_session_is_used_on_another_host_when_its_stream_has_started(
    postgres_of_this_process: PostgresServer,
) -> None:
    ledger = Ledger()
    async with site("postgres", hosts=2, server=postgres_of_this_process) as place:
        here, there = place.hosts
        body = {"message": "first hold:gate", "stream": True}
        async with await here.begin("/invocations", body) as exchange:
            events = exchange.events()
            session = (await anext(events)).data["session_id"]
            asked = ledger.say(session, "first")
            second = await _uses(ledger, place, there, session)
            place.open("gate")
            *_, last = [event async for event in events]
            if last.name == "completed":
                enter(ledger, session, "first", asked, Answer(200, last.data))
        await _ends(ledger, there, session, second)


@pytest.mark.parametrize("other", [0, 1], ids=["the same host", "another host"])
async def test_a_session_is_used_while_the_background_run_that_makes_it_waits(
    postgres_of_this_process: PostgresServer, other: int
) -> None:
    settings: dict[str, Any] = {"max_background_runs": 1}
    async with site("postgres", hosts=1 + other, server=postgres_of_this_process, **settings) as place:
        await _queue(place, place.hosts[0], place.hosts[other])


async def test_a_session_is_used_while_the_run_that_makes_it_waits_on_sqlite() -> None:
    async with site("sqlite", max_background_runs=1) as place:
        await _queue(place, place.hosts[0], place.hosts[0])


async def _queue(place: Site, here: Process, there: Process) -> None:
    ledger = Ledger()
    for number, _ in enumerate(place.hosts):
        await here.post("/invocations", {"message": f"busy{number} hold:gate", "background": True}, by=1)
        await place.noted("held", f"busy{number}")
    asked = ledger.tick()
    told = await here.post("/invocations", {"message": "first hold:gate", "background": True})
    assert told.status == 202
    session, run_id = told.body["session_id"], told.body["id"]
    assert session, "the session is not named yet"
    ledger.say(session, "first")
    second = await _uses(ledger, place, there, session)
    place.open("gate")
    answer = await here.get(f"/invocations/{run_id}")
    while answer.body["status"] in ("queued", "running"):
        answer = await here.get(f"/invocations/{run_id}")
    enter(ledger, session, "first", asked, answer)
    await _ends(ledger, there, session, second)
