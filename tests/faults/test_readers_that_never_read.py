"""Clients that ask for something and take nothing of it: little is kept for them, and not for ever."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from frontdesk import AgentFrameworkHost, ServerLimits
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel, SocketLimits
from frontdesk.models.run import RunRecord
from frontdesk.server.unread import MAX_UNREAD_PIECES, UnreadWatch, bytes_taken
from frontdesk.server.uvicorn_server import Server
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.internals import active_runs
from tests.scenarios.desk import DEADLINE, open_client, until
from tests.scenarios.ledger import Ledger

PIECE = "x" * 64 * 1024
MIB = 1024 * 1024
READERS = 40
SHORT = 0.2
PATIENT = ServerLimits(send_seconds=1_000.0)


class Fountain:
    """Pours as much as anybody takes, or a number of pieces."""

    def __init__(self, pieces: int | None = None) -> None:
        self.made = 0
        self._pieces = pieces

    async def talk(self, text: str) -> AsyncIterator[str]:
        if text == "next":
            yield "good"
            return
        while self._pieces is None or self.made < self._pieces:
            self.made += 1
            yield PIECE


async def loaf(text: str) -> str:
    """A large answer in one piece."""
    return text if text == "next" else 4 * MIB * "x"


class Place:
    """A host behind the server that it comes with."""

    def __init__(self, server: Server, host: AgentFrameworkHost, ledger: Ledger) -> None:
        self.server = server
        self.host = host
        self.ledger = ledger
        self.port = server.servers[0].sockets[0].getsockname()[1]
        self.stack = ExitStack()

    @property
    def connections(self) -> list[Any]:
        return list(self.server.server_state.connections)

    @property
    def runs(self) -> list[RunRecord]:
        return list(self.ledger.kept_runs.values())

    @property
    def active(self) -> int:
        return len(active_runs(self.host))

    def ask_deaf(self, path: str, body: Any = None, *, method: str = "POST", close: bool = False) -> socket.socket:
        """Ask for something, and never read it."""
        payload = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(payload)}\r\n"
        line = self.stack.enter_context(socket.create_connection(("127.0.0.1", self.port)))
        line.sendall((head + ("connection: close\r\n" if close else "") + "\r\n").encode() + payload)
        return line

    async def ask(self, path: str, body: Any) -> httpx.Response:
        async with httpx.AsyncClient(timeout=DEADLINE, trust_env=False) as client:
            return await client.post(f"http://127.0.0.1:{self.port}{path}", json=body)


@asynccontextmanager
async def serve(
    target: Any, *, limits: ServerLimits = PATIENT, send_seconds: float = SHORT, **options: Any
) -> AsyncIterator[Place]:
    ledger: Any = Ledger(InMemoryStateStore())
    channels = [
        InvocationsChannel(send_seconds=send_seconds),
        ResponsesChannel(send_seconds=send_seconds, **options),
    ]
    host = AgentFrameworkHost(target, channels=channels, store=ledger, session_wait_seconds=0)
    server = Server(uvicorn.Config(host.app, port=0, log_config=None, timeout_graceful_shutdown=5), limits)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    place = Place(server, host, ledger)
    try:
        yield place
    finally:
        place.stack.close()
        server.should_exit = True
        await task


async def test_a_reader_that_never_read_kept_its_session() -> None:
    async with serve(Fountain().talk) as place:
        place.ask_deaf("/invocations", {"message": "it", "stream": True, "session_id": "s"})
        await until(lambda: place.active)
        await until(lambda: not place.active)
        free = await place.ask("/invocations", {"message": "next", "session_id": "s"})
        assert (free.status_code, free.json()["text"]) == (200, "good")
        # Nothing is left of it: not what it was sent, not its connection, and nobody who works for it.
        await until(lambda: not place.connections and not place.server.server_state.tasks)


async def test_a_reader_that_never_read_a_response_kept_its_run() -> None:
    async with serve(Fountain().talk) as place:
        place.ask_deaf("/responses", {"input": "it", "stream": True})
        await until(lambda: place.active)
        await until(lambda: not place.active and not place.connections)
        assert [run.status for run in place.runs] == ["cancelled"]


async def test_a_reader_that_never_read_kept_its_session_on_another_server() -> None:
    async with open_client(Fountain().talk, InvocationsChannel(send_seconds=SHORT), session_wait_seconds=0) as desk:
        body = json.dumps({"message": "it", "stream": True, "session_id": "s"}).encode()
        with socket.create_connection(("127.0.0.1", desk.port)) as line:
            head = f"POST /invocations HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
            line.sendall(head.encode() + body)
            await until(lambda: desk.active)
            await until(lambda: not desk.active and not desk.requests)
            assert (await desk.ask("next", session_id="s")).status_code == 200


async def test_a_run_that_may_outlive_its_reader_waited_for_one_that_never_read() -> None:
    fountain = Fountain(pieces=200)
    async with serve(fountain.talk, finish_abandoned=True) as place:
        place.ask_deaf("/responses", {"input": "it", "stream": True})
        await until(lambda: place.active)
        await until(lambda: not place.active)
        assert [run.status for run in place.runs] == ["completed"]
        assert fountain.made == 200
        await until(lambda: not place.connections)


async def test_a_background_stream_was_held_open_by_a_follower_that_never_read() -> None:
    fountain = Fountain(pieces=60)
    async with serve(fountain.talk) as place:
        place.ask_deaf("/invocations", {"message": "it", "background": True, "stream": True})
        await until(lambda: place.runs)
        (run_id,) = [run.run_id for run in place.runs]
        place.ask_deaf(f"/invocations/{run_id}?stream=true", method="GET")
        await until(lambda: fountain.made == 60 and not place.active)
        await until(lambda: not place.connections and not place.server.server_state.tasks)
        assert [run.status for run in place.runs] == ["completed"]


@pytest.mark.parametrize("close", [False, True])
async def test_a_large_answer_that_nobody_read_stayed_for_ever(close: bool) -> None:
    async with serve(loaf, limits=ServerLimits(send_seconds=SHORT)) as place:
        place.ask_deaf("/invocations", {"message": "it"}, close=close)
        await until(lambda: [one for one in place.connections if one.transport.get_write_buffer_size()])
        await until(lambda: not place.connections)


async def test_what_was_left_of_an_answer_held_up_the_end_of_the_server() -> None:
    async with serve(loaf, limits=ServerLimits(send_seconds=SHORT)) as place:
        place.ask_deaf("/invocations", {"message": "it"})
        await until(lambda: [one for one in place.connections if one.transport.get_write_buffer_size()])
        for one in place.connections:
            one.shutdown()
        assert place.connections
        await until(lambda: not place.connections)


async def test_little_was_kept_for_each_of_many_readers_that_never_read() -> None:
    fountain = Fountain()
    async with serve(fountain.talk) as place:
        for _ in range(READERS):
            place.ask_deaf("/invocations", {"message": "it", "stream": True})
        most = 0

        def over() -> bool:
            nonlocal most
            most = max([most, *(one.transport.get_write_buffer_size() for one in place.connections)])
            return fountain.made > READERS and not place.active

        await until(over)
    # The high-water mark, and the one event that has gone beyond it.
    assert most < 64 * 1024 + 2 * len(PIECE)
    # With what the system has taken on both sides.
    assert fountain.made * len(PIECE) / READERS < MIB


class Trickle:
    """Pours small words, as many as anybody takes or a number of them."""

    def __init__(self, words: int | None = None) -> None:
        self.made = 0
        self._words = words

    async def talk(self, text: str) -> AsyncIterator[str]:
        while self._words is None or self.made < self._words:
            self.made += 1
            yield "w "


def ask_with_small_window(place: Place, request: bytes) -> socket.socket:
    """Send a request on a connection whose system takes no more than a few kilobytes."""
    line = place.stack.enter_context(socket.socket())
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    line.connect(("127.0.0.1", place.port))
    line.sendall(request)
    return line


def post(path: str, body: Any) -> bytes:
    payload = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(payload)}\r\n\r\n".encode() + payload


SMALL_WINDOW_PIECES = 256
"""The number of the smallest events that fit into the least buffer that a system gives a client."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a client has acknowledged")
@pytest.mark.parametrize(
    ("path", "body"),
    [("/invocations", {"message": "it", "stream": True}), ("/responses", {"input": "it", "stream": True})],
)
async def test_thousands_of_small_updates_were_taken_for_a_reader_that_never_read(path: str, body: Any) -> None:
    agent = Trickle()
    async with serve(agent.talk) as place:
        ask_with_small_window(place, post(path, body))
        await until(lambda: place.active)
        # The run ends by `send_seconds`: until then everything was taken that is ever taken for this reader.
        await until(lambda: not place.active)
        assert agent.made <= MAX_UNREAD_PIECES + SMALL_WINDOW_PIECES


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a client has acknowledged")
async def test_thousands_of_small_updates_were_taken_for_a_websocket_that_never_read() -> None:
    agent = Trickle()
    async with serve(agent.talk, sockets=SocketLimits(send_seconds=SHORT)) as place:
        handshake = (
            b"GET /responses HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        line = ask_with_small_window(place, handshake)
        line.setblocking(False)
        accepted = await asyncio.get_running_loop().sock_recv(line, 4096)
        assert b" 101 " in accepted
        message = json.dumps({"type": "response.create", "input": "it"}).encode()
        # A masked text frame whose mask changes nothing.
        line.sendall(bytes([0x81, 0x80 | len(message), 0, 0, 0, 0]) + message)
        await until(lambda: place.active)
        await until(lambda: not place.active)
        assert agent.made <= MAX_UNREAD_PIECES + SMALL_WINDOW_PIECES


async def test_a_reader_of_many_small_updates_received_all_of_them() -> None:
    count = 20 * MAX_UNREAD_PIECES
    async with serve(Trickle(count).talk, send_seconds=60.0) as place:
        answer = await place.ask("/invocations", {"message": "it", "stream": True})
        assert answer.text.count('"w "') == count


async def test_a_reader_that_read_slowly_was_not_cut() -> None:
    async with serve(loaf) as place:
        watch = UnreadWatch(place.server.server_state.connections, 60.0)
        line = place.ask_deaf("/invocations", {"message": "it"})
        line.setblocking(False)
        await until(lambda: [one for one in place.connections if one.transport.get_write_buffer_size()])
        (connection,) = place.connections
        for minutes in range(10):
            watch.look(60.0 * minutes)
            taken = bytes_taken(connection.transport)
            loop = asyncio.get_running_loop()
            while bytes_taken(connection.transport) == taken:
                assert await loop.sock_recv(line, 1024)
        watch.look(600.0)
        watch.look(659.0)
        assert not connection.transport.is_closing()
        await until(lambda: bytes_taken(connection.transport) == watch._stuck[connection][0])
        watch.look(660.0)
        await until(lambda: not place.connections)


class _Connection:
    """A connection of a server, as far as it is looked at."""

    def __init__(self, *, scheme: str = "http", closing: bool = False, left: int = 10) -> None:
        self.scheme = scheme
        self.transport: Any = self
        self.closing, self.left, self.aborted = closing, left, False

    def get_write_buffer_size(self) -> int:
        return self.left

    def get_extra_info(self, name: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(
    ("connection", "aborted"),
    [
        (_Connection(), True),
        (_Connection(closing=True), True),
        (_Connection(left=0), False),
        (_Connection(left=0, closing=True), False),
        # Whoever writes to a WebSocket has a time of its own.
        (_Connection(scheme="ws"), False),
        (_Connection(scheme="wss", closing=True), True),
    ],
)
def test_only_what_waits_to_be_sent_is_given_up(connection: _Connection, aborted: bool) -> None:
    watch = UnreadWatch([connection], 60.0)
    watch.look(0.0)
    watch.look(59.0)
    assert not connection.aborted
    watch.look(60.0)
    assert connection.aborted is aborted


def test_where_only_the_buffer_is_seen_its_change_counts() -> None:
    connection = _Connection()
    watch = UnreadWatch([connection], 60.0)
    for minutes in range(5):
        connection.left = 10 - minutes
        watch.look(60.0 * minutes)
    assert not connection.aborted
    watch.look(300.0)
    assert connection.aborted
