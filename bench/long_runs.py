"""`python -m bench.long_runs`: runs in the background, the price of their event log, and how late their readers are.

Streams are paced: each update waits for a turn of the event loop, as a model's network makes it. The lag is the time
from the agent's word to its reader, both on this machine's own clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from bench.figures import Line
from bench.part import options_of, report

ROOT = Path(__file__).parent.parent
WORDS = 200
LEAST_RATIO = 0.5
MOST_LAG = {"sqlite": 40.0, "postgres": 80.0}


async def speak(text: str) -> AsyncIterator[str]:
    """`paced` says its words as fast as the loop turns, `clock` tells the time every few milliseconds."""
    for number in range(WORDS):
        await asyncio.sleep(0.005 if text == "clock" else 0)
        yield f"{time.monotonic()}" if text == "clock" else f"word{number % 10} "


def serve(kind: str, place: str, port: int) -> None:
    """A host with a store that lasts, until it is stopped."""
    import uvicorn

    from frontdesk import AgentFrameworkHost
    from frontdesk.channels.invocations import InvocationsChannel

    where: dict[str, Any] = {"state_dir": place}
    if kind == "postgres":
        from frontdesk.stores.sql.postgres.engine import PostgresStateStore

        where = {"store": PostgresStateStore(place)}
    host = AgentFrameworkHost(
        speak, channels=[InvocationsChannel()], max_background_runs_per_caller=10_000, shutdown_grace_seconds=0, **where
    )
    uvicorn.run(host.app, port=port, log_level="critical")


@contextmanager
def server(kind: str, place: str) -> Iterator[str]:
    """The address of a host in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bench.long_runs", "--serve", kind, place, str(port)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            for _ in range(300):
                try:
                    if httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200:
                        break
                except httpx.TransportError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, limits=httpx.Limits(max_connections=64))


async def events_a_second(url: str, seconds: float, connections: int, *, background: bool) -> float:
    """How many events all readers together get; read from plain connections, so that it is the server that is slow."""
    body = json.dumps({"message": "paced", "stream": True, "background": background}).encode()
    port = int(url.rpartition(":")[2])
    head = f"POST /invocations HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n"
    sent = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    began, count = time.monotonic(), 0

    async def read() -> None:
        nonlocal count
        while time.monotonic() < began + seconds:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            while piece := await reader.read(1 << 18):
                count += piece.count(b"event: ")
            writer.close()

    await asyncio.gather(*(read() for _ in range(connections)))
    return count / (time.monotonic() - began)


async def runs_a_second(http: httpx.AsyncClient, runs: int, connections: int) -> float:
    """How many runs are accepted and completed."""
    left = iter(range(runs))
    began = time.monotonic()

    async def ask() -> None:
        for _ in left:
            answer = (await http.post("/invocations", json={"message": "paced", "background": True})).json()
            # Polling is what the protocol offers for a run without a stream.
            while (await http.get(f"/invocations/{answer['id']}")).json()["status"] != "completed":  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    await asyncio.gather(*(ask() for _ in range(connections)))
    return runs / (time.monotonic() - began)


async def lags(writer: httpx.AsyncClient, reader: httpx.AsyncClient, streams: int) -> list[float]:
    """How many milliseconds a reader is behind the agent."""
    found: list[float] = []
    for _ in range(streams):
        asked = writer.stream("POST", "/invocations", json={"message": "clock", "stream": True, "background": True})
        async with asked as response:
            run_id = response.headers["x-agent-invocation-id"]
        async with reader.stream("GET", f"/invocations/{run_id}?stream=true") as response:
            name = ""
            async for line in response.aiter_lines():
                now = time.monotonic()
                name = line.removeprefix("event: ") if line.startswith("event: ") else name
                if name == "update" and line.startswith("data: "):
                    found.append((now - float(json.loads(line.removeprefix("data: "))["text"])) * 1e3)
    return found


async def on_sqlite(*, quick: bool) -> list[Line]:
    rounds, seconds = (2, 1.0) if quick else (5, 3.0)
    with tempfile.TemporaryDirectory() as place, server("sqlite", place) as url:
        async with client(url) as http:
            runs = await runs_a_second(http, 60 if quick else 400, 16)
            pairs = [
                (
                    await events_a_second(url, seconds, 16, background=False),
                    await events_a_second(url, seconds, 16, background=True),
                )
                for _ in range(rounds)
            ]
            late = median(await lags(http, http, 2 if quick else 10))
    ratio = median(back / fore for fore, back in pairs)
    fore, back = (median(side) for side in zip(*pairs, strict=True))
    return [
        Line(f"runs of {WORDS} words in the background, SQLite", f"{runs:,.0f} runs/s"),
        Line("a foreground stream, 16 readers, SQLite", f"{fore:,.0f} events/s"),
        Line("a followed background stream, 16 readers, SQLite", f"{back:,.0f} events/s"),
        Line(f"  of the foreground (at least {LEAST_RATIO})", f"{ratio:.2f}", ratio >= LEAST_RATIO),
        Line(
            f"lag of a follower, one process, p50 (under {MOST_LAG['sqlite']:.0f} ms)",
            f"{late:.1f} ms",
            late < MOST_LAG["sqlite"],
        ),
    ]


async def on_postgres(*, quick: bool) -> list[Line]:
    from tests.databases import postgres_server

    with postgres_server(on_disk=True) as database, database.database() as place:
        async with AsyncExitStack() as open_ones:
            one, other = (open_ones.enter_context(server("postgres", place)) for _ in range(2))
            writer, reader = [await open_ones.enter_async_context(client(url)) for url in (one, other)]
            late = median(await lags(writer, reader, 2 if quick else 10))
    most = MOST_LAG["postgres"]
    return [
        Line(
            f"lag of a follower in another process, Postgres, p50 (under {most:.0f} ms)", f"{late:.1f} ms", late < most
        )
    ]


async def measure(*, quick: bool) -> list[Line]:
    return [*await on_sqlite(quick=quick), *await on_postgres(quick=quick)]


def main() -> int:
    parser = options_of("bench.long_runs", __doc__)
    parser.add_argument("--serve", nargs=3, metavar=("KIND", "PLACE", "PORT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve[0], args.serve[1], int(args.serve[2]))
        return 0
    return report(asyncio.run(measure(quick=args.quick)), strict=args.strict)


if __name__ == "__main__":
    sys.exit(main())
