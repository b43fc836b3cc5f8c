"""Starts hosts as processes, and ends them the hard way."""

import asyncio
import signal
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import httpx

from tests.forked import ForkedProcess, fork

Kind = Literal["memory", "sqlite", "postgres"]
TIMEOUT = 30.0


class HostProcess:
    """A host that runs, and a client of it."""

    def __init__(self, process: ForkedProcess, port: int) -> None:
        self._process = process
        self.client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            timeout=TIMEOUT,
            trust_env=False,
            limits=httpx.Limits(keepalive_expiry=None),
        )

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def arm(self, point: str, passes: int) -> None:
        """Has it end itself when a point is passed for the given time."""
        (await self.client.post(f"/arm?{point}={passes}")).raise_for_status()

    def kill(self) -> None:
        """Ends it at once, if it has not ended by itself."""
        self._process.kill()

    def pause(self) -> None:
        """It stands still, and does not know it."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def wait_for_end(self) -> None:
        """Waits for its end."""
        await self._process.wait()
        await self.client.aclose()


class HostProcesses:
    """Where hosts keep their state, and the hosts that were started there."""

    def __init__(
        self,
        kind: Kind,
        place: str,
        ledger: Path,
        *,
        lease: float = 2.0,
        wait: float = 15.0,
        server: str = "server",
    ) -> None:
        """`server` is the module that is started."""
        self._main = f"tests.faults.crash.{server}:main"
        self._arguments = (kind, place, str(ledger), str(lease), str(wait))
        self._ledger = ledger
        self._hosts: list[HostProcess] = []

    async def start(self) -> HostProcess:
        """One more host, ready to serve."""
        process = await fork(self._main, *self._arguments)
        try:
            port = await asyncio.wait_for(process.stdout.readline(), TIMEOUT)
            assert port, "the host did not start"
        except BaseException:
            process.kill()
            await process.wait()
            raise
        host = HostProcess(process, int(port))
        self._hosts.append(host)
        return host

    def payments(self) -> list[str]:
        """What the tool has done, over all hosts."""
        return self._ledger.read_text().split() if self._ledger.exists() else []

    def sign(self, name: str) -> Path:
        """A file by which a tool that holds is followed and let go."""
        return self._ledger.with_name(name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for host in self._hosts:
            host.kill()
            await host.wait_for_end()
