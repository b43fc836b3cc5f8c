"""`python -m bench.deliveries`: how many deliveries a second go out, and how long after its result an answer is pushed.

The platform is the fake one of `frontdesk_testing`, in a process of its own, and answers at once. A delivery is
written, noted as being sent, given to the platform, and noted as accepted; all of that is counted. The host is one
process, which schedules and works; over Postgres each destination is woken by a job of Procrastinate's.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.figures import Line
from bench.part import run
from frontdesk import AgentFrameworkHost, ChannelIdentity, PostgresStateStore, ProcrastinateTaskRunner
from frontdesk.interfaces.chat import PushTerms
from frontdesk.models.delivery import Delivery
from frontdesk_testing.internals import get_components, get_store
from frontdesk_testing.messages import MessageChannel, MessagePlatform, message_platform

DESTINATIONS = 50
LEAST = {"sqlite": 1_000, "postgres": 400}
MOST_MS = {"sqlite": 15.0, "postgres": 60.0}
TITLES = {"sqlite": "in-process, SQLite", "postgres": "Procrastinate, one worker"}


async def tell_the_time(text: str) -> str:
    """Its answer is the moment of its result."""
    return repr(time.time())


@asynccontextmanager
async def host_on(kind: str, place: str, platform: MessagePlatform) -> AsyncIterator[AgentFrameworkHost]:
    """A host that is alive; nobody calls it over HTTP, so that it has no server."""
    channel = MessageChannel(
        platform_url=platform.url, token=platform.token, secret="x" * 16, intake="polling", poll_seconds=5.0
    )
    channel.push_terms = PushTerms(at_once=DESTINATIONS)
    where: dict[str, Any] = {"state_dir": place}
    if kind == "postgres":
        store = PostgresStateStore(place)
        where = {"store": store, "runner": ProcrastinateTaskRunner(store)}
    host = AgentFrameworkHost(tell_the_time, channels=[channel], shutdown_grace_seconds=0, **where)
    async with host.app.router.lifespan_context(host.app):
        yield host


async def deliveries_a_second(host: AgentFrameworkHost, platform: MessagePlatform, count: int, lap: str) -> float:
    """Writes deliveries for all destinations, some at a time, and waits until the platform has all of them."""
    people = [await platform.user(f"{lap} {number}", user_id=f"{lap}{number}") for number in range(DESTINATIONS)]
    store, outbox = get_store(host), get_components(host).outbox
    before = (await platform.state()).accepted
    began = time.monotonic()
    for start in range(0, count, DESTINATIONS):
        now = time.time()
        rows = [
            Delivery(
                delivery_id=f"dlv_{lap}_{start + number}",
                run_id="run",
                owner=one.user_id,
                channel="messages",
                identity=ChannelIdentity(channel="messages", native_id=one.user_id),
                part=0,
                payload={"text": f"message {start}"},
                created_at=now,
                due_at=now,
            )
            for number, one in enumerate(people)
        ]
        async with store.transaction() as transaction:
            for row in rows:
                transaction.add_delivery(row)
        await outbox.wake(rows)

    async def all_there() -> bool:
        return (await platform.state()).accepted >= before + count

    await platform.until(all_there, within=120)
    return count / (time.monotonic() - began)


async def lags(platform: MessagePlatform, times: int, lap: str) -> list[float]:
    """How many milliseconds after its result an answer is accepted, when there is nothing else to do."""
    ann = await platform.user("Ann", user_id=f"ann{lap}")
    for number in range(times):
        await platform.say(ann, "what time is it?")
        await platform.wait_for_answers(ann.chat_id, number + 1)
    entries = [one for one in await platform.log() if one.method == "send" and one.chat_id == ann.chat_id]
    return [(one.at - float(one.text)) * 1e3 for one in entries]


async def measure_on(kind: str, place: str, log: Path, *, quick: bool) -> list[Line]:
    rounds, count, times = (2, 500, 10) if quick else (5, 5_000, 60)
    async with message_platform(log, "--no-fsync") as platform, host_on(kind, place, platform) as host:
        speeds = [await deliveries_a_second(host, platform, count, f"{kind}-{lap}-") for lap in range(rounds)]
        late = await lags(platform, times, kind)
    speed, middle = median(speeds), median(late)
    slowest = quantiles(late, n=20)[-1]
    return [
        Line(
            f"deliveries to {DESTINATIONS} destinations, {TITLES[kind]} (at least {LEAST[kind]:,})",
            f"{speed:,.0f}/s",
            speed >= LEAST[kind],
        ),
        Line(
            f"from result to push on an idle host, p50 (under {MOST_MS[kind]:.0f} ms)",
            f"{middle:.1f} ms",
            middle < MOST_MS[kind],
        ),
        Line("  the same, p95", f"{slowest:.1f} ms"),
    ]


async def measure(*, quick: bool) -> list[Line]:
    from tests.databases import postgres_server

    with tempfile.TemporaryDirectory(dir=".") as directory:
        root = Path(directory)
        lines = await measure_on("sqlite", str(root / "state"), root / "one.log", quick=quick)
        with postgres_server(on_disk=True) as server, server.database() as conninfo:
            lines += await measure_on("postgres", conninfo, root / "two.log", quick=quick)
    return lines


if __name__ == "__main__":
    sys.exit(run("bench.deliveries", __doc__, measure))
