"""A host in a child process, and what an attack costs it: answers, seconds, memory, and the wait of other callers."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from time import perf_counter
from typing import Any

from tests.faults.ports import free_port
from tests.figures.child import KEY, request_health

LONGEST = 120.0
"""The seconds after which a connection counts as never closed."""
OPEN = "still open"
CLOSED = "closed"
START_SECONDS = 60.0


@dataclass
class Host:
    """A running host, and what was measured on it."""

    pid: int
    port: int
    answers: dict[str, list[float]] = field(default_factory=dict)
    """The seconds until each answer, by status or `closed`."""
    mib: float = 0.0
    idle_mib: float = 0.0
    wait: float = 0.0
    failed: float = 0.0

    @asynccontextmanager
    async def measure(self) -> AsyncIterator[None]:
        """Measure memory and the wait of other callers until the block ends."""
        probe = await _start("probe", self.port, stdin=PIPE, stdout=PIPE)
        assert probe.stdin
        assert probe.stdout
        await probe.stdout.readline()
        # Sets the peak to the present value.
        self._path("clear_refs").write_text("5")
        self.idle_mib = self._memory("VmHWM")
        try:
            yield
        finally:
            self.mib = self._memory("VmHWM") - self.idle_mib
            probe.stdin.close()
            found = json.loads(await probe.stdout.read())
            await probe.wait()
            self.wait, self.failed = found["wait"], found["failed"]

    async def send_all(self, requests: Sequence[bytes], *, until_closed: bool = False) -> None:
        """Send each request on a connection of its own, all at once, and note how each is answered."""
        await asyncio.gather(*(self.send(request, until_closed=until_closed) for request in requests))

    async def send(self, request: bytes, *, then: bytes = b"", until_closed: bool = False) -> None:
        """Send a request and note its status. `then` is sent again and again after it, until the host closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        began = perf_counter()
        writing = asyncio.create_task(_write(writer, request, b""))
        status = OPEN
        try:
            async with asyncio.timeout(LONGEST):
                line = await reader.readline()
                status = line.split()[1].decode() if line else CLOSED
                if then:
                    writing.cancel()
                    writing = asyncio.create_task(_write(writer, b"", then))
                if until_closed:
                    status = f"{status}, {OPEN}" if line else OPEN
                    while await reader.read(65536):
                        pass
                    status = status.replace(OPEN, CLOSED)
        except TimeoutError:
            pass
        except ConnectionError:
            status = CLOSED if status == OPEN else status.replace(OPEN, CLOSED)
        self.note(status, perf_counter() - began)
        writing.cancel()
        writer.transport.abort()

    async def ask(self, path: str, body: Any) -> Any:
        """Send a request that must be answered with 200, and return the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(post(path, json.dumps(body).encode(), "connection: close"))
        head, _, answer = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        assert head.startswith(b"HTTP/1.1 200 "), head
        return json.loads(answer)

    def note(self, status: str, seconds: float) -> None:
        """Add an answer."""
        self.answers.setdefault(status, []).append(seconds)

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def _path(self, name: str) -> Path:
        return Path(f"/proc/{self.pid}/{name}")

    def _memory(self, name: str) -> float:
        lines = dict(line.split(":", 1) for line in self._path("status").read_text().splitlines())
        return int(lines[name].split()[0]) / 1024


Attack = Callable[[Host], Coroutine[Any, Any, None]]


def post(path: str, body: bytes, *headers: str, key: str | None = KEY) -> bytes:
    """Return a POST request with a JSON body."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", *headers]
    lines += [f"x-api-key: {key}"] if key else []
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


async def measure(attack: Attack, max_files: int = 0) -> dict[str, Any]:
    """Run an attack on a new host, and return what it cost."""
    with tempfile.TemporaryDirectory() as state:
        port = free_port()
        process = await _start("host", port, state, max_files, stdout=DEVNULL, stderr=DEVNULL)
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await asyncio.to_thread(request_health, port):
                    assert process.returncode is None, "the host did not start"
                    await asyncio.sleep(0.05)
            host = Host(process.pid, port)
            # Modules that are imported by the first request are not a cost of the attack.
            for path in ("/v1/responses", "/v1/conversations"):
                await host.ask(path, {"input": "hi"} if path == "/v1/responses" else {})
            await attack(host)
            assert host.answers, "the attack noted no answer"
            answers = {name: [len(took), min(took), max(took)] for name, took in sorted(host.answers.items())}
            return {"answers": answers, **{name: getattr(host, name) for name in ("mib", "idle_mib", "wait", "failed")}}
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _start(command: str, *arguments: Any, **streams: Any) -> asyncio.subprocess.Process:
    words = [sys.executable, "-m", "tests.figures.child", command, *map(str, arguments)]
    return await asyncio.create_subprocess_exec(*words, **streams)


async def _write(writer: asyncio.StreamWriter, first: bytes, then: bytes) -> None:
    try:
        writer.write(first)
        await writer.drain()
        while then:
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(0)
    except ConnectionError:
        pass
