"""Starts, kills and restarts a host with the page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.forked import ForkedProcess, fork


class MortalHost:
    """A host that keeps its address and its state over its deaths."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._port = "0"
        self._process: ForkedProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def let_speak(self) -> None:
        """Lets the agent say all from now on."""
        (self._place / "go").touch()

    async def start(self) -> None:
        state, go = str(self._place / "state"), str(self._place / "go")
        self._process = await fork("tests.channels.web.killed_host:serve", state, go, self._port)
        self._port = (await self._process.stdout.readline()).decode().strip()

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def mortal_host(place: Path) -> AsyncIterator[MortalHost]:
    """A host that was started."""
    host = MortalHost(place)
    await host.start()
    try:
        yield host
    finally:
        await host.kill()
