"""WebSockets without a server: handshakes, limits and ends, message by message."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import ApiKeyAuth
from frontdesk.auth.verifier import HttpVerifier
from frontdesk.channels.responses import SocketLimits
from frontdesk.errors import BodyTooLargeError, ForbiddenError, RequestError, TooManyRequestsError
from frontdesk.http.limits import Bucket, RateLimit
from frontdesk.http.sockets import BROKEN, RESTART, Allow, Socket, SocketEndpoint, SocketGoneError
from frontdesk.models.identity import Caller
from tests.scenarios.desk import until

KEY = "the-key-of-somebody"
VERIFIER = HttpVerifier("test", ApiKeyAuth({"somebody": KEY}))


class Wire:
    """The server's side of a connection."""

    def __init__(self, *messages: Any, broken: bool = False) -> None:
        self._messages = [{"type": "websocket.connect"}, *messages]
        self.sent: list[Any] = []
        self.broken = broken

    async def receive(self) -> Any:
        return self._messages.pop(0) if self._messages else {"type": "websocket.disconnect", "code": 1005}

    async def send(self, message: Any) -> None:
        if self.broken and message["type"] != "websocket.accept":
            raise OSError
        self.sent.append(message)


def text(said: str) -> Any:
    return {"type": "websocket.receive", "text": said}


def scope(key: str = KEY, **more: Any) -> Any:
    headers = [(b"Host", b"127.0.0.1"), (b"Authorization", f"Bearer {key}".encode())]
    return {"type": "websocket", "path": "/responses", "headers": headers, "client": ("127.0.0.1", 1), **more}


async def _anybody(caller: Caller) -> None:
    """Lets everyone in who has a key."""


async def _call(
    wire: Wire,
    serve: Callable[[Socket], Awaitable[None]],
    asked: Any = None,
    allow: Allow = _anybody,
    **limits: Any,
) -> None:
    def draw(error: RequestError) -> bytes:
        return error.code.encode()

    options = SocketLimits(max_message_bytes=10, **limits)
    await SocketEndpoint(VERIFIER, draw, serve, options, allow=allow)(asked or scope(), wire.receive, wire.send)


async def _never(socket: Socket) -> None:
    raise AssertionError("it was let in")


async def test_a_refused_handshake_is_told_in_words_where_the_server_can() -> None:
    wire = Wire()
    await _call(wire, _never, scope("wrong", extensions={"websocket.http.response": {}}))
    start, body = wire.sent
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 401)
    assert (b"www-authenticate", b"Bearer") in start["headers"]
    assert body == {"type": "websocket.http.response.body", "body": b"unauthenticated"}


@pytest.mark.parametrize(
    ("error", "code"), [(ForbiddenError(code="denied"), "denied"), (RuntimeError("a bug"), "internal_error")]
)
async def test_who_may_not_come_in_gets_no_connection(error: Exception, code: str) -> None:
    async def nobody(caller: Caller) -> None:
        raise error

    wire = Wire()
    await _call(wire, _never, allow=nobody)
    assert wire.sent == [{"type": "websocket.close", "code": 1008, "reason": code}]


@pytest.mark.parametrize("extensions", [{}, {"extensions": None}, {"extensions": {}}])
async def test_a_refused_handshake_is_closed_where_the_server_can_not(extensions: Any) -> None:
    wire = Wire()
    await _call(wire, _never, scope("wrong", **extensions))
    assert wire.sent == [{"type": "websocket.close", "code": 1008, "reason": "unauthenticated"}]


async def test_messages_come_in_and_go_out() -> None:
    async def echo(socket: Socket) -> None:
        assert socket.caller.identity.native_id == "somebody"
        for _ in range(2):
            await socket.send(await socket.receive())

    wire = Wire(text("one"), {"type": "websocket.receive", "bytes": b"two"})
    await _call(wire, echo)
    assert [one.get("text") or one["type"] for one in wire.sent] == [
        "websocket.accept",
        "one",
        "two",
        "websocket.close",
    ]
    assert wire.sent[-1]["code"] == 1000


async def test_the_end_is_seen_from_both_sides() -> None:
    ends: list[str] = []

    async def serve(socket: Socket) -> None:
        for act in (socket.receive(), socket.send(b"x"), socket.close(1000)):
            try:
                await act
            except SocketGoneError:
                ends.append("gone")
        raise SocketGoneError

    wire = Wire()
    await _call(wire, serve)
    assert (ends, len(wire.sent)) == (["gone", "gone"], 1)
    broken = Wire(text("one"), broken=True)
    await _call(broken, lambda socket: socket.send(b"x"))
    assert len(broken.sent) == 1


async def test_what_nobody_foresaw_closes_the_connection() -> None:
    async def fail(socket: Socket) -> None:
        raise RuntimeError("the secret reason")

    wire = Wire()
    await _call(wire, fail)
    assert wire.sent[-1]["code"] == BROKEN
    assert "secret" not in str(wire.sent)


async def test_a_server_that_stops_says_so() -> None:
    async def wait(socket: Socket) -> None:
        await asyncio.Event().wait()

    wire = Wire()
    task = asyncio.create_task(_call(wire, wait))
    await until(lambda: wire.sent)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert wire.sent[-1]["code"] == RESTART


async def test_the_limits() -> None:
    async def serve(socket: Socket) -> None:
        with pytest.raises(BodyTooLargeError):
            await socket.receive()
        assert await socket.receive() == b"x"
        for _ in range(21):
            assert not socket.stubborn
            with pytest.raises(TooManyRequestsError) as caught:
                await socket.receive()
            assert caught.value.retry_after
        assert socket.stubborn

    await _call(Wire(text("x" * 11), *[text("x")] * 22), serve, messages_per_minute=2)


@pytest.mark.parametrize("reading", [True, False])
async def test_a_client_that_does_not_read_on_is_gone(reading: bool) -> None:
    class Stuck(Wire):
        async def send(self, message: Any) -> None:
            await super().send(message)
            if message["type"] == "websocket.send":
                await asyncio.Event().wait()

        async def receive(self) -> Any:
            return await (super().receive() if self._messages else asyncio.Event().wait())

    ended: list[str] = []

    async def serve(socket: Socket) -> None:
        writing = asyncio.create_task(socket.send(b"x"))
        try:
            if not reading:
                await asyncio.wait([writing])
            await socket.receive()
        finally:
            ended.append(type(writing.exception()).__name__)

    wire = Stuck()
    await _call(wire, serve, send_seconds=0.01)
    assert ended == ["SocketGoneError"]
    assert [one["type"] for one in wire.sent] == ["websocket.accept", "websocket.send"]


def test_a_rate_gives_back_what_time_brings() -> None:
    rate = Bucket(RateLimit(60), 0.0)
    assert [rate.take(0.0) for _ in range(60)] == [0.0] * 60
    assert rate.take(0.0) == pytest.approx(1.0)
    assert rate.take(0.5) == pytest.approx(0.5)
    assert rate.take(1.0) == 0.0
    assert rate.take(1.0) > 0
    assert [rate.take(1_000.0) for _ in range(60)] == [0.0] * 60
    assert rate.take(1_000.0) > 0


@given(st.integers(1, 50), st.lists(st.floats(0, 5), max_size=60))
def test_a_rate_never_lets_more_through_than_it_says(most: int, pauses: list[float]) -> None:
    rate, now, taken = Bucket(RateLimit(most), 0.0), 0.0, 0
    for pause in pauses:
        now += pause
        taken += rate.take(now) == 0.0
    assert taken <= most + now * most / 60 + 1e-6
