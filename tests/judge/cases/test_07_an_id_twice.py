"""Point 7: two requests with the same id of the caller's choice, at the same time."""

import asyncio

import pytest

from tests.databases import PostgresServer
from tests.judge.ledger import Ledger
from tests.judge.site import Process, Site, site
from tests.judge.steps import check, enter, turn
from tests.judge.wire import Answer

WINDOW = 1.0
_ID = {"x-agent-invocation-id": "the-same-id"}


async def _both(place: Site, here: Process, there: Process, background: bool) -> None:
    ledger = Ledger()
    await turn(ledger, here, "s", "zero")
    first = asyncio.create_task(_say(ledger, here, "first hold:gate", False))
    assert await place.noted("held", "first")
    second = asyncio.create_task(_say(ledger, there, "second", background))
    await place.until(second.done, within=WINDOW)
    place.open("gate")
    answers = [await first, await second]
    await _wait_for_runs(here, [one.body["id"] for one in answers if one.status == 202])
    last = await turn(ledger, here, "s", "third")
    shown = await there.get("/invocations/the-same-id")
    check(ledger)
    kept = [word for word in ("first", "second") if f'"{word}"' in last.body["text"]]
    assert len(kept) == 1, f"one id is one turn, and the session has {kept}: {answers}"
    assert f'"{kept[0]}"' in shown.body["text"], "the result under the id is another turn's"


async def _say(ledger: Ledger, host: Process, word: str, background: bool) -> Answer:
    asked = ledger.say("s", word.split()[0])
    body = {"message": word, "session_id": "s", "background": background}
    answer = await host.post("/invocations", body, headers=_ID)
    enter(ledger, "s", word, asked, answer)
    if answer.ok:
        ledger.ids["the-same-id"].append(word.split()[0])
    return answer


async def _wait_for_runs(host: Process, runs: list[str]) -> None:
    for run_id in runs:
        while (await host.get(f"/invocations/{run_id}")).body["status"] in ("queued", "running"):
            pass


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_an_id_is_used_twice_on_sqlite(background: bool) -> None:
    async with site("sqlite") as place:
        await _both(place, place.hosts[0], place.hosts[0], background)


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_an_id_is_used_twice_on_two_hosts(postgres_of_this_process: PostgresServer, background: bool) -> None:
    async with site("postgres", hosts=2, server=postgres_of_this_process) as place:
        await _both(place, place.hosts[0], place.hosts[1], background)
