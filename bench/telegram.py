"""`python -m bench.telegram`: how many updates a second are answered on Telegram, and how long one takes.

Telegram is the fake one of `frontdesk_testing`, in this process: it sends updates to the webhook as the platform does,
and takes the answers. The host is a process of its own, with its state in SQLite. The rates of the platform are lifted
on both sides, and answers are not shown while they are written.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median, quantiles

import psutil

from bench.figures import Line
from bench.part import run
from frontdesk import AgentFrameworkHost
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.interfaces.chat import PushTerms
from frontdesk_testing.telegram import FakeTelegram, fake_telegram

SECRET = "the-secret-of-the-bench"
PEOPLE = 200
LEAST = 300
_PLACES = ("BENCH_STATE", "BENCH_API", "BENCH_TOKEN", "BENCH_PORT")


async def echo(text: str) -> str:
    """Answer with what was said."""
    return text


def host() -> AgentFrameworkHost:
    """Make the host of the measured process."""
    state, api, token, port = (os.environ[name] for name in _PLACES)
    channel = TelegramChannel(
        bot_token=token,
        secret_token=SECRET,
        api_url=api,
        public_url=f"http://127.0.0.1:{port}",
        max_connections=100,
        live="off",
        allowlist=None,
        push_terms=PushTerms(at_once=TelegramChannel.push_terms.at_once),
    )
    return AgentFrameworkHost(echo, channels=[channel], state_dir=state)


class Answers:
    """Counts the messages of the bot as they come."""

    def __init__(self, telegram: FakeTelegram) -> None:
        self._telegram = telegram
        self._seen = 0
        self._count = 0

    def count(self) -> int:
        """Return how many messages the bot has sent."""
        calls = self._telegram.calls
        self._count += sum(call.method == "sendMessage" for call in calls[self._seen :])
        self._seen = len(calls)
        return self._count

    async def wait(self, count: int) -> None:
        """Wait until there are so many."""
        await self._telegram.until(lambda: self.count() >= count, within=120)


@asynccontextmanager
async def serve(telegram: FakeTelegram, state: str) -> AsyncIterator[psutil.Process]:
    """Serve the host in a process of its own, until it has registered its webhook."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    places = dict(zip(_PLACES, (state, telegram.url, telegram.token, str(port)), strict=True))
    command = (sys.executable, "-m", "frontdesk.cli", "serve", "bench.telegram:host", "--port", str(port))
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **places}, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await telegram.until(lambda: telegram.list_calls("setWebhook"), within=60)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        await process.wait()


async def updates_a_second(telegram: FakeTelegram, answers: Answers, count: int) -> float:
    """Have people write as fast as the platform can pass it on; each waits for nobody."""
    people = [telegram.user(f"Guest {number}") for number in range(PEOPLE)]
    before, began = answers.count(), time.perf_counter()
    for number in range(count):
        telegram.say(people[number % PEOPLE], f"message {number}")
    await answers.wait(before + count)
    return count / (time.perf_counter() - began)


async def waits(telegram: FakeTelegram, answers: Answers, times: int) -> list[float]:
    """Return how many milliseconds messages wait for their answers, on a host that has nothing else to do."""
    ann, taken = telegram.user("Ann"), list[float]()
    for number in range(times):
        before, began = answers.count(), time.perf_counter()
        telegram.say(ann, f"question {number}")
        await answers.wait(before + 1)
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


async def measure(*, quick: bool) -> list[Line]:
    """Measure, and return the lines of the report."""
    rounds, count, times = (2, 300, 20) if quick else (5, 3_000, 100)
    with tempfile.TemporaryDirectory(dir=".") as state:
        async with fake_telegram(FakeTelegram(flood=None)) as telegram, serve(telegram, state) as process:
            answers, before = Answers(telegram), _cpu(process)
            speeds = [await updates_a_second(telegram, answers, count) for _ in range(rounds)]
            spent = (_cpu(process) - before) / (rounds * count)
            idle = await waits(telegram, answers, times)
    speed = median(speeds)
    return [
        Line(f"updates from webhook to answer, SQLite (at least {LEAST})", f"{speed:,.0f}/s", speed >= LEAST),
        Line("  the host's processor time for each", f"{spent * 1e3:.2f} ms"),
        Line("from update to answer on an idle host, p50", f"{median(idle):.1f} ms"),
        Line("  the same, p95", f"{quantiles(idle, n=20)[-1]:.1f} ms"),
    ]


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    sys.exit(run("bench.telegram", __doc__, measure))
