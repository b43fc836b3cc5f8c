"""Progress notifications of a call: what the run does, and that it is still under way."""

import asyncio
from typing import Any

from mcp.server.session import ServerSession

from frontdesk.concurrency.tasks import spawn_within
from frontdesk.models.result import HostedStreamResult
from frontdesk.streaming.pieces import CallPiece, PieceAssembler, ResultPiece, TextPiece

ALIVE_SECONDS = 15.0
"""The idle seconds after which a notification says that the run is under way, because clients time out."""


class Progress:
    """Sends the progress of one call. Without a token of the client it does nothing."""

    def __init__(self, session: ServerSession, *, is_wanted: bool, alive_seconds: float = ALIVE_SECONDS) -> None:
        self._session = session
        self.is_wanted = is_wanted
        self._alive_seconds = alive_seconds
        self._count = 0

    async def watch(self, stream: HostedStreamResult[Any]) -> None:
        """Read a stream to its end and send its progress."""
        if not self.is_wanted:
            async for _ in stream:
                pass
            return
        alive = spawn_within(self._keep_alive())
        try:
            assembler = PieceAssembler(stream.run.run_id)
            names: dict[str, str] = {}
            messages: set[str] = set()
            await self.send("Started")
            async for update in stream:
                assembler.add(update)
                for piece in assembler.take():
                    if isinstance(piece, CallPiece):
                        names[piece.call_id] = piece.name
                        await self.send(f"Calling {piece.name}")
                    elif isinstance(piece, ResultPiece):
                        await self.send(f"Called {names.get(piece.call_id, 'a tool')}")
                    elif isinstance(piece, TextPiece) and piece.message_id not in messages:
                        messages.add(piece.message_id)
                        await self.send("Writing the answer")
            await self.send("Finishing")
        finally:
            alive.cancel()

    async def send(self, message: str) -> None:
        """Send a notification. The number increases with each one, and the total is unknown."""
        self._count += 1
        await self._session.report_progress(self._count, None, message)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._alive_seconds)
            await self.send("Still running")
