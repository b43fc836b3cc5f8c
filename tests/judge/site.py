"""Start what is judged: hosts and workers as processes, each with its own way to the database, and chat platforms."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from frontdesk_testing.messages import MessagePlatform, message_platform
from tests.databases import NEWEST, PostgresServer, postgres_server
from tests.faults.ports import free_port
from tests.judge.app import get_key
from tests.judge.proxy import PostgresProxy
from tests.judge.wire import Answer, CutError, Exchange, ask

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0
MAX_DUE_SECONDS = 1800
"""For how long a delivery waits at most; the shortest jump of a clock is twice as long."""
_LOOK = 0.01


class Process:
    """A host or a worker."""

    def __init__(self, site: "Site", number: int, *, worker: bool, proxy: PostgresProxy | None) -> None:
        self._site = site
        self.number = number
        self.worker = worker
        self.proxy = proxy
        self.starts_earlier = False
        """Whether the next start runs the earlier version. A rolling update alternates between both."""
        self.port = free_port()
        self.stopped = False
        self.starts = 0
        self.is_wanted = False
        """Whether the process is to run; one that has ended by itself is started again then."""
        self.changing = asyncio.Lock()
        """Held by whoever ends the process and starts it again."""
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process as the system knows it."""
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Tell whether the process has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the process, and wait until it serves, or has ended again."""
        self.is_wanted = True
        self.starts += 1
        command = ["-m", "frontdesk.cli", "worker" if self.worker else "serve", "tests.judge.app:make"]
        command += ["--log-level", "warning"] + ([] if self.worker else ["--port", str(self.port)])
        checkout = self._site.earlier if self.starts_earlier else None
        self.starts_earlier = self._site.earlier is not None and not self.starts_earlier
        log = (self._site.directory / f"log-{self.number}").open("ab")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            # Where `tests.judge.app` is imported from: each version has its own.
            cwd=ROOT if checkout is None else checkout,
            env=self._site.environment(self.proxy, checkout),
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        log.close()
        assert self._process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            line = await self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"a process did not start: see {self._site.directory / f'log-{self.number}'}")
        if not self.worker:
            await self._ready()

    async def _ready(self) -> None:
        async with asyncio.timeout(START_SECONDS):
            while self.alive:
                with suppress(CutError):
                    if (await ask(self.port, "GET", "/readyz")).status == 200:
                        return
                await asyncio.sleep(_LOOK)

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        if self.alive:
            os.kill(self.pid, number)
            self.stopped = number == signal.SIGSTOP or (self.stopped and number != signal.SIGCONT)

    async def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)
        await self._wait_for_end()

    async def stop(self) -> None:
        """End it as an operator would."""
        self.is_wanted = False
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(60):
                await self._wait_for_end()
        except TimeoutError:
            await self.kill()

    async def _wait_for_end(self) -> None:
        if self._process is not None:
            await self._process.wait()
        self.stopped = False

    def memory(self) -> int:
        """The bytes that the process holds in memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    async def post(self, path: str, body: Any, *, by: int = 0, **more: Any) -> Answer:
        """Ask something as one of the callers."""
        return await ask(self.port, "POST", path, body, key=get_key(by), **more)

    async def get(self, path: str, *, by: int = 0) -> Answer:
        """Look something up as one of the callers."""
        return await ask(self.port, "GET", path, key=get_key(by))

    async def begin(self, path: str, body: Any, *, by: int = 0, method: str = "POST", **more: Any) -> Exchange:
        """Ask something, and keep the connection to read or to cut."""
        return await Exchange.begin(self.port, method, path, body, key=get_key(by), **more)


class Site:
    """One place where state is kept, and all that works on it."""

    def __init__(self, directory: Path, kind: str, place: str, settings: dict[str, Any]) -> None:
        self.directory = directory
        self.kind = kind
        self.place = place
        self.settings = settings
        self.processes: list[Process] = []
        self.platforms: dict[str, MessagePlatform] = {}
        self.server: PostgresServer | None = None
        self.earlier: Path | None = None
        """A checkout of an earlier version. Every second start of a process runs it."""
        self.stack: AsyncExitStack
        self.keep_idle_limit = True
        self._effects: list[tuple[str, str, int, float]] = []
        self._read_to = 0

    @property
    def hosts(self) -> list[Process]:
        """The processes with a port."""
        return [one for one in self.processes if not one.worker]

    @property
    def address(self) -> str:
        """The place as the command line takes it."""
        if self.kind == "sqlite":
            return self.place
        known = conninfo_to_dict(self.place)
        return f"postgresql://{known['user']}@/{known['dbname']}?host={known['host']}"

    def logs(self) -> Iterator[str]:
        """Return what all processes have logged, each line with the name of its file."""
        for path in sorted(self.directory.glob("log-*")):
            for line in path.read_text("utf-8", "replace").splitlines():
                yield f"    {path.name}: {line}"

    async def command(self, *arguments: str) -> str:
        """Run a command of the package's own, and return what it prints."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "frontdesk.cli", *arguments),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"frontdesk {' '.join(arguments)} failed: {err.decode()}")
        return out.decode()

    async def move(self, kind: str, place: str, *, hosts: int, workers: int) -> None:
        """Stop everything, move the state to another database, and start again there."""
        for process in self.processes:
            await process.stop()
        source = self.address
        self.kind, self.place = kind, place
        await self.command("move-state", "--from", source, "--to", self.address)
        await self.people(hosts, workers)

    async def people(self, hosts: int, workers: int) -> None:
        """Start hosts and workers, each with a way of its own to the database."""
        self.processes = []
        for number in range(hosts + workers):
            proxy = None
            if self.kind == "postgres":
                upstream = str(Path(str(conninfo_to_dict(self.place)["host"])) / ".s.PGSQL.5432")
                proxy = PostgresProxy(upstream, keep_idle_limit=self.keep_idle_limit)
                await self.stack.enter_async_context(proxy)
            process = Process(self, number, worker=number >= hosts, proxy=proxy)
            # The first process creates the schema of the earlier version, and the second one migrates it.
            process.starts_earlier = self.earlier is not None and number == 0
            self.processes.append(process)
        for process in self.processes:
            await process.start()

    @asynccontextmanager
    async def supervise(self) -> AsyncIterator[None]:
        """Start processes again that end by themselves, as every supervisor does."""
        task = asyncio.create_task(self._supervise())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _supervise(self) -> None:
        while True:
            for process in self.processes:
                if process.is_wanted and not process.alive and not process.changing.locked():
                    # Without its database a host does not start; then it is started once more.
                    async with process.changing:
                        with suppress(RuntimeError, TimeoutError):
                            await process.start()
            await asyncio.sleep(_LOOK)

    def environment(self, proxy: PostgresProxy | None, checkout: Path | None = None) -> dict[str, str]:
        """Return the environment of a process, which imports the package from a checkout if there is one."""
        place = self.place
        if proxy is not None:
            place = make_conninfo(place, host="127.0.0.1", port=proxy.port, sslmode="disable")
        given = {"directory": str(self.directory), "kind": self.kind, "place": place, **self.settings}
        sources = [] if checkout is None else [checkout / "src", *sorted(checkout.glob("packages/*/src"))]
        path = {"PYTHONPATH": os.pathsep.join(map(str, sources))} if sources else {}
        return {**os.environ, **path, "JUDGE": json.dumps(given)}

    def _read_notes(self) -> list[tuple[str, str, int, float]]:
        """Return what the agent noted, in order; only what is new of it is read."""
        path = self.directory / "effects"
        with suppress(FileNotFoundError), path.open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
            # The last line may be half written.
            whole = new[: new.rfind(b"\n") + 1]
            self._read_to += len(whole)
            for line in whole.decode().splitlines():
                kind, word, pid, at = line.split()
                self._effects.append((kind, word, int(pid), float(at)))
        return self._effects

    def progress(self) -> tuple[int, ...]:
        """Return what changes when the agent is asked something, or a process is started."""
        return (len(self._read_notes()), *(one.starts for one in self.processes))

    def effects(self, kind: str) -> list[str]:
        """Return the words of what the agent noted, in order."""
        return [word for one, word, _, _ in self._read_notes() if one == kind]

    def times(self, kind: str) -> dict[str, list[float]]:
        """Return when the agent noted something, for each word, on the machine's clock."""
        found: dict[str, list[float]] = {}
        for one, word, _, at in self._read_notes():
            if one == kind:
                found.setdefault(word, []).append(at)
        return found

    def process_of(self, kind: str, word: str) -> "Process | None":
        """Return the process in which the agent noted something last, if it is still there."""
        pids = [pid for one, noted, pid, _ in self._read_notes() if (one, noted) == (kind, word)]
        return next((one for one in self.processes if pids and one.alive and one.pid == pids[-1]), None)

    async def noted(self, kind: str, word: str, *, within: float = START_SECONDS) -> bool:
        """Wait until the agent notes something; tell whether it did."""
        return await self.until(lambda: word in self.effects(kind), within=within)

    async def until(self, condition: Callable[[], bool], *, within: float = START_SECONDS) -> bool:
        """Wait until a condition holds; tell whether it did in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                # What is looked at happens in other processes.
                while not condition():  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK)
                return True
        return condition()

    def open(self, gate: str) -> None:
        """Let go on what waits at a gate."""
        (self.directory / f"{gate}.go").touch()

    def set_clock(self, seconds: float) -> None:
        """Move the clock of all processes, ahead of the machine's or behind it."""
        path = self.directory / "clock.new"
        path.write_text(str(seconds))
        path.replace(self.directory / "clock")

    @contextmanager
    def lock(self) -> Any:
        """Keep the SQLite file from being written, as a disk that stands still does; reading goes on."""
        connection = sqlite3.connect(self.place, isolation_level=None, timeout=30.0)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield
        finally:
            connection.close()

    def rows(self, table: str) -> int:
        """Count the records of a kind."""
        return self.query(f"SELECT COUNT(*) FROM {table}")[0][0]  # noqa: S608 - the judge's own word

    def open_work(self) -> int:
        """Count what the hosts have yet to do: events, and deliveries."""
        events = self.query("SELECT COUNT(*) FROM inbox WHERE done_at IS NULL")
        deliveries = self.query("SELECT COUNT(*) FROM deliveries WHERE status IN ('pending', 'sending')")
        return events[0][0] + deliveries[0][0]

    def count_misdated(self) -> int:
        """Count the deliveries that are due at another time than about now, because a clock was wrong."""
        due = f"due_at - {time.time()!r} NOT BETWEEN -{MAX_DUE_SECONDS} AND {MAX_DUE_SECONDS}"
        return self.query(f"SELECT COUNT(*) FROM deliveries WHERE ended_at IS NULL AND {due}")[0][0]  # noqa: S608

    def query(self, query: str) -> list[tuple[Any, ...]]:
        """Read the database as it is, past the hosts."""
        if self.kind == "sqlite":
            connection = sqlite3.connect(f"file:{self.place}?mode=ro", uri=True)
            try:
                return connection.execute(query).fetchall()
            finally:
                connection.close()
        with psycopg.connect(self.place, autocommit=True) as line:
            return line.execute(query).fetchall()  # type: ignore[arg-type]


@asynccontextmanager
async def site(
    kind: str = "sqlite",
    *,
    hosts: int = 1,
    workers: int = 0,
    chats: tuple[str, ...] = (),
    keep_idle_limit: bool = True,
    server: PostgresServer | None = None,
    version: int = NEWEST,
    earlier: Path | None = None,
    **settings: Any,
) -> AsyncIterator[Site]:
    """Start hosts and workers on a new database; `chats` are names of channels, `plain...` without idempotency keys,
    and `live...` with answers that are shown while they are written. With `web` there is a page too."""
    directory = Path(tempfile.mkdtemp(prefix="fd-judge-"))
    async with AsyncExitStack() as stack:
        stack.callback(rmtree, directory, ignore_errors=True)
        place = str(directory / "state.db")
        if kind == "postgres":
            server = server or stack.enter_context(postgres_server(version, on_disk=True))
            place = stack.enter_context(server.database())
        found = Site(directory, kind, place, settings)
        found.server, found.earlier = server, earlier
        settings["chats"] = [await _platform(stack, found, name, settings.get("longest_delay", 0.2)) for name in chats]
        found.stack, found.keep_idle_limit = stack, keep_idle_limit
        stack.push_async_callback(_end, found)
        await found.people(hosts, workers)
        try:
            yield found
        finally:
            await _end(found)


async def _platform(stack: AsyncExitStack, place: Site, name: str, longest_delay: float) -> dict[str, Any]:
    plain = name.startswith("plain")
    options = ["--no-fsync", *(["--no-dedupe"] if plain else [])]
    platform = await stack.enter_async_context(message_platform(place.directory / f"{name}.log", *options))
    place.platforms[name] = platform
    more = {"idempotent": not plain, "longest_delay": longest_delay, "live": name.startswith("live")}
    return {"name": name, "url": platform.url, "token": platform.token, **more}


async def _end(place: Site) -> None:
    for process in place.processes:
        process.is_wanted = False
        if process.alive:
            process.send(signal.SIGCONT)
            await process.kill()
