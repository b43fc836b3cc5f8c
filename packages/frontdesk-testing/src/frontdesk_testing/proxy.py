"""A TCP proxy between a host and its dependencies, for fault injection."""

import asyncio
from types import TracebackType
from typing import Self

_PIECE_BYTES = 65_536


class TcpProxy:
    """Forwards bytes in both directions, on a loopback port."""

    def __init__(self, upstream: tuple[str, int] | str) -> None:
        """Make a proxy to `upstream`: a host and a port, or the path of a socket."""
        self.delay = 0.0
        """The seconds by which every piece is delayed."""
        self.port = 0
        self._upstream = upstream
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._pairs: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.accept()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()
        self.cut()
        self.flow()
        await asyncio.gather(*self._tasks)

    @property
    def connections(self) -> int:
        """Return the number of connections."""
        return len(self._pairs)

    async def accept(self) -> None:
        """Accept connections, always at the same port."""
        if self._server is None:
            self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Refuse new connections. Existing ones continue."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def cut(self) -> None:
        """Close all connections immediately."""
        for pair in list(self._pairs.items()):
            for side in pair:
                side.transport.abort()

    def half_close(self) -> None:
        """Close the direction to the clients. The other is still forwarded."""
        for client in self._pairs:
            if client.can_write_eof():
                client.write_eof()

    def hold(self) -> None:
        """Hold back all bytes, silently."""
        self._flowing.clear()

    def flow(self) -> None:
        """Forward held and new bytes."""
        self._flowing.set()

    async def _forward(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            answers, server = await self._connect()
        except OSError:
            client.transport.abort()
            return
        self._pairs[client] = server
        await asyncio.gather(self._pass_on(reader, server), self._pass_on(answers, client))
        del self._pairs[client]
        for side in (client, server):
            side.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._upstream, str):
            return await asyncio.open_unix_connection(self._upstream)
        return await asyncio.open_connection(*self._upstream)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(_PIECE_BYTES):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self._flowing.wait()
                target.write(piece)
                await target.drain()
            target.write_eof()
        except (OSError, RuntimeError):
            # A side that is gone takes the other with it.
            target.transport.abort()
