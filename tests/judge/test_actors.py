"""What the judge's clients do when hosts reject them, and for how long it waits for answers."""

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.judge import court as courts
from tests.judge import run
from tests.judge.actors.approvals import Approvals
from tests.judge.court import MAX_OPEN_SECONDS, SETTLE_PAUSE, Court
from tests.judge.faults.clocks import jump
from tests.judge.faults.processes import kill
from tests.judge.ledger import Approval, Ledger
from tests.judge.page import Page
from tests.judge.run import may_begin
from tests.judge.site import site
from tests.judge.wire import Answer, CutError

QUIET = 30.0


class Store:
    """A site whose agent does nothing, with events that are open for so many looks."""

    def __init__(self, looks: float) -> None:
        self.left = looks

    def progress(self) -> tuple[int, ...]:
        return (0,)

    def open_work(self) -> int:
        self.left -= 1
        return int(self.left > 0)


async def _looks(monkeypatch: pytest.MonkeyPatch, store: Any, *, answered: bool) -> int:
    """Return how often the judge looks before it ends its campaign."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def missing() -> int:
        return int(not answered or store.left > 0)

    monkeypatch.setattr(courts, "asyncio", SimpleNamespace(sleep=sleep))
    await Court(store, Ledger(), 1).until_quiet(missing, QUIET)
    return len(pauses)


async def test_an_event_that_rested_for_longer_than_the_quiet_time_was_called_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await _looks(monkeypatch, Store(2 * QUIET), answered=True) == 2 * QUIET


async def test_an_answer_that_nothing_is_left_to_give_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await _looks(monkeypatch, Store(0), answered=False) == QUIET / SETTLE_PAUSE + 1


async def test_an_event_that_nobody_takes_up_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await _looks(monkeypatch, Store(float("inf")), answered=False) == MAX_OPEN_SECONDS / SETTLE_PAUSE + 1


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        (["approval_expired", "approval_expired", "never asked"], ["approval_expired"] * 2),
        (["approval_expired", "approval_answered", "never asked"], ["approval_expired", "approval_answered"]),
        (["store_unavailable", "approval_answered", "never asked"], ["store_unavailable", "approval_answered"]),
    ],
)
async def test_an_expired_approval_is_answered_once_more(given: list[str], answers: list[str]) -> None:
    court: Any = SimpleNamespace(ledger=Ledger())
    actor, codes = Approvals(court, court), iter(given)
    approval = court.ledger.approvals["k"] = Approval("k")
    actor._ids = {"k": "apr_1"}

    async def asked(*arguments: Any, **options: Any) -> Answer:
        return Answer(409, {"error": {"code": next(codes)}})

    actor.ask = asked  # type: ignore[method-assign]
    await actor.settle()
    assert approval.answers == answers


async def test_a_page_whose_script_was_answered_with_an_error_ended_the_campaign() -> None:
    """The document is served, and the database is gone when the script asks for what to show."""
    error = b'{"error": {"code": "store_unavailable"}}'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        status, body = (b"503 No", error) if b"/api/me" in head else (b"200 OK", b"page")
        writer.write(b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host: Any = SimpleNamespace(port=server.sockets[0].getsockname()[1])
        with pytest.raises(CutError, match="not loaded: 503 store_unavailable"):
            await Page().load(host)


async def test_a_page_is_loaded_when_its_host_has_its_database_again() -> None:
    async with site("postgres", web=True) as place:
        (host,) = place.hosts
        assert host.proxy is not None
        host.proxy.stall()
        with pytest.raises(CutError, match="not served: 503"):
            await Page().load(host)
        host.proxy.flow()
        page, is_loaded = Page(), False
        async with asyncio.timeout(60):
            while not is_loaded:
                with suppress(CutError):
                    await page.load(host)
                    is_loaded = True
        assert (await page.say(host, "w", "m1")).ok


def test_a_clock_jumped_while_a_process_was_started() -> None:
    """The process believed the wrong clock, and a delivery of a moment ago was too old by it."""
    assert may_begin(jump, ())
    assert not may_begin(jump, ("kill",))
    assert not may_begin(kill, ("jump",))
    assert may_begin(kill, ("stall", "stop"))
    assert not may_begin(kill, ("kill", "stop"))
    assert not may_begin(kill, ("stall", "stop", "crash"))


async def test_a_clock_never_jumped_because_other_faults_were_always_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []
    under_way: set[str] = set()

    async def jump(court: Court, rng: Random) -> None:
        assert not under_way
        began.append("jump")

    async def stall(court: Court, rng: Random) -> None:
        began.append("stall")
        under_way.add("stall")
        await asyncio.sleep(0.2)
        under_way.discard("stall")

    async def kill(court: Court, rng: Random) -> None:
        began.append("kill")
        under_way.add("kill")
        await asyncio.sleep(0.2)
        under_way.discard("kill")

    monkeypatch.setattr(run, "EVERYWHERE", (stall, kill, jump))
    monkeypatch.setattr(run, "ON_SQLITE", ())
    monkeypatch.setattr(run, "ALONE", (jump,))
    monkeypatch.setattr(run, "_PAUSE", 0.0)
    court: Any = SimpleNamespace(site=SimpleNamespace(kind="sqlite"), operations=0, faults=Counter())
    await run._faults(court, Random(1), run.Plan(gap=0), lambda: len(began) < 12)
    assert set(began) == {"jump", "stall", "kill"}
