"""The platform client: what it sends, what it takes, and what its errors say; against real servers on loopback."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.outbound import platform
from frontdesk.outbound.platform import PlatformHttp, PlatformResponse, parse_retry_after, push_error_from
from frontdesk.secret import Secret
from tests.outbound.origin import SECRET, Internet, Names, Origin, at, build_redirect, ok, serve_origin, until_gone


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with serve_origin() as server:
        yield server


@asynccontextmanager
async def open_client(origin: Origin, path: str = "", **settings: Any) -> AsyncIterator[PlatformHttp]:
    client = PlatformHttp(at(origin, path), **{"allow_private": True, **settings})
    try:
        yield client
    finally:
        await client.close()


async def failure(call: Any) -> PushError:
    with pytest.raises(PushError) as caught:
        await call
    error = caught.value
    assert SECRET not in f"{error!r} {error} {error.__cause__!r}"
    return error


def detect_kind(error: PushError) -> tuple[type[PushError], str]:
    return type(error), error.code


# What is sent, and what comes back


async def test_a_call_has_the_token_and_nothing_that_nobody_asked_for(origin: Origin) -> None:
    origin.answers["/api/send"] = ok(b'{"id":"7"}', "X-Kind: Test")
    token = {"Authorization": Secret(f"Bearer {SECRET}")}
    async with open_client(origin, "/api", headers=token) as client:
        response = await client.request("POST", "send?a=%20b", content=b"{}", headers={"Content-Type": "x/y"})
    assert (response.status, response.ok, response.json(dict), response.headers["x-kind"]) == (
        200,
        True,
        {"id": "7"},
        "Test",
    )
    lines = origin.heads[0].strip().split("\r\n")
    assert lines[0] == "POST /api/send?a=%20b HTTP/1.1"
    assert sorted(lines[1:]) == [
        "Accept-Encoding: identity",
        "Accept: */*",
        f"Authorization: Bearer {SECRET}",
        "Content-Length: 2",
        "Content-Type: x/y",
        f"Host: 127.0.0.1:{origin.port}",
        "User-Agent: frontdesk",
    ]


async def test_a_token_may_be_in_the_path(origin: Origin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    origin.answers[f"/bot{SECRET}/getMe"] = ok(b"{}")
    client = PlatformHttp(Secret(at(origin, f"/bot{SECRET}")), allow_private=True)
    assert (await client.request("GET", "getMe")).ok
    assert SECRET not in f"{caplog.text} {client!r} {vars(client)}"
    await client.close()


async def test_connections_are_kept_and_closed() -> None:
    connections: list[asyncio.StreamWriter] = []
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ok(b"{}"))
        except asyncio.IncompleteReadError:
            writer.close()
            gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = PlatformHttp(f"http://127.0.0.1:{port}", allow_private=True)
    for _ in range(3):
        assert (await client.request("GET", "x")).ok
    assert len(connections) == 1
    await client.close()
    await gone.wait()
    # What comes after it, such as another start of the same host, opens new ones.
    assert (await client.request("GET", "x")).ok
    assert len(connections) == 2
    await client.close()
    server.close()


# Where it may go


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/x",
        "https://slack.com.evil.example/",
        "https://slack.com@evil.example/",
        "https://a:b@slack.com/",
        "http://slack.com/",
        "https://slack.com:8443/",
        "https://slack.com\\.evil.example/",
        "https://slack.com /",
        "ftp://slack.com/",
        "https://slack.com:x/",
        "https://" + "a" * 9000,
    ],
)
async def test_no_other_server_gets_the_token(url: str) -> None:
    names = Names()
    client = PlatformHttp("https://slack.com/api", resolve=names.resolve)
    assert detect_kind(await failure(client.request("GET", url))) == (PushRefusedError, "host_refused")
    assert names.asked == []


async def test_a_name_that_leads_inside_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    internet = Internet(monkeypatch)
    names = Names(slack_com=[["93.184.216.34", "10.0.0.7"]])
    client = PlatformHttp("https://slack.com", resolve=names.resolve)
    assert detect_kind(await failure(client.request("GET", "x"))) == (PushError, "address_refused")
    assert internet.dialled == []


async def test_a_token_was_sent_over_the_internet_in_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    internet = Internet(monkeypatch)
    for server, address in (("http://slack.com", "93.184.216.34"), ("http://93.184.216.34", "93.184.216.34")):
        names = Names(slack_com=[["10.0.0.7", address]])
        client = PlatformHttp(server, allow_private=True, resolve=names.resolve)
        assert detect_kind(await failure(client.request("GET", "x"))) == (PushError, "address_refused")
    assert internet.dialled == []


async def test_the_next_address_is_tried_and_remembered(monkeypatch: pytest.MonkeyPatch, origin: Origin) -> None:
    internet = Internet(monkeypatch)
    internet.places["10.0.0.35"] = origin.port
    names = Names(platform_test=[["10.0.0.34", "10.0.0.35"]])
    client = PlatformHttp("http://platform.test", allow_private=True, resolve=names.resolve)
    origin.answers["/x"] = ok(b"{}")
    for _ in range(2):
        assert (await client.request("GET", "x")).ok
    assert [host for host, _ in internet.dialled] == ["10.0.0.34", "10.0.0.35", "10.0.0.35"]
    assert names.asked == ["platform.test"]
    assert "Host: platform.test\r\n" in origin.heads[0]
    await client.close()


@pytest.mark.parametrize("server", ["http://slack.com", "slack.com", "https://slack.com/api", "https://", "https://*"])
def test_servers_are_checked_when_the_client_is_made(server: str) -> None:
    with pytest.raises(ValueError, match=r"platform|https"):
        PlatformHttp("https://slack.com", servers=[server])


async def test_redirects_are_not_followed(origin: Origin) -> None:
    origin.answers["/a"] = build_redirect("/b")
    async with open_client(origin) as client:
        response = await client.request("GET", "/a")
    assert (response.status, len(origin.heads)) == (302, 1)
    assert type(push_error_from(response)) is PushRefusedError


# What can go wrong


async def test_what_was_not_sent_is_no_unknown() -> None:
    client = PlatformHttp("http://127.0.0.1:1", allow_private=True)
    assert detect_kind(await failure(client.request("POST", "x"))) == (PushError, "unreachable")
    client = PlatformHttp("https://platform.test", resolve=Names().resolve)
    assert detect_kind(await failure(client.request("POST", "x"))) == (PushError, "unreachable")


async def test_a_connection_that_takes_too_long_was_not_sent() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    client = PlatformHttp("https://platform.test", resolve=never, timeout=0.01)
    assert detect_kind(await failure(client.request("POST", "x"))) == (PushError, "unreachable")


async def test_no_response_leaves_it_open(origin: Origin) -> None:
    async def silent(origin: Origin, _: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def cut(origin: Origin, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def half(origin: Origin, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await writer.drain()

    origin.answers |= {"/silent": silent, "/cut": cut, "/half": half}
    async with open_client(origin) as client:
        late = await failure(client.request("POST", f"silent?key={SECRET}", seconds=0.2))
        assert detect_kind(late) == (PushUnknownError, "push_unknown")
        for path in ("cut", "half"):
            assert detect_kind(await failure(client.request("POST", path))) == (PushUnknownError, "push_unknown")


async def test_a_response_is_bounded(origin: Origin) -> None:
    async def endless(origin: Origin, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await until_gone(origin, writer, b"x" * 1000)

    origin.answers |= {
        "/endless": endless,
        "/limit": ok(b"x" * 64),
        "/zip": ok(b"x", "Content-Encoding: gzip"),
        "/page": ok(b"x" * 65, status="500 Oops"),
    }
    async with open_client(origin, max_bytes=64) as client:
        for path in ("endless", "zip"):
            error = await failure(client.request("GET", path))
            assert detect_kind(error) == (PushUnknownError, "unreadable_response")
        assert (await client.request("GET", "limit")).body == b"x" * 64
        # A refusal is known by its status, however long its page is.
        assert (await client.request("GET", "page")) == PlatformResponse(500, {"content-length": "65"}, b"")
        assert len((await client.request("GET", "page", max_bytes=65)).body) == 65


async def test_a_body_that_is_no_json_was_accepted_all_the_same() -> None:
    with pytest.raises(PushUnknownError):
        PlatformResponse(200, {}, b"<html>").json(dict)


DATED = {"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, {}, 7.0),
        ({"retry-after": "0.5"}, {"retry_after": 9}, 0.5),
        (DATED, {}, 30.0),
        ({"retry-after": DATED["retry-after"]}, {}, None),
        ({"retry-after": "-3"}, {}, None),
        ({"retry-after": "nan"}, {}, None),
        ({"retry-after": "1e9"}, {}, 86_400.0),
        ({}, {"retry_after": 1.25, "global": False}, 1.25),
        ({}, {"parameters": {"retry_after": 35}}, 35.0),
        ({}, {"error": {"retry_after": 2}}, 2.0),
        ({}, {"error": "ratelimited"}, None),
        ({}, {"retry_after": True}, None),
        ({}, [], None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], body: Any, seconds: float | None) -> None:
    assert parse_retry_after(PlatformResponse(429, headers, msgspec.json.encode(body))) == seconds


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, PushRefusedError) for status in (301, 400, 401, 403, 404, 422)),
        *((status, PushUnknownError) for status in (408, 504)),
        *((status, PushError) for status in (500, 502, 503)),
        (429, PushLimitedError),
    ],
)
def test_every_status_is_an_error_of_its_kind(status: int, expected: type[PushError]) -> None:
    error = push_error_from(PlatformResponse(status, {"retry-after": "3"}, b"<html>"))
    assert detect_kind(error) == (expected, f"status_{status}")
    assert error.retry_after == (3.0 if status in (429, 500, 502, 503) else None)
    assert push_error_from(PlatformResponse(status, {}, b""), code="chat_gone").code == "chat_gone"


def test_a_limit_of_the_whole_bot_is_known() -> None:
    assert push_error_from(PlatformResponse(429, {}, b'{"global":true}')).everywhere
    assert push_error_from(PlatformResponse(429, {"x-ratelimit-global": "true"}, b"")).everywhere
    assert not push_error_from(PlatformResponse(429, {}, b"{}")).everywhere
    assert push_error_from(PlatformResponse(429, {}, b"{}"), everywhere=True).everywhere


async def test_servers_below_a_name_have_a_bounded_number_of_pools(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "MAX_POOLS", 2)
    asked = list[str]()

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    port = origin.port
    origin.answers["/x"] = ok(b"{}")
    names = [f"http://{name}.example.com:{port}/x" for name in ("a", "b", "c", "a")]
    server = f"http://*.example.com:{port}"
    http = PlatformHttp(at(origin, ""), servers=[server], allow_private=True, resolve=resolve)
    for url in names:
        assert (await http.request("GET", url)).ok
        assert len(http._pools) <= 2  # pyright: ignore[reportPrivateUsage]
    for url in (f"http://example.com:{port}/x", f"http://a.example.com.evil.com:{port}/x", "https://a.example.com/x"):
        with pytest.raises(PushRefusedError, match="does not belong"):
            await http.request("GET", url)
    assert set(asked) == {"a.example.com", "b.example.com", "c.example.com"}
    await http.close()


async def test_a_pool_that_is_in_use_is_not_given_up(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "MAX_POOLS", 1)

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    port = origin.port
    origin.answers["/x"] = ok(b"{}")
    http = PlatformHttp(at(origin, ""), servers=[f"http://*.example.com:{port}"], allow_private=True, resolve=resolve)
    assert (await http.request("GET", f"http://a.example.com:{port}/x")).ok
    (pool,) = http._pools.values()  # pyright: ignore[reportPrivateUsage]
    pool.users = 1
    with pytest.raises(PushLimitedError) as caught:
        await http.request("GET", f"http://b.example.com:{port}/x")
    assert caught.value.code == "too_many_servers"
    await http.close()
