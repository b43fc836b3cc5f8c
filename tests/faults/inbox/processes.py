"""Starts hosts and workers as processes, and ends them the hard way."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx

from frontdesk_testing.messages import MessagePlatform
from tests.forked import ForkedProcess, fork

TIMEOUT = 60.0


class DeskProcess:
    """A host or a worker that runs."""

    def __init__(self, process: ForkedProcess, port: int | None) -> None:
        self._process = process
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}" if port else "", timeout=TIMEOUT, trust_env=False
        )

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def arm(self, point: str, passes: int) -> None:
        """Has it end itself when a point is passed for the given time."""
        (await self.http.post(f"/arm?{point}={passes}")).raise_for_status()

    async def deliver(self, *said: Mapping[str, str]) -> None:
        """Has it say things to people: `to`, `text` and `key` of each."""
        (await self.http.post("/deliver", json=list(said))).raise_for_status()

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal, if it has not ended by itself."""
        self._process.send_signal(number)

    async def kill(self) -> None:
        """Ends it at once."""
        self.signal(signal.SIGKILL)
        # One that stands still ends only when it goes on.
        self.signal(signal.SIGCONT)
        await self.wait_for_end()

    async def wait_for_end(self) -> int:
        """Waits for its end."""
        code = await self._process.wait()
        await self.http.aclose()
        return code


class Desks:
    """Where hosts and workers keep their state, and those that were started there."""

    def __init__(
        self,
        kind: Literal["sqlite", "postgres"],
        place: str,
        platform: MessagePlatform,
        ledger: Path,
        **settings: Any,
    ) -> None:
        self.ledger = ledger
        given = {"kind": kind, "place": place, "platform": platform.url, "token": platform.token}
        self._environment = {**os.environ, "FD_DESK": json.dumps({**given, "ledger": str(ledger), **settings})}
        self._all: list[DeskProcess] = []

    async def host(self) -> DeskProcess:
        """One more host, ready to serve."""
        return await self._start("tests.faults.inbox.server:main")

    async def worker(self) -> DeskProcess:
        """One more worker."""
        return await self._start("tests.faults.inbox.server:work")

    async def _start(self, name: str) -> DeskProcess:
        process = await fork(name, environment=self._environment)
        try:
            line = (await asyncio.wait_for(process.stdout.readline(), TIMEOUT)).decode().strip()
            assert line, "it did not start"
        except BaseException:
            process.kill()
            await process.wait()
            raise
        found = DeskProcess(process, int(line) if line.isdigit() else None)
        self._all.append(found)
        return found

    def list_asked(self) -> list[str]:
        """What the agent was asked, over all processes."""
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._all:
            await one.kill()
