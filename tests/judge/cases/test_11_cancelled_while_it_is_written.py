"""Beyond the ten points: a turn is cancelled while its result is being written, and the write takes longer than the
grace of a cancellation. Campaigns found the same for a lease that could not be kept: the question is there twice."""

import asyncio

from tests.judge.ledger import Ledger
from tests.judge.site import site
from tests.judge.steps import check, enter, turn

WINDOW = 2.0
"""How long the disk stands still: longer than the grace."""


async def test_a_turn_is_cancelled_while_its_result_is_written() -> None:
    ledger = Ledger()
    async with site("sqlite") as place:
        host = place.hosts[0]
        await turn(ledger, host, "s", "zero")
        with place.lock():
            asked = ledger.say("s", "x")
            body = {"message": "x", "session_id": "s"}
            running = await host.begin("/invocations", body, headers={"x-agent-invocation-id": "the-run"})
            assert await place.noted("heard", "x")
            cancelling = await host.begin("/invocations/the-run/cancel", None)
            await place.until(lambda: False, within=WINDOW)
        answer, cancelled = await asyncio.gather(running.answer(), cancelling.answer())
        enter(ledger, "s", "x", asked, answer)
        await turn(ledger, host, "s", "y")
        await turn(ledger, host, "s", "z")
    check(ledger)
    assert answer.body.get("status") == cancelled.body.get("status"), "two answers about one run"
