"""The judge notices when the hosts are late without any fault of its own."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.judge import court as courts
from tests.judge import pulse
from tests.judge.court import Court
from tests.judge.ledger import Ledger, Run


class Late:
    """A host that takes its time, by a clock of its own."""

    def __init__(self, seconds: float) -> None:
        self.now = 100.0
        self.asked = asyncio.Event()
        self._seconds = seconds

    def monotonic(self) -> float:
        """Return the time."""
        return self.now

    async def get(self, path: str) -> None:
        """Answer late."""
        self.now += self._seconds
        self.asked.set()


@pytest.mark.parametrize(("seconds", "is_starved"), [(pulse.LATE / 2, False), (pulse.LATE * 2, True)])
async def test_a_run_during_which_a_host_was_late_is_disturbed(
    monkeypatch: pytest.MonkeyPatch, seconds: float, is_starved: bool
) -> None:
    host: Any = Late(seconds)
    site: Any = SimpleNamespace(hosts=[host], kind="sqlite")
    court = Court(site, Ledger(), 1)
    for module in (pulse, courts):
        monkeypatch.setattr(module, "time", host)
    monkeypatch.setattr(pulse, "_PAUSE", 0.0)
    run = court.ledger.runs["r"] = Run("r")
    async with pulse.watch(court):
        await host.asked.wait()
        # The watch looks at the clock before it asks again.
        host.asked.clear()
        await host.asked.wait()
    assert (court.starved > 0, run.disturbed) == (is_starved, is_starved)


async def test_a_database_that_was_late_was_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late(pulse.LATE * 2)
    court = Court(cast("Any", SimpleNamespace(hosts=[], kind="postgres", place="here")), Ledger(), 1)
    for module in (pulse, courts):
        monkeypatch.setattr(module, "time", late)
    monkeypatch.setattr(pulse, "_PAUSE", 0.0)
    monkeypatch.setattr(pulse, "_commit", late.get)
    async with pulse.watch(court):
        await late.asked.wait()
        late.asked.clear()
        await late.asked.wait()
    assert court.starved > 0


async def test_the_database_is_asked_to_commit(postgres: str) -> None:
    await pulse._commit(postgres)
