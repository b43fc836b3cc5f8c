"""Stand between a host and its Postgres: read the protocol as far as to know a COMMIT, and disturb what is known."""

import asyncio
import struct
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

_STARTUP_LIMITS = b"idle_in_transaction_session_timeout"


class Rule:
    """What is to happen at a commit. `seen` is set when it does; `release` lets go on what is held, `done` follows."""

    def __init__(self, kind: str, *, touching: str = "", without: str = "", at_byte: int = 0) -> None:
        """`kind` is `cut` (the reply, after some bytes), `hold` (the command) or `hold_reply`; `touching` is a word of
        a statement of the transaction, `without` one that it must not have."""
        self.kind = kind
        self.touching = touching
        self.at_byte = at_byte
        self.without = without
        self.seen = asyncio.Event()
        self.release = asyncio.Event()
        self.done = asyncio.Event()

    def takes(self, statements: list[str]) -> bool:
        """Tell whether a transaction is the one that is meant."""
        if self.without and any(self.without in one for one in statements):
            return False
        return not self.seen.is_set() and any(self.touching in one for one in statements)


class PostgresProxy:
    """A way to a database, on a port of its own."""

    def __init__(self, upstream: str, *, keep_idle_limit: bool = True) -> None:
        """`upstream` is the server's socket. Without its idle limit, the server waits for a delayed command for ever,
        as if the delay were on its side of the clock."""
        self._upstream = upstream
        self._keep_idle_limit = keep_idle_limit
        self._lines: set[_Line] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._rules: list[Rule] = []
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self.commits = 0

    @property
    def port(self) -> int:
        """Where hosts connect."""
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    def add(self, rule: Rule) -> Rule:
        """Wait for a commit with a rule."""
        self._rules.append(rule)
        return rule

    def forget(self, rule: Rule) -> None:
        """Drop a rule that has met nothing."""
        if rule in self._rules:
            self._rules.remove(rule)

    def rule_for(self, kinds: tuple[str, ...], statements: list[str]) -> Rule | None:
        """Find the rule that applies, once."""
        found = next((one for one in self._rules if one.kind in kinds and one.takes(statements)), None)
        if found is not None:
            found.seen.set()
            self._rules.remove(found)
        return found

    def stall(self) -> None:
        """Let nothing through, in either direction, and take no connection."""
        self._flowing.clear()

    def flow(self) -> None:
        """Let everything go on, and forget rules that have met nothing."""
        self._rules.clear()
        self._flowing.set()

    async def wait_until_flowing(self) -> None:
        """Return when nothing is stalled."""
        await self._flowing.wait()

    def cut(self) -> None:
        """End every connection."""
        for line in list(self._lines):
            line.cut()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.wait_until_flowing()
        try:
            server = await asyncio.open_unix_connection(self._upstream)
        except OSError:
            writer.transport.abort()
            return
        line = _Line(self, (reader, writer), server, self._keep_idle_limit)
        self._lines.add(line)
        try:
            await line.run()
        finally:
            self._lines.discard(line)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flow()
        if self._server is not None:
            self._server.close()
        self.cut()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Line:
    """One connection of a host."""

    def __init__(self, proxy: PostgresProxy, client: Ends, server: Ends, keep_idle_limit: bool) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._keep_idle_limit = keep_idle_limit
        self._prepared: dict[bytes, str] = {}
        self._statements: list[str] = []
        self._bound = ""
        self._parsing = False
        self._open = False
        self._held: Rule | None = None

    def cut(self) -> None:
        for _, writer in (self._client, self._server):
            writer.transport.abort()

    async def run(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, ConnectionError):
            await self._start()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._run_to_end(self._to_server()))
                group.create_task(self._run_to_end(self._to_client()))
        self.cut()

    async def _run_to_end(self, work: Coroutine[Any, Any, None]) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, ConnectionError):
            await work
        self.cut()

    async def _start(self) -> None:
        """Pass on the first packet, which has no type; a wish for encryption is refused."""
        while True:
            size = await self._client[0].readexactly(4)
            rest = await self._client[0].readexactly(struct.unpack("!I", size)[0] - 4)
            if rest[:4] == struct.pack("!I", 80877103):
                self._client[1].write(b"N")
                continue
            break
        if not self._keep_idle_limit:
            rest = _without_limit(rest)
        self._server[1].write(struct.pack("!I", len(rest) + 4) + rest)

    async def _to_server(self) -> None:
        while True:
            kind, message = await _message(self._client[0])
            await self._proxy.wait_until_flowing()
            if self._is_commit(kind, message):
                rule = self._proxy.rule_for(("hold",), self._statements)
                if rule is not None:
                    await rule.release.wait()
                    self._held = rule
            self._server[1].write(message)
            await self._server[1].drain()

    def _is_commit(self, kind: bytes, message: bytes) -> bool:
        """Follow what is executed; tell whether a commit begins with this message, before the server hears of it."""
        body = message[5:]
        if kind == b"Q":
            self._bound = body.rstrip(b"\0").decode()
            self._note()
            return self._bound == "COMMIT"
        if kind == b"P":
            name, text = body.split(b"\0")[:2]
            self._prepared[name] = text.decode()
            self._parsing = text == b"COMMIT"
            return self._parsing
        if kind == b"B":
            self._bound = self._prepared.get(body.split(b"\0")[1], "")
            parsed, self._parsing = self._parsing, False
            return self._bound == "COMMIT" and not parsed
        if kind == b"E":
            self._note()
        return False

    def _note(self) -> None:
        if self._bound == "BEGIN":
            self._statements, self._open = [], True
        elif self._bound in ("COMMIT", "ROLLBACK"):
            self._open = False
        elif self._open:
            self._statements.append(self._bound)

    async def _from_server(self) -> tuple[bytes, bytes]:
        """The server's next message; with it, or without one, a commit that was held has had its effect."""
        try:
            return await _message(self._server[0])
        finally:
            if self._held is not None:
                self._held.done.set()

    async def _to_client(self) -> None:
        writer = self._client[1]
        while True:
            kind, message = await self._from_server()
            await self._proxy.wait_until_flowing()
            if kind == b"C" and message[5:] == b"COMMIT\0":
                self._proxy.commits += 1
                rule = self._proxy.rule_for(("cut", "hold_reply"), self._statements)
                if rule is not None and rule.kind == "cut":
                    _, ready = await _message(self._server[0])
                    writer.write((message + ready)[: rule.at_byte])
                    await writer.drain()
                    return
                if rule is not None:
                    await rule.release.wait()
            writer.write(message)
            await writer.drain()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    rest = await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
    return head[:1], head + rest


def _without_limit(startup: bytes) -> bytes:
    """Take the idle limit out of the options that a host asks for."""
    fields = startup[4:].split(b"\0")
    for number, field in enumerate(fields):
        if _STARTUP_LIMITS in field:
            kept = [one for one in field.split(b"-c ") if _STARTUP_LIMITS not in one]
            fields[number] = b"-c ".join(kept).strip()
    return startup[:4] + b"\0".join(fields)
