"""`python -m bench.table`: the rows by which a version is judged, as `frontdesk serve` runs it, beside a bare app.

Each start of the servers is one measurement: a figure is the median of the starts. With `--against COMMIT` another
version is measured in the same run, in turns with this one.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import gc
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Literal

from bench import hosts
from bench.checkouts import Checkout, current_checkout, find_checkout
from bench.environments import InstallFailed, find_python, list_installed
from bench.figures import Row
from bench.http_client import ask_once, build_request
from bench.load import LoadFailed, pound
from bench.machine import Cores, allow_many_files, choose_cores, facts, pin, run_loop
from bench.measures.memory import QUIET_SECONDS, WARM_STREAMS, close_all, open_streams
from bench.plan import STREAM_DELTAS
from bench.process import ROOT, Server, StartFailed, Usage, start_server, wait_until_healthy
from bench.report import facts_text, number_text, rows_as_json
from bench.sample import Sample, split_events
from bench.setting import Setting
from bench.subjects import find_subject
from bench.subjects.base import Case, Subject

BARE = "bare"
PEERS = ("agentserver", "af-hosting")
TELEGRAM_PEOPLE = 200
SUBJECTS = {"invocations": "frontdesk"}
"""The modules of `bench.subjects` with the requests of a channel, if they have another name."""
RESULTS = ROOT / "bench" / "results.json"


@dataclass(frozen=True, slots=True)
class Amount:
    """The size of a run."""

    starts: int
    rounds: int
    round_seconds: float
    warm_seconds: float
    idle_streams: int
    updates: int


FULL = Amount(starts=5, rounds=3, round_seconds=1.5, warm_seconds=1.0, idle_streams=1_000, updates=1_500)
QUICK = Amount(starts=2, rounds=1, round_seconds=0.4, warm_seconds=0.2, idle_streams=100, updates=200)


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the table."""

    key: str
    name: str
    case: Case = "json"
    connections: int = 64
    target: Literal["stub", "agent"] = "stub"
    sqlite: bool = False
    peers: bool = False
    channel: str = "responses"
    """The function of `bench.hosts` that builds the host."""
    bare: str = BARE
    """The subject that the ratio is to, if it is not the bare app."""
    goal: float | None = None
    """The least ratio to the bare app. For idle streams: the most KiB. For Telegram: the most Responses requests."""


ROWS = (
    Measured("json-memory", "Responses JSON, 64 connections, memory", peers=True, goal=0.45),
    Measured("json-sqlite", "Responses JSON, 64 connections, SQLite", sqlite=True, goal=0.28),
    Measured("sse-ready", "Responses SSE, 32 connections, ready updates", "stream", 32, peers=True),
    Measured("sse", "Responses SSE, 32 connections, updates built", "fresh", 32, peers=True, goal=0.38),
    Measured("json-agent", "Responses JSON, 64 connections, `Agent`", target="agent", goal=0.19),
    Measured("json-invocations", "Invocations JSON, 64 connections", channel="invocations"),
    Measured("json-chat", "Chat Completions JSON, 64 connections", channel="chat_completions"),
    Measured("json-mcp", "MCP call, 64 connections, beside the SDK", channel="mcp", bare="mcp-sdk", goal=0.8),
    Measured("idle-stub", "idle stream", "idle", peers=True, goal=30),
    Measured("idle-agent", "idle stream, `Agent`", "idle", target="agent", goal=42),
    Measured("telegram", "Telegram update, SQLite", sqlite=True, goal=7),
)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A server of the table: a version of ours, a peer, or the bare app."""

    label: str
    subject: Subject
    checkout: Checkout | None = None
    core: int | None = None

    def request(self, case: Case, channel: str = "responses") -> bytes:
        """Return the bytes of a request to a channel."""
        subject = self.subject if self.checkout is None else find_subject(SUBJECTS.get(channel, channel))
        return build_request("POST", *subject.request(case), **subject.headers)

    @asynccontextmanager
    async def serve(self, row: Measured, sample: Path | None) -> AsyncIterator[Server]:
        """Start a new server for a row, and stop it."""
        if self.checkout is None:
            server = await start_server(self.subject, self.core, Setting(sample=sample))
            try:
                yield server
            finally:
                server.stop()
            return
        with tempfile.TemporaryDirectory(prefix="state-", dir=ROOT / ".bench") as state:
            environment = {hosts.STATE: state if row.sqlite else "", hosts.TARGET: row.target}
            async with serve_host(self.checkout, row.channel, self.core, environment) as server:
                yield server


@asynccontextmanager
async def serve_host(
    checkout: Checkout, name: str, core: int | None, environment: dict[str, str], port: int = 0
) -> AsyncIterator[Server]:
    """Serve a host of `bench.hosts` by the command of a checkout."""
    port = port or free_port()
    command = [sys.executable, "-m", "frontdesk.cli", "serve", f"bench.hosts:{name}", "--port", str(port)]
    with tempfile.TemporaryFile("w+") as errors:
        began = perf_counter()
        process = subprocess.Popen(  # noqa: ASYNC220
            command,
            cwd=ROOT,
            env={**checkout.environment(), **environment},
            stdout=subprocess.DEVNULL,
            stderr=errors,
            text=True,
            preexec_fn=lambda: pin(core),
        )
        server = Server(process, port, 0.0)
        try:
            await wait_until_healthy(port, "/healthz")
        except BaseException as error:
            server.stop()
            errors.seek(0)
            raise StartFailed(f"{checkout.commit}: {errors.read()[-2000:] or 'no answer'}") from error
        server.start_seconds = perf_counter() - began
        try:
            yield server
        finally:
            server.stop()


def free_port() -> int:
    """Return a port that no server uses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Table:
    """Measures rows, and keeps the figures of every start."""

    def __init__(self, amount: Amount, cores: Cores, checkouts: Sequence[Checkout], peers: Sequence[Subject]) -> None:
        responses = find_subject("responses")
        self._amount = amount
        self._cores = cores
        self._ours = [Contestant(one.commit, responses, one, cores.server) for one in checkouts]
        names = {BARE, *(row.bare for row in ROWS)}
        self._bare = {name: Contestant(BARE, find_subject(name), core=cores.server) for name in names}
        self._peers = [Contestant(peer.name, peer, core=cores.server) for peer in peers]
        self.rows: dict[str, Row] = {}

    async def measure(self, measured: Sequence[Measured]) -> None:
        """Measure each row once for each start."""
        for number in range(self._amount.starts):
            for one in measured:
                print(f"  start {number + 1} of {self._amount.starts}: {one.key} ...", file=sys.stderr, flush=True)
                if one.key == "telegram":
                    await self._measure_telegram(one, number)
                elif one.case == "idle":
                    await self._measure_idle(one, number)
                else:
                    await self._measure_load(one, number)

    def _contestants(self, one: Measured, number: int) -> list[Contestant]:
        """Return those of a row. Each start begins with another one, so that a drift affects all of them."""
        all_of_them = [self._bare[one.bare], *self._ours, *(self._peers if one.peers else ())]
        shift = number % len(all_of_them)
        return all_of_them[shift:] + all_of_them[:shift]

    def _row(self, key: str, name: str, unit: str) -> Row:
        return self.rows.setdefault(key, Row(key, name, unit))

    @asynccontextmanager
    async def _serve(self, one: Measured, number: int) -> AsyncIterator[list[tuple[Contestant, Server]]]:
        """Serve all contestants of a row at once. The bare app sends the bytes of the first version of ours."""
        with tempfile.TemporaryDirectory() as folder:
            sample = Path(folder) / "sample.json"
            async with AsyncExitStack() as stack:
                ours = {
                    get_principal.label: await stack.enter_async_context(get_principal.serve(one, None))
                    for get_principal in self._ours
                }
                first = self._ours[0]
                if one.bare == BARE:
                    (await learn_sample(first, ours[first.label], one)).save(sample)
                servers = list[tuple[Contestant, Server]]()
                for contestant in self._contestants(one, number):
                    server = ours.get(contestant.label)
                    if server is None:
                        server = await stack.enter_async_context(contestant.serve(one, sample))
                    servers.append((contestant, server))
                yield servers

    async def _measure_load(self, one: Measured, number: int) -> None:
        thing = "request" if one.case == "json" else "event"
        rate, cost = self._row(one.key, one.name, f"{thing}s/s"), self._row(f"{one.key}-cpu", "  processor time", "us")
        rates, costs = dict[str, list[float]](), dict[str, list[float]]()
        async with self._serve(one, number) as servers:
            for contestant, server in servers:
                await self._load(contestant, server, one, self._amount.warm_seconds)
            for _ in range(self._amount.rounds):
                for contestant, server in servers:
                    a_second, micros = await self._load(contestant, server, one, self._amount.round_seconds)
                    rates.setdefault(contestant.label, []).append(a_second)
                    costs.setdefault(contestant.label, []).append(micros)
        for contestant in (self._bare[one.bare], *self._ours, *self._peers):
            if contestant.label in rates:
                rate.add(contestant.label, median(rates[contestant.label]))
                cost.add(contestant.label, median(costs[contestant.label]))

    async def _load(self, contestant: Contestant, server: Server, one: Measured, seconds: float) -> tuple[float, float]:
        before = server.usage()
        load = await pound(
            server.port,
            contestant.request(one.case, one.channel),
            connections=one.connections,
            seconds=seconds,
            event_mark=contestant.subject.event_mark,
        )
        count = load.requests if one.case == "json" else load.events
        used: Usage | None = after.since(before) if before and (after := server.usage()) else None
        return count / load.seconds, used.ran / count * 1e6 if used else 0.0

    async def _measure_idle(self, one: Measured, number: int) -> None:
        row, wanted = self._row(one.key, f"{one.name} ({self._amount.idle_streams:,} open)", "KiB"), self._amount
        figures = dict[str, float]()
        async with self._serve(one, number) as servers:
            for contestant, server in servers:
                close_all(await open_streams(contestant, server.port, WARM_STREAMS))
                await asyncio.sleep(QUIET_SECONDS)
                before = server.memory()
                streams = await open_streams(contestant, server.port, wanted.idle_streams)
                await asyncio.sleep(QUIET_SECONDS)
                still_open = sum(not stream.ended for stream in streams)
                if still_open < wanted.idle_streams:
                    raise LoadFailed(f"{contestant.label}: {still_open} of {wanted.idle_streams} streams are open")
                figures[contestant.label] = (server.memory() - before) / 1024 / len(streams)
                close_all(streams)
                await asyncio.sleep(QUIET_SECONDS)
        for contestant in (self._bare[one.bare], *self._ours, *self._peers):
            if contestant.label in figures:
                row.add(contestant.label, figures[contestant.label])

    async def _measure_telegram(self, one: Measured, number: int) -> None:
        rate, cost = self._row(one.key, one.name, "updates/s"), self._row("telegram-cpu", "  processor time", "us")
        for contestant in self._ours if number % 2 == 0 else reversed(self._ours):
            assert contestant.checkout
            a_second, micros = await self._answer_updates(contestant.checkout)
            rate.add(contestant.label, a_second)
            cost.add(contestant.label, micros)

    async def _answer_updates(self, checkout: Checkout) -> tuple[float, float]:
        from bench.telegram import Answers, FakeTelegram, fake_telegram

        port = free_port()
        with tempfile.TemporaryDirectory(prefix="state-", dir=ROOT / ".bench") as state:
            async with fake_telegram(FakeTelegram(flood=None)) as telegram:
                environment = {
                    hosts.STATE: state,
                    hosts.API_URL: telegram.url,
                    hosts.BOT_TOKEN: telegram.token,
                    hosts.PUBLIC_URL: f"http://127.0.0.1:{port}",
                }
                async with serve_host(checkout, "telegram", self._cores.server, environment, port) as server:
                    await telegram.until(lambda: telegram.list_calls("setWebhook"), within=60)
                    answers = Answers(telegram)
                    people = [telegram.user(f"Guest {number}") for number in range(TELEGRAM_PEOPLE)]
                    await self._write(telegram, people, answers, self._amount.updates // 3)
                    before, began = server.usage(), perf_counter()
                    await self._write(telegram, people, answers, self._amount.updates)
                    seconds, after = perf_counter() - began, server.usage()
        used = after.since(before) if before and after else None
        count = self._amount.updates
        return count / seconds, used.ran / count * 1e6 if used else 0.0

    async def _write(self, telegram: Any, people: Sequence[Any], answers: Any, count: int) -> None:
        """Have people write as fast as the platform can pass it on, and wait for all answers."""
        before = answers.count()
        for number in range(count):
            telegram.say(people[number % len(people)], f"message {number}")
        await answers.wait(before + count)


async def learn_sample(contestant: Contestant, server: Server, one: Measured) -> Sample:
    """Ask a host for the bytes that the bare app sends."""
    case: Case = "stream" if one.target == "stub" else "fresh"
    answer, stream = [await ask_once(server.port, contestant.request(each, one.channel)) for each in ("json", case)]
    for reply in (answer, stream):
        if reply.status != 200:
            raise LoadFailed(f"{contestant.label} answered {reply.status}: {reply.body[:500]!r}")
    events = split_events(stream.body, contestant.subject.event_mark)
    if one.target == "stub" and len(events) < STREAM_DELTAS:
        raise LoadFailed(f"{contestant.label} sent only {len(events)} events")
    return Sample(answer=answer.body.decode(), events=events, idle_count=contestant.subject.idle_events)


def table_text(rows: Sequence[Row], ours: Sequence[str], labels: Sequence[str]) -> str:
    """Return the table: medians with their spread, and ratios to the bare app and to the other version."""
    head = f"{'':52}{'':12}" + "".join(f"{label:>18}" for label in labels)
    lines = [head + "".join(f"{f'{label}/bare':>16}" for label in ours) + ("  this/other" if len(ours) > 1 else "")]
    for row in rows:
        line = f"{row.name:52}{row.unit:12}"
        for label in labels:
            figure = row.figures.get(label)
            spread = f"±{figure.spread / 2:.1%}" if figure and len(figure.rounds) > 1 else ""
            line += f"{f'{number_text(figure.middle)} {spread:>6}' if figure else '':>18}"
        for label in ours:
            line += f"{f'{row.ratio(label, BARE):.3f}' if BARE in row.figures else '':>16}"
        if len(ours) > 1:
            line += f"{row.lead(ours[0], ours[1]):>12.3f}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def goals_text(rows: dict[str, Row], label: str) -> tuple[str, bool]:
    """Return a line for each goal, and whether all of them were reached."""
    lines, all_met = list[str](), True
    for one in ROWS:
        if one.goal is None or one.key not in rows:
            continue
        figure = _goal_figure(rows, one, label)
        if figure is None:
            continue
        is_at_most = one.case == "idle" or one.key == "telegram"
        met = figure <= one.goal if is_at_most else figure >= one.goal
        all_met = all_met and met
        wanted = f"at {'most' if is_at_most else 'least'} {one.goal:g} wanted"
        lines.append(f"{'PASS' if met else 'MISS'}  {one.name}: {figure:.3g}, {wanted}")
    return "\n".join(lines), all_met


def _goal_figure(rows: dict[str, Row], one: Measured, label: str) -> float | None:
    row = rows[one.key]
    if one.key == "telegram":
        if "json-sqlite-cpu" not in rows:
            return None
        return rows["telegram-cpu"].figures[label].middle / rows["json-sqlite-cpu"].figures[label].middle
    return row.figures[label].middle if one.case == "idle" else row.ratio(label, BARE)


def find_peers() -> list[Subject]:
    """Return the peers that can be installed here."""
    found = list[Subject]()
    for name in PEERS:
        peer = find_subject(name)
        try:
            peer.python = find_python(peer)
        except InstallFailed as error:
            print(f"  {name} is left out: {error}", file=sys.stderr)
            continue
        found.append(peer)
    return found


def name_peer(peer: Subject) -> str:
    """Return the package of a peer with its version, as the README names it."""
    name, version = list_installed(peer).split(", ")[-1].split()
    return f"`{name}` {version}"


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.table", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="measure another version in the same run")
    parser.add_argument("--only", default="", help=f"some of {','.join(one.key for one in ROWS)}")
    parser.add_argument("--starts", type=int, help="the number of times that every server is started")
    parser.add_argument("--quick", action="store_true", help="a smoke run; its figures are rough")
    parser.add_argument("--no-peers", action="store_true", help="leave out the packages of others")
    parser.add_argument("--strict", action="store_true", help="fail if a goal is missed")
    parser.add_argument("--least", type=float, help="with --against: fail if a row is below this part of the other one")
    parser.add_argument("--json", type=Path, help=f"write all figures to a file; the README is made of {RESULTS.name}")
    return parser.parse_args(arguments)


async def run(args: argparse.Namespace) -> bool:
    """Measure and print; return whether everything that was asked for holds."""
    amount, cores = QUICK if args.quick else FULL, choose_cores()
    if args.starts:
        amount = Amount(args.starts, *(getattr(amount, name) for name in list(Amount.__slots__)[1:]))
    checkouts = [current_checkout(), *([find_checkout(args.against)] if args.against else [])]
    for one in checkouts:
        for sources in [one.root / "src", *one.root.glob("packages/*/src")]:
            compileall.compile_dir(sources, quiet=1)
    wanted = set(args.only.split(",")) if args.only else {one.key for one in ROWS}
    peers = [] if args.no_peers or args.against else find_peers()
    machine = {**facts(cores), "starts": str(amount.starts), "commits": ", ".join(one.commit for one in checkouts)}
    print(facts_text(machine))
    pin(cores.generator)
    allow_many_files()
    gc.disable()
    table = Table(amount, cores, checkouts, peers)
    await table.measure([one for one in ROWS if one.key in wanted])
    ours = [one.commit for one in checkouts]
    rows = list(table.rows.values())
    print(f"\n{table_text(rows, ours, [BARE, *ours, *(peer.name for peer in peers)])}\n")
    text, all_met = goals_text(table.rows, ours[0])
    print(text)
    if args.json:
        told = {
            "facts": machine,
            "peers": {peer.name: name_peer(peer) for peer in peers},
            "rows": list(rows_as_json(rows)),
        }
        args.json.write_text(json.dumps(told, indent=1) + "\n")
    behind = [row.key for row in rows if args.against and args.least and row.lead(*ours) < args.least]
    if behind:
        print(f"below {args.least} of {ours[1]}: {', '.join(behind)}")
    return not behind and (all_met or not args.strict)


def main(arguments: Sequence[str] | None = None) -> int:
    (ROOT / ".bench").mkdir(exist_ok=True)
    return 0 if run_loop(run(parse_arguments(arguments))) else 1


if __name__ == "__main__":
    sys.exit(main())
