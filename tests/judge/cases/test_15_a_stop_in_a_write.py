"""A host stands still, or is cut off, in the middle of a write, on a server that does not end its transaction."""

import asyncio
import signal

import pytest

from tests.databases import BEFORE_TRANSACTION_TIMEOUT, NEWEST, require_postgres
from tests.judge.ledger import Ledger
from tests.judge.proxy import Rule
from tests.judge.site import site
from tests.judge.steps import check, turn

PATIENCE = 30.0
"""For how long another host may be kept from the session: leases last three seconds, and statements one."""


@pytest.mark.parametrize("version", [BEFORE_TRANSACTION_TIMEOUT, NEWEST])
@pytest.mark.parametrize("cut_off", [False, True], ids=["paused", "cut off"])
async def test_a_host_stops_in_the_middle_of_a_write(version: int, cut_off: bool) -> None:
    ledger = Ledger()
    async with site("postgres", hosts=2, version=require_postgres(version)) as place:
        here, there = place.hosts
        await turn(ledger, here, "s", "zero")
        assert here.proxy is not None
        rule = here.proxy.add(Rule("hold", touching="sessions"))
        ledger.say("s", "x")
        leaving = await here.begin("/invocations", {"message": "x", "session_id": "s"})
        await rule.seen.wait()
        if cut_off:
            here.proxy.stall()
        else:
            here.send(signal.SIGSTOP)
        async with asyncio.timeout(PATIENCE):
            while not (await turn(ledger, there, "s", "y")).ok:
                pass
        here.proxy.flow()
        rule.release.set()
        here.send(signal.SIGCONT)
        leaving.cut()
        async with asyncio.timeout(PATIENCE):
            while not (await turn(ledger, here, "s", "z")).ok:
                pass
    check(ledger)
