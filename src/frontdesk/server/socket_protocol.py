"""Uvicorn's WebSocket protocol, with limits on frames, on data before the handshake ends, and on its log.

Uvicorn parses a whole read at once, which may be tens of thousands of small frames. Here a read is parsed in pieces,
and a client that constantly sends small frames is disconnected. The bytes of an incomplete message count for its
caller, once the caller is known.
"""

from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from frontdesk.asgi.messages import CONNECTION, BodyHold
from frontdesk.errors import RequestError
from frontdesk.http.limits import Bucket
from frontdesk.http.sockets import POLICY
from frontdesk.models.operations import RateLimit
from frontdesk.server.unread import PIECES_PER_BLOCK, UnreadPieces

_PIECE_BYTES = 4 * 1024
"""The bytes that are parsed at once: a few hundred of the smallest frames."""
_SMALL_FRAME_BYTES = 512
"""The size below which a frame is counted."""
_SMALL_FRAMES = RateLimit(100, per_seconds=1.0, burst=1_000)
"""The rate of small frames on one connection: messages, their parts, pings and pongs together."""
_UNCOUNTED = 256 * 1024
"""The size up to which an incomplete message does not count for its caller."""
_MARGIN_BYTES = 64 * 1024
"""The bytes by which a message may be too large for the app to say so; a larger one is not read to its end."""
_INVALID = 1007


class BoundedSocketProtocol(WebSocketsSansIOProtocol):
    """Uvicorn's protocol, with limits."""

    _hold: BodyHold | None = None
    _held = 0
    _incomplete = 0
    """The bytes of the message that is being received."""
    _pieces = _written = 0
    """The number of messages since the client was last checked, and of the bytes of all that were sent."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._frames = Bucket(_SMALL_FRAMES, self.loop.time())

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._unread = UnreadPieces(transport)

    def set_message_limit(self, max_bytes: int, hold: BodyHold | None) -> None:
        """Set the maximum message size, and the caller to whom incomplete messages are charged."""
        self.conn.max_message_size = max_bytes + _MARGIN_BYTES
        self._hold = hold

    def shutdown(self) -> None:
        if self.handshake_complete and not self.close_sent and self.conn.state.name != "OPEN":
            # Its client has just said goodbye: uvicorn's own would fail, and the server would stop nothing behind it.
            self.stop_keepalive()
            self.transport.abort()
        else:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
            self.offer(CONNECTION, self)
        elif not self.handshake_complete:
            # A client has to wait for the answer: until then nobody knows whose frames these would be.
            self.transport.close()
        elif len(data) <= _PIECE_BYTES:
            self._parse(data)
        else:
            for start in range(0, len(data), _PIECE_BYTES):
                if not self.transport.is_closing():
                    self._parse(data[start : start + _PIECE_BYTES])

    def offer(self, name: str, value: Any) -> None:
        """Offer an extension to the app, which is called after the head was read."""
        if self.handshake_initiated and not self.handshake_complete:
            extensions: dict[str, Any] = {**(self.scope.get("extensions") or {}), name: value}
            self.scope["extensions"] = extensions  # pyright: ignore[reportGeneralTypeIssues]

    def _parse(self, data: bytes) -> None:
        self._incomplete += len(data)
        if self._hold is not None and self._incomplete > _UNCOUNTED:
            try:
                self._hold.add(self._incomplete - self._held)
            except RequestError as error:
                return self._fail(POLICY, error.code)
            self._held = self._incomplete
        super().data_received(data)

    def handle_events(self) -> None:
        if not all(self._is_allowed(event) for event in self.conn.events):
            self.conn.events.clear()
            return self._fail(POLICY, "too_many_frames")
        super().handle_events()

    def _is_allowed(self, event: Any) -> bool:
        # The head of the request is an event too, and has no data.
        data: bytes | None = getattr(event, "data", None)
        return data is None or len(data) >= _SMALL_FRAME_BYTES or not self._frames.take(self.loop.time())

    def send_receive_event_to_app(self) -> None:
        self._incomplete = 0
        self._let_go()
        if self.curr_msg_data_type == "text" and not self._is_text():
            # Uvicorn would log a traceback, as often as a client likes.
            return self._fail(_INVALID, "not UTF-8")
        super().send_receive_event_to_app()

    def _is_text(self) -> bool:
        self.frames = [b"".join(self.frames)]
        try:
            self.frames[0].decode()
        except UnicodeDecodeError:
            return False
        return True

    def _fail(self, code: int, reason: str) -> None:
        if self.close_sent:
            return self.transport.close()
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    def _let_go(self) -> None:
        if self._hold is not None and self._held:
            self._hold.drop(self._held)
            self._held = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._let_go()
        super().connection_lost(exc)

    async def _wait_until_writable(self, size: int) -> None:
        """Wait before a message while too many others were not received by the app."""
        if self._pieces == PIECES_PER_BLOCK:
            await self._unread.wait(self._written)
            self._pieces = 0
        self._pieces += 1
        self._written += size

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.send":
            await self._wait_until_writable(len(message.get("text") or message.get("bytes") or ""))
        await self.writable.wait()
        if self.close_sent:
            # It was closed here, for what its client sent; uvicorn would call that a mistake of the app's, and log it.
            raise ClientDisconnected
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            # Uvicorn takes a handshake that was refused with a body for an unanswered one, and would log an error.
            self.handshake_complete = True
