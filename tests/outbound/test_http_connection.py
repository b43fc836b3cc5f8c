"""Connections to platforms: how responses are read, when a connection is used again, and what it may cost."""

import asyncio
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import PushError, PushRefusedError, PushUnknownError
from frontdesk.outbound import http_connection
from frontdesk.outbound.platform import PlatformHttp, PlatformResponse
from tests.examples import examples
from tests.outbound.origin import Certificate, Internet, Names, ok, serve_origin
from tests.scenarios.desk import DEADLINE

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Platform:
    """A server that answers each request with the next of its pieces, and counts its connections."""

    def __init__(self, *answers: Sequence[bytes], close: bool = False) -> None:
        self._answers, self._close = list(answers), close
        self.connections = 0
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.gone = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.requests.append(head + await reader.readexactly(int(length or 0)))
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                for piece in answer:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if self._close:
                    break
        writer.close()
        self.gone.set()


@asynccontextmanager
async def open_client(serve: Serve, **settings: Any) -> AsyncIterator[PlatformHttp]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1024 * 1024)
    client = PlatformHttp(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", allow_private=True, **settings)
    try:
        yield client
    finally:
        await client.close()
        server.close()


async def ask(*answers: bytes, method: str = "GET", close: bool = False, **settings: Any) -> PlatformResponse:
    """Return the response of a server that sends these pieces."""
    async with open_client(Platform(answers, close=close).serve, **settings) as client:
        return await client.request(method, "x")


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n"


class TestResponses:
    async def test_chunks_are_joined_and_trailers_are_no_headers(self) -> None:
        response = await ask(CHUNKED, b"3\r\nabc\r\n", b"2;x=y\r\nde\r\n", b"0\r\nX-Late: 1\r\n\r\n")
        assert response == PlatformResponse(200, {"transfer-encoding": "chunked", "trailer": "X-Late"}, b"abcde")

    async def test_a_body_may_end_with_its_connection(self) -> None:
        assert (await ask(b"HTTP/1.0 200 OK\r\n\r\nabc", b"def", close=True)).body == b"abcdef"

    async def test_a_connection_that_ends_within_a_body_gives_no_response(self) -> None:
        with pytest.raises(PushUnknownError):
            await ask(CHUNKED, b"3\r\nabc\r\n", close=True)

    async def test_informational_responses_come_before_the_response(self) -> None:
        hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        assert await ask(b"HTTP/1.1 100 Continue\r\n\r\n" + hint, hint + ok(b"x")) == PlatformResponse(
            200, {"content-length": "1"}, b"x"
        )

    @pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
    async def test_some_statuses_have_no_body(self, status: str) -> None:
        response = await ask(f"HTTP/1.1 {status}\r\nX-A: b\r\n\r\n".encode())
        assert (response.status, response.body) == (int(status[:3]), b"")

    async def test_the_response_to_head_has_no_body_whatever_its_length_says(self) -> None:
        response = await ask(b"HTTP/1.1 200 OK\r\nContent-Length: 700\r\n\r\n", method="HEAD")
        assert (response.headers, response.body) == ({"content-length": "700"}, b"")

    async def test_a_header_that_comes_twice_is_joined(self) -> None:
        assert (await ask(ok(b"", "X-A: 1", "x-a: 2"))).headers["x-a"] == "1, 2"

    @pytest.mark.parametrize(
        "answer",
        [
            b"hello\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            CHUNKED + b"zz\r\n",
            b"HTTP/2 200 OK\r\n\r\n",
        ],
    )
    async def test_what_is_no_http_is_no_response(self, answer: bytes) -> None:
        with pytest.raises(PushUnknownError):
            await ask(answer)

    async def test_headers_without_end_are_bounded(self) -> None:
        gone = asyncio.Event()

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            with suppress(ConnectionError):
                while True:
                    writer.write(b"X-A: " + b"a" * 1000 + b"\r\n")
                    await writer.drain()
            gone.set()

        async with open_client(serve) as client:
            with pytest.raises(PushUnknownError, match="head too large"):
                await client.request("GET", "x")
            await gone.wait()

    @pytest.mark.parametrize(
        ("first", "piece"),
        [(b"0\r\n", b"x-a: b\r\n" * 1000), (b"0\r\nx-a: ", b"a" * 10_000), (b"1;a=", b"a" * 10_000)],
        ids=["trailers", "one trailer", "extension"],
    )
    async def test_trailers_without_end_were_read_until_the_timeout(self, first: bytes, piece: bytes) -> None:
        gone = asyncio.Event()

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(CHUNKED + first)
            with suppress(ConnectionError):
                while True:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
            gone.set()

        async with open_client(serve, timeout=60.0) as client, asyncio.timeout(DEADLINE):
            with pytest.raises(PushUnknownError, match="trailers too large"):
                await client.request("GET", "x")
            await gone.wait()

    async def test_a_body_of_small_chunks_took_fifty_times_its_bytes(self) -> None:
        size = 1024 * 1024
        whole = CHUNKED + b"2\r\nab\r\n" * (size // 2) + b"0\r\n\r\n"
        async with open_client(Platform([whole]).serve) as client:
            await client.request("GET", "x")
            tracemalloc.start()
            try:
                response = await client.request("GET", "x")
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert response.body == b"ab" * (size // 2)
        # What the server of the test buffers is counted too.
        assert peak < 12 * size

    @given(st.lists(st.integers(1, 40), max_size=12), st.binary(max_size=60), st.booleans())
    @examples(25)
    async def test_pieces_of_any_size_make_the_same_response(self, cuts: list[int], body: bytes, chunked: bool) -> None:
        whole = CHUNKED + (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n" if chunked else ok(body)
        pieces, start = [], 0
        for cut in cuts:
            pieces.append(whole[start : start + cut])
            start += cut
        assert (await ask(*pieces, whole[start:])).body == body


class TestRequests:
    @pytest.mark.parametrize(
        "headers", [{"X-A": "a\r\nX-B: c"}, {"X-A\r\nX-B": "c"}, {"X-A": "a\0"}, {"": "a"}, {"X A": "a"}, {"X-A": "漢"}]
    )
    async def test_a_line_end_got_into_a_header(self, headers: dict[str, str]) -> None:
        platform = Platform([ok()])
        async with open_client(platform.serve) as client:
            with pytest.raises(PushRefusedError):
                await client.request("GET", "x", headers=headers)
        assert platform.requests == []

    async def test_a_target_is_encoded_once(self) -> None:
        platform = Platform([ok()])
        async with open_client(platform.serve) as client:
            base = f"http://{client.hosts.get_origin(client._base.reveal()).netloc}"
            for url in ("a%2Fb/ü?c=<d>&e=f#g", f"{base}?a=/b", base):
                await client.request("GET", url)
        lines = [request.partition(b"\r\n")[0] for request in platform.requests]
        assert lines == [
            b"GET /a%2Fb/%C3%BC?c=%3Cd%3E&e=f HTTP/1.1",
            b"GET /?a=/b HTTP/1.1",
            b"GET / HTTP/1.1",
        ]

    async def test_a_large_body_arrives_whole(self) -> None:
        platform = Platform([ok()])
        content = bytes(range(256)) * 12_000
        async with open_client(platform.serve) as client:
            assert (await client.request("POST", "x", content=content)).ok
            assert (await client.request("POST", "x", content=content)).ok
        assert [request.partition(b"\r\n\r\n")[2] for request in platform.requests] == [content, content]
        assert platform.connections == 1

    async def test_the_rest_of_a_refused_body_was_taken_for_a_request(self) -> None:
        connections = 0

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await reader.readuntil(b"\r\n\r\n")
            # It reads nothing more, and keeps the connection open.
            writer.write(ok(b"", status="413 Content Too Large"))
            await asyncio.Event().wait()

        async with open_client(refuse) as client:
            for _ in range(2):
                assert (await client.request("POST", "x", content=b"x" * 40_000_000)).status == 413
        assert connections == 2


class TestConnections:
    async def test_a_connection_is_used_again_and_by_one_request_at_a_time(self) -> None:
        platform = Platform([ok()])
        async with open_client(platform.serve) as client:
            for _ in range(3):
                await client.request("POST", "x", content=b"{}")
            assert platform.connections == 1
            await asyncio.gather(*(client.request("POST", "x", content=b"{}") for _ in range(5)))
            assert platform.connections == 5

    async def test_no_more_connections_than_allowed(self) -> None:
        platform = Platform([ok()])
        async with open_client(platform.serve, max_connections=2) as client:
            responses = await asyncio.gather(*(client.request("GET", "x") for _ in range(20)))
        assert (len(responses), platform.connections) == (20, 2)

    async def test_a_call_that_waits_for_a_connection_was_not_sent(self) -> None:
        async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            await reader.read()

        async with open_client(silent, max_connections=1) as client:
            first = asyncio.ensure_future(client.request("GET", "x"))
            await asyncio.sleep(0)
            with pytest.raises(PushError, match="TimeoutError") as caught:
                await client.request("GET", "x", seconds=0.05)
            assert caught.value.code == "unreachable"
            first.cancel()
            await asyncio.wait((first,))

    @pytest.mark.parametrize("end", [b"Connection: close", b""])
    async def test_a_connection_that_the_server_ends_is_not_used_again(self, end: bytes) -> None:
        platform = Platform([ok(b"x", *([end.decode()] if end else []))], close=True)
        async with open_client(platform.serve) as client:
            for _ in range(3):
                assert (await client.request("GET", "x")).ok
        assert platform.connections == 3

    @pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfalse", b"x"])
    @pytest.mark.parametrize("together", [True, False])
    async def test_the_response_to_nothing_was_taken_for_that_to_the_next_request(
        self, more: bytes, together: bool
    ) -> None:
        platform = Platform([ok(b"true") + more] if together else [ok(b"true"), more], [ok(b"next")])
        async with open_client(platform.serve) as client:
            assert (await client.request("GET", "x")).body == b"true"
            assert (await client.request("GET", "x")).body in (b"next", b"true")
            assert (await client.request("GET", "x")).body != b"false"
        assert platform.connections >= 2

    async def test_an_idle_connection_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_connection, "KEEP_ALIVE_SECONDS", 0.02)
        platform = Platform([ok()])
        async with open_client(platform.serve) as client:
            await client.request("GET", "x")
            await platform.gone.wait()
            await client.request("GET", "x")
        assert platform.connections == 2

    async def test_a_cancelled_call_closes_its_connection(self) -> None:
        asked, gone = asyncio.Event(), asyncio.Event()

        async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            with suppress(ConnectionError):
                await reader.read()
            gone.set()

        async with open_client(silent) as client:
            call = asyncio.ensure_future(client.request("GET", "x"))
            await asked.wait()
            call.cancel()
            await gone.wait()

    async def test_a_connection_to_an_address_that_is_not_the_hosts_any_more_is_not_used(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        internet = Internet(monkeypatch)
        names = Names(platform_test=[["10.0.0.34"], ["10.0.0.35"]])
        platform = Platform([ok()])
        server = await asyncio.start_server(platform.serve, "127.0.0.1", 0)
        internet.places = dict.fromkeys(("10.0.0.34", "10.0.0.35"), server.sockets[0].getsockname()[1])
        client = PlatformHttp("http://platform.test", allow_private=True, resolve=names.resolve)
        await client.request("GET", "x")
        await client.request("GET", "x")
        client.hosts.forget(client.hosts.get_origin("http://platform.test"))
        await client.request("GET", "x")
        assert [host for host, _ in internet.dialled] == ["10.0.0.34", "10.0.0.35"]
        await client.close()
        server.close()


class TestTls:
    async def test_a_certificate_is_checked_for_the_name(
        self, monkeypatch: pytest.MonkeyPatch, certificate: Certificate
    ) -> None:
        internet = Internet(monkeypatch)
        names = Names(files_example=[["93.184.216.34"]], other_example=[["93.184.216.34"]])
        async with serve_origin(tls=certificate.server) as origin:
            internet.places["93.184.216.34"] = origin.port
            origin.answers["/x"] = ok(b"safe")
            for host, trust, expected in (
                ("files.example", certificate.build_context(), b"safe"),
                ("93.184.216.34", certificate.build_context(), b"safe"),
                ("other.example", certificate.build_context(), None),
                ("files.example", None, None),
            ):
                client = PlatformHttp(f"https://{host}", ssl_context=trust, resolve=names.resolve)
                if expected is None:
                    with pytest.raises(PushError, match="SSLCertVerificationError") as caught:
                        await client.request("POST", "x")
                    assert caught.value.code == "unreachable"
                else:
                    assert (await client.request("POST", "x")).body == expected
                await client.close()
        assert len(origin.heads) == 2

    async def test_large_bodies_and_kept_connections_work_over_tls(
        self, monkeypatch: pytest.MonkeyPatch, certificate: Certificate
    ) -> None:
        internet = Internet(monkeypatch)
        platform = Platform([ok(b"y" * 3_000_000)])
        server = await asyncio.start_server(platform.serve, "127.0.0.1", 0, ssl=certificate.server)
        internet.places["93.184.216.34"] = server.sockets[0].getsockname()[1]
        names = Names(files_example=[["93.184.216.34"]])
        client = PlatformHttp("https://files.example", ssl_context=certificate.build_context(), resolve=names.resolve)
        for _ in range(3):
            response = await client.request("POST", "x", content=b"z" * 3_000_000)
            assert response.body == b"y" * 3_000_000
        assert platform.connections == 1
        assert isinstance(certificate.build_context(), ssl.SSLContext)
        await client.close()
        server.close()
