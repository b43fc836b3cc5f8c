"""Point 1: a client leaves while its turn is being written, and the next turn of the session comes."""

import asyncio

from tests.judge.ledger import Ledger
from tests.judge.site import site
from tests.judge.steps import check, turn

WINDOW = 1.5
"""How long the disk stands still after the client has left; a host that waits for the write just waits."""


async def test_a_client_hangs_up_while_its_turn_is_written() -> None:
    ledger = Ledger()
    async with site("sqlite") as place:
        host = place.hosts[0]
        await turn(ledger, host, "s", "zero")
        with place.lock():
            ledger.say("s", "x")
            leaving = await host.begin("/invocations", {"message": "x", "session_id": "s"})
            assert await place.noted("heard", "x")
            leaving.cut()
            next_turn = asyncio.create_task(turn(ledger, host, "s", "y"))
            await place.noted("heard", "y", within=WINDOW)
        await next_turn
        await turn(ledger, host, "s", "z")
        await turn(ledger, host, "s", "end")
    check(ledger)
