"""Point 9: clients that ask for a stream and never read it."""

import asyncio
from contextlib import ExitStack, suppress

import pytest

from tests.judge.app import get_key
from tests.judge.ledger import Ledger
from tests.judge.listener import PIECE
from tests.judge.site import Site, site
from tests.judge.steps import check, turn
from tests.judge.wire import deaf

READERS = 8
MAX_BYTES = 2 * 1024 * 1024
"""How much a host may take from the agent for somebody who reads nothing, the system's buffers included."""
MOST_SMALL = 3_000
"""The same for updates of a word, each an object of some kilobytes. The buffer of the client's system, which only the
client can bound, holds up to about 2,300 of them."""
PATIENCE = 90.0
"""Longer than any time that a host may reasonably wait for a reader."""


def _deaf(place: Site, stack: ExitStack, number: int, order: str = "pour:400") -> None:
    body = {"message": f"w{number} {order}", "session_id": f"s{number}", "stream": True}
    line = deaf(place.hosts[0].port, "/invocations", body, key=get_key(0))
    stack.callback(line.close)


async def _quiet(place: Site) -> int:
    """Wait until the host takes nothing more; return how many pieces it has taken."""
    taken = -1
    while taken != (taken := len(place.effects("poured"))) or not taken:
        await place.until(lambda taken=taken: len(place.effects("poured")) != taken, within=1.0)
    return taken


@pytest.mark.timeout(180)
async def test_a_session_is_free_again_when_its_reader_never_reads() -> None:
    ledger = Ledger()
    with ExitStack() as stack:
        async with site("sqlite", session_wait=5.0, send_seconds=2.0) as place:
            _deaf(place, stack, 0)
            await _quiet(place)
            answer = None
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    while answer is None or answer.code == "session_busy":
                        answer = await turn(ledger, place.hosts[0], "s0", "next")
    assert answer is not None
    assert answer.ok, f"the session is still taken by somebody who reads nothing: {answer}"
    check(ledger)


async def test_little_is_kept_for_readers_that_never_read() -> None:
    ledger = Ledger()
    with ExitStack() as stack:
        async with site("sqlite") as place:
            await place.hosts[0].post("/invocations", {"message": "warm"})
            for number in range(READERS):
                _deaf(place, stack, number)
            taken = await _quiet(place) * PIECE // READERS
            ledger.grown.append(("bytes for each reader that reads nothing", MAX_BYTES, taken))
    check(ledger)


async def test_few_small_updates_are_taken_for_readers_that_never_read() -> None:
    ledger = Ledger()
    with ExitStack() as stack:
        async with site("sqlite", send_seconds=PATIENCE) as place:
            await place.hosts[0].post("/invocations", {"message": "warm"})
            for number in range(READERS):
                _deaf(place, stack, number, "drip:20000")
            taken = await _quiet(place) // READERS
            ledger.grown.append(("small updates for each reader that reads nothing", MOST_SMALL, taken))
    check(ledger)
