"""A failed write is remembered until a probe succeeds, and probes are few."""

import asyncio
from collections.abc import Sequence

import pytest

from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.sql import writes
from frontdesk.stores.sql.writes import MAX_PROBE_BYTES, MIN_PROBE_BYTES, Do, Op, WriteHealth
from tests.scenarios.desk import until


class Database:
    """Takes writes, or does not."""

    def __init__(self) -> None:
        self.fails = True
        self.sizes: list[int] = []

    async def write(self, ops: Sequence[Op]) -> None:
        for op in ops:
            assert isinstance(op, Do)
            self.sizes += [len(value) for value in op.values if isinstance(value, bytes)]
        if self.fails:
            raise StoreUnavailableError


def build_write(size: int) -> list[Op]:
    return [Do("", (bytes(size),))]


async def test_a_host_probes_at_once_and_then_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "PROBE_INTERVAL_SECONDS", 1_000.0)
    database = Database()
    health = WriteHealth(database.write)
    health.check()
    for _ in range(3):
        health.note_failure(build_write(10))
        await asyncio.sleep(0.01)
        with pytest.raises(StoreUnavailableError):
            health.check()
    assert database.sizes == [MIN_PROBE_BYTES]
    await health.stop()


async def test_a_probe_writes_as_much_as_what_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "PROBE_INTERVAL_SECONDS", 0.0)
    for size in (200_000, 2 * MAX_PROBE_BYTES):
        database = Database()
        database.fails = False
        health = WriteHealth(database.write)
        health.note_failure(build_write(size))
        await until(lambda health=health: not health._fails)
        assert database.sizes == [min(size, MAX_PROBE_BYTES)]
        health.check()


async def test_writes_are_possible_again_once_a_probe_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "PROBE_INTERVAL_SECONDS", 0.0)
    database = Database()
    health = WriteHealth(database.write)
    health.note_failure(())
    await until(lambda: len(database.sizes) > 2)
    with pytest.raises(StoreUnavailableError):
        health.check()
    database.fails = False
    await until(lambda: not health._fails)
    health.check()


async def test_damage_does_not_heal() -> None:
    database = Database()
    health = WriteHealth(database.write)
    health.note_damage("malformed")
    health.note_failure(())
    with pytest.raises(StoreUnavailableError):
        health.check()
    assert database.sizes == []
