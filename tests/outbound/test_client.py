"""The guarded client gets what is public, and nothing else, from real servers on loopback."""

import asyncio
import gzip
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

from frontdesk.errors import InvalidRequestError, TooManyRequestsError
from frontdesk.outbound import network
from frontdesk.outbound.client import Fetched, GuardedClient, Posted
from tests.outbound.origin import SECRET, Origin, at, build_redirect, client_for, ok, refusal, serve_origin, until_gone
from tests.scenarios.desk import until

BOMB = gzip.compress(bytes(50_000_000))


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with serve_origin() as one:
        yield one


# What comes back, and what is sent


async def test_a_url_is_fetched(origin: Origin) -> None:
    origin.answers["/cat.png"] = ok(b"\x89PNG", "Content-Type: Image/PNG; charset=x")
    fetched = await client_for(origin).fetch(at(origin, f"/cat.png?key={SECRET}#part"), caller="ann")
    assert fetched == Fetched(b"\x89PNG", "image/png", at(origin, f"/cat.png?key={SECRET}"))
    assert SECRET not in repr(fetched)
    assert "PNG" not in repr(fetched)


async def test_the_request_says_no_more_than_it_must(origin: Origin) -> None:
    origin.answers["/a"] = ok()
    await client_for(origin).fetch(at(origin, "/a?b=%20c"), caller="ann")
    lines = origin.heads[0].strip().split("\r\n")
    assert lines[0] == "GET /a?b=%20c HTTP/1.1"
    assert sorted(lines[1:]) == [
        "Accept-Encoding: identity",
        "Accept: */*",
        "Connection: close",
        f"Host: 127.0.0.1:{origin.port}",
        "User-Agent: frontdesk",
    ]


@pytest.mark.parametrize(
    "given_type", ["", "png", "image/", "image/png,text/html", 'image/"', "a/b/c", "x" * 300 + "/y"]
)
async def test_a_media_type_that_is_none_is_bytes(origin: Origin, given_type: str) -> None:
    origin.answers["/"] = ok(b"x", f"Content-Type: {given_type}")
    assert (await client_for(origin).fetch(at(origin), caller="ann")).media_type == "application/octet-stream"


async def test_proxies_of_the_environment_are_ignored(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    origin.answers["/"] = ok()
    async with serve_origin() as proxy:
        for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, at(proxy))
        await client_for(origin).fetch(at(origin), caller="ann")
    assert proxy.heads == []


# Redirects


async def test_redirects_are_followed_without_cookies(origin: Origin) -> None:
    async with serve_origin() as other:
        origin.answers["/1"] = build_redirect("/2?x=1", "301 Moved", "Set-Cookie: a=b")
        origin.answers["/2"] = build_redirect(f"//127.0.0.1:{other.port}/3", "307 Elsewhere")
        other.answers["/3"] = build_redirect(at(origin, "/4"), "308 Elsewhere")
        origin.answers["/4"] = ok(b"there")
        fetched = await client_for(origin, other).fetch(at(origin, "/1"), caller="ann")
    assert (fetched.body, fetched.url) == (b"there", at(origin, "/4"))
    assert not any("cookie" in head.lower() or "referer" in head.lower() for head in origin.heads + other.heads)


@pytest.mark.parametrize("allowed", [0, 2])
async def test_redirects_come_to_an_end(origin: Origin, allowed: int) -> None:
    origin.answers["/"] = build_redirect("/")
    code, text = await refusal(client_for(origin, max_redirects=allowed), at(origin))
    assert (code, len(origin.heads)) == ("url_refused", allowed + 1)
    assert "too many redirects" in text


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{other}/",
        "//127.0.0.1:{other}/",
        "http://127.1:{port}/",
        "http://localhost:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://u:p@127.0.0.1:{port}/",
        "file:///etc/passwd",
        "ftp://127.0.0.1:{port}/",
        "data:text/plain,x",
        "http://127.0.0.1:{port}\\@example.com/",
        "http://[::1",
        "http://[a]b/",
        "/" + "a" * 9000,
        "/a b",
    ],
)
async def test_a_redirect_is_checked_like_any_url(origin: Origin, location: str) -> None:
    async with serve_origin() as other:
        origin.answers["/start"] = build_redirect(location.format(port=origin.port, other=other.port))
        code, _ = await refusal(client_for(origin), at(origin, "/start"))
    assert (code, len(origin.heads), other.heads) == ("url_refused", 1, [])


async def test_a_redirect_without_a_place_is_an_error(origin: Origin) -> None:
    origin.answers["/"] = ok(status="302 Found")
    assert (await refusal(client_for(origin), at(origin)))[0] == "url_unreachable"


# Sizes, times, broken servers


async def test_the_limit_itself_is_not_too_large(origin: Origin) -> None:
    origin.answers["/"] = ok(b"x" * 1000)
    assert len((await client_for(origin, max_bytes=1000).fetch(at(origin), caller="ann")).body) == 1000


async def test_a_length_that_is_too_large_is_refused_before_the_body(origin: Origin) -> None:
    async def only_head(origin: Origin, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")
        await asyncio.Event().wait()

    origin.answers["/"] = only_head
    assert (await refusal(client_for(origin, max_bytes=1000), at(origin)))[0] == "url_too_large"


@pytest.mark.parametrize(
    ("head", "piece"), [("Transfer-Encoding: chunked", b"64\r\n" + b"x" * 100 + b"\r\n"), ("X: y", b"x" * 100)]
)
async def test_an_endless_body_is_refused(origin: Origin, head: str, piece: bytes) -> None:
    async def endless(origin: Origin, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
        await until_gone(origin, writer, piece)

    origin.answers["/"] = endless
    code, text = await refusal(client_for(origin, max_bytes=1000), at(origin))
    assert (code, text) == ("url_too_large", "The URL holds more than 1000 B.")
    await origin.left.wait()


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "identity, gzip"])
async def test_a_compressed_answer_is_not_taken(origin: Origin, encoding: str) -> None:
    origin.answers["/"] = ok(BOMB, f"Content-Encoding: {encoding}")
    code, text = await refusal(client_for(origin), at(origin))
    assert (code, "content encoding" in text) == ("url_unreachable", True)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n"])
async def test_a_slow_server_does_not_hold_us(origin: Origin, head: bytes) -> None:
    async def dribble(origin: Origin, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await until_gone(origin, writer, b"x" if head else b"HTTP/1.1 100 Continue\r\n\r\n")

    origin.answers["/"] = dribble
    code, text = await refusal(client_for(origin, timeout=0.3), at(origin))
    assert (code, text) == ("url_unreachable", "The URL took longer than 0.3 seconds.")
    await origin.left.wait()


async def test_a_slow_name_server_does_not_hold_us() -> None:
    async def silent(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    assert (await refusal(GuardedClient(timeout=0.1, resolve=silent), "https://slow.example/"))[0] == "url_unreachable"


async def test_slow_names_of_one_caller_leave_threads_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up can't be cancelled: whoever gave it up still has the thread."""
    may_end = threading.Event()

    def look_up(host: str, port: int) -> list[str]:
        if host == "slow.example":
            may_end.wait()
        return ["127.0.0.1"]

    monkeypatch.setattr(network, "_look_up", look_up)
    client = GuardedClient(timeout=0.05)
    try:
        codes = [(await refusal(client, "https://slow.example/"))[0] for _ in range(4)]
        assert codes == ["url_unreachable"] * 4
        for _ in range(20):
            with pytest.raises(TooManyRequestsError):
                await client.fetch("https://slow.example/", caller="ann")
        client._timeout = 20.0
        with pytest.raises(InvalidRequestError, match="not public"):
            await client.fetch("https://quick.example/", caller="bob")
    finally:
        may_end.set()
    await until(lambda: not client._slots._shares)


@pytest.mark.parametrize(
    "answer",
    [
        ok(status="404 Not Found"),
        ok(status="500 No"),
        ok(status="304 Not Modified"),
        ok(b"", status="101 Switching Protocols"),
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        f"{SECRET} {SECRET}\r\n\r\n".encode(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\nx",
    ],
)
async def test_a_bad_answer_is_an_error(origin: Origin, answer: bytes) -> None:
    origin.answers["/"] = answer
    assert (await refusal(client_for(origin), at(origin)))[0] == "url_unreachable"


async def test_a_server_that_is_not_there_is_an_error() -> None:
    async with serve_origin() as gone:
        pass
    assert (await refusal(client_for(gone), at(gone)))[0] == "url_unreachable"


async def test_so_many_fetches_go_on_at_once(origin: Origin) -> None:
    go_on = asyncio.Event()

    async def waiting(origin: Origin, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(ok())

    origin.answers.update({"/slow": waiting, "/quick": ok()})
    client = client_for(origin, max_connections=1)
    slow = asyncio.create_task(client.fetch(at(origin, "/slow"), caller="ann"))
    await origin.asked.wait()
    quick = asyncio.create_task(client.fetch(at(origin, "/quick"), caller="ann"))
    async with asyncio.timeout(5):
        await client_for(origin).fetch(at(origin, "/quick"), caller="ann")
    assert not quick.done()
    assert len(origin.heads) == 2
    go_on.set()
    await asyncio.gather(slow, quick)


async def test_a_cancelled_fetch_hangs_up(origin: Origin) -> None:
    async def endless(origin: Origin, writer: asyncio.StreamWriter) -> None:
        await until_gone(origin, writer, b"HTTP/1.1 100 Continue\r\n\r\n")

    origin.answers["/"] = endless
    task = asyncio.create_task(client_for(origin).fetch(at(origin), caller="ann"))
    await origin.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await origin.left.wait()


# What nobody may see


async def test_logs_show_no_query_and_no_body(origin: Origin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    origin.answers["/a"] = build_redirect(f"/b?key={SECRET}", "302 Found", f"Set-Cookie: {SECRET}=1")
    origin.answers["/b"] = ok(SECRET.encode())
    origin.answers["/bad"] = f"{SECRET}\r\n\r\n".encode()
    client = client_for(origin)
    await client.fetch(at(origin, f"/a?key={SECRET}"), caller="ann")
    for url in (at(origin, f"/bad?{SECRET}"), f"https://10.0.0.1/?{SECRET}", f"https://u:{SECRET}@a.example/"):
        try:
            await client.fetch(url, caller="ann")
        except InvalidRequestError:
            logging.getLogger("test").exception("failed")
    assert SECRET not in caplog.text
    assert "fetch refused: url=10.0.0.1" in caplog.text


async def test_other_clients_keep_their_log(origin: Origin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    origin.answers["/"] = ok()
    await client_for(origin).fetch(at(origin), caller="ann")
    caplog.clear()
    async with httpx.AsyncClient(trust_env=False) as other:
        await other.get(at(origin))
    assert "receive_response_headers" in caplog.text


def test_the_http_client_is_imported_when_it_is_used() -> None:
    code = "import sys, frontdesk.outbound.client as o; o.GuardedClient(); print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# What is posted


async def test_a_post_sends_its_body_and_headers(origin: Origin) -> None:
    origin.answers["/a"] = ok(status="202 Accepted")
    posted = await client_for(origin).post(at(origin, "/a"), b"{}", headers={"X-Key": "b"}, caller="ann")
    assert posted == Posted(202, None)
    lines = origin.heads[0].strip().split("\r\n")
    assert lines[0] == "POST /a HTTP/1.1"
    assert {"X-Key: b", "Content-Length: 2", f"Host: 127.0.0.1:{origin.port}"} <= set(lines[1:])


async def test_a_post_follows_no_redirect(origin: Origin) -> None:
    origin.answers["/"], origin.answers["/b"] = build_redirect("/b"), ok()
    assert (await client_for(origin).post(at(origin), b"{}", headers={}, caller="ann")).status == 302
    assert len(origin.heads) == 1


async def test_the_response_to_a_post_is_not_read(origin: Origin) -> None:
    async def endless(one: Origin, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await until_gone(one, writer, b"x" * 65_536)

    origin.answers["/"] = endless
    assert (await client_for(origin).post(at(origin), b"{}", headers={}, caller="ann")).status == 200
    await asyncio.wait_for(origin.left.wait(), 30)


async def test_a_post_to_a_private_address_is_refused(origin: Origin) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        await GuardedClient(allow_http=True).post(at(origin), b"{}", headers={}, caller="ann")
    assert raised.value.code == "url_refused"
    assert not origin.heads


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None), ("9" * 30, None)]
)
async def test_the_seconds_to_wait_are_read(origin: Origin, value: str, seconds: float | None) -> None:
    origin.answers["/"] = ok(b"", f"Retry-After: {value}", status="429 Too Many Requests")
    assert await client_for(origin).post(at(origin), b"", headers={}, caller="ann") == Posted(429, seconds)
