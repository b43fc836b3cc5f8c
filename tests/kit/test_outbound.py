"""The guarded client gets what is public, and nothing else, from real servers on loopback."""

import asyncio
import gzip
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import InvalidRequestError
from frontdesk.kit.outbound import Fetched, GuardedClient
from tests.kit.origin import Internet, Names, Origin, moved, ok, serving, until_gone

SECRET = "sig-5f1d0c"


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with serving() as one:
        yield one


@pytest.fixture
async def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    return Internet(monkeypatch)


def client_for(*origins: Origin, **settings: Any) -> GuardedClient:
    hosts = [f"127.0.0.1:{one.port}" for one in origins]
    return GuardedClient(allowed_hosts=hosts, allow_http=True, **settings)


def at(origin: Origin, path: str = "/") -> str:
    return f"http://127.0.0.1:{origin.port}{path}"


async def refusal(client: GuardedClient, url: str) -> tuple[str, str]:
    """The code and the text of the error; the text shows nothing of the URL."""
    with pytest.raises(InvalidRequestError) as caught:
        await client.fetch(url)
    assert (caught.value.status, caught.value.message) == (400, str(caught.value))
    assert SECRET not in repr(caught.value)
    return caught.value.code, caught.value.message


# What comes back, and what is sent


async def test_a_url_is_fetched(origin: Origin) -> None:
    origin.answers["/cat.png"] = ok(b"\x89PNG", "Content-Type: Image/PNG; charset=x")
    fetched = await client_for(origin).fetch(at(origin, f"/cat.png?key={SECRET}#part"))
    assert fetched == Fetched(b"\x89PNG", "image/png", at(origin, f"/cat.png?key={SECRET}"))
    assert SECRET not in repr(fetched)
    assert "PNG" not in repr(fetched)


async def test_the_request_says_no_more_than_it_must(origin: Origin) -> None:
    origin.answers["/a"] = ok()
    await client_for(origin).fetch(at(origin, "/a?b=%20c"))
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
    assert (await client_for(origin).fetch(at(origin))).media_type == "application/octet-stream"


async def test_proxies_of_the_environment_are_ignored(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    origin.answers["/"] = ok()
    async with serving() as proxy:
        for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, at(proxy))
        await client_for(origin).fetch(at(origin))
    assert proxy.heads == []


# Redirects


async def test_redirects_are_followed_without_cookies(origin: Origin) -> None:
    async with serving() as other:
        origin.answers["/1"] = moved("/2?x=1", "301 Moved", "Set-Cookie: a=b")
        origin.answers["/2"] = moved(f"//127.0.0.1:{other.port}/3", "307 Elsewhere")
        other.answers["/3"] = moved(at(origin, "/4"), "308 Elsewhere")
        origin.answers["/4"] = ok(b"there")
        fetched = await client_for(origin, other).fetch(at(origin, "/1"))
    assert (fetched.body, fetched.url) == (b"there", at(origin, "/4"))
    assert not any("cookie" in head.lower() or "referer" in head.lower() for head in origin.heads + other.heads)


@pytest.mark.parametrize("allowed", [0, 2])
async def test_redirects_come_to_an_end(origin: Origin, allowed: int) -> None:
    origin.answers["/"] = moved("/")
    code, text = await refusal(client_for(origin, max_redirects=allowed), at(origin))
    assert (code, len(origin.heads)) == ("url_refused", allowed + 1)
    assert "too many times" in text


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
    async with serving() as other:
        origin.answers["/start"] = moved(location.format(port=origin.port, other=other.port))
        code, _ = await refusal(client_for(origin), at(origin, "/start"))
    assert (code, len(origin.heads), other.heads) == ("url_refused", 1, [])


async def test_a_redirect_without_a_place_is_an_error(origin: Origin) -> None:
    origin.answers["/"] = ok(status="302 Found")
    assert (await refusal(client_for(origin), at(origin)))[0] == "url_unreachable"


# Sizes, times, broken servers


async def test_the_limit_itself_is_not_too_large(origin: Origin) -> None:
    origin.answers["/"] = ok(b"x" * 1000)
    assert len((await client_for(origin, max_bytes=1000).fetch(at(origin))).body) == 1000


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
    assert (code, text) == ("url_too_large", "The URL holds more than 1000 bytes.")
    await origin.left.wait()


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "identity, gzip"])
async def test_a_compressed_answer_is_not_taken(origin: Origin, encoding: str) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    origin.answers["/"] = ok(bomb, f"Content-Encoding: {encoding}")
    code, text = await refusal(client_for(origin), at(origin))
    assert (code, "compressed" in text) == ("url_unreachable", True)


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
    async with serving() as gone:
        pass
    assert (await refusal(client_for(gone), at(gone)))[0] == "url_unreachable"


async def test_so_many_fetches_go_on_at_once(origin: Origin) -> None:
    go_on = asyncio.Event()

    async def waiting(origin: Origin, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(ok())

    origin.answers.update({"/slow": waiting, "/quick": ok()})
    client = client_for(origin, max_connections=1)
    slow = asyncio.create_task(client.fetch(at(origin, "/slow")))
    await origin.asked.wait()
    quick = asyncio.create_task(client.fetch(at(origin, "/quick")))
    async with asyncio.timeout(5):
        await client_for(origin).fetch(at(origin, "/quick"))
    assert not quick.done()
    assert len(origin.heads) == 2
    go_on.set()
    await asyncio.gather(slow, quick)


async def test_a_cancelled_fetch_hangs_up(origin: Origin) -> None:
    async def endless(origin: Origin, writer: asyncio.StreamWriter) -> None:
        await until_gone(origin, writer, b"HTTP/1.1 100 Continue\r\n\r\n")

    origin.answers["/"] = endless
    task = asyncio.create_task(client_for(origin).fetch(at(origin)))
    await origin.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await origin.left.wait()


# Names and addresses


async def test_the_connection_goes_to_the_address_that_was_checked(
    origin: Origin, internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(files_example=[["93.184.216.34"], ["127.0.0.1"]])
    monkeypatch.setattr("socket.getaddrinfo", None)
    internet.places["93.184.216.34"] = origin.port
    origin.answers["/"] = ok(b"public")
    client = GuardedClient(allow_http=True, resolve=names.resolve)
    assert (await client.fetch("http://Files.example.:8080/")).url == "http://files.example:8080/"
    assert (names.asked, internet.dialled) == (["files.example"], [("93.184.216.34", 8080)])
    assert "Host: files.example:8080\r\n" in origin.heads[0]
    # The name leads home the second time: nothing of the first time helps it.
    assert (await refusal(client, "http://files.example:8080/"))[0] == "url_refused"
    assert len(internet.dialled) == 1


async def test_a_name_that_changes_between_redirects_is_refused(origin: Origin, internet: Internet) -> None:
    names = Names(files_example=[["93.184.216.34"], ["10.0.0.1"]])
    internet.places["93.184.216.34"] = origin.port
    origin.answers["/"] = moved("http://files.example/again")
    client = GuardedClient(allow_http=True, resolve=names.resolve)
    assert (await refusal(client, "http://files.example/"))[0] == "url_refused"
    assert internet.dialled == [("93.184.216.34", 80)]


@pytest.mark.parametrize("answer", [["8.8.8.8", "10.0.0.1"], ["2606:4700::1111", "::1"], ["169.254.169.254"], []])
async def test_one_bad_address_spoils_a_name(internet: Internet, answer: list[str]) -> None:
    client = GuardedClient(resolve=Names(mixed_example=[answer]).resolve)
    known = await refusal(client, "https://mixed.example/")
    assert known == await refusal(client, "https://unknown.example/")
    assert (known[0], internet.dialled) == ("url_refused", [])


async def test_the_next_address_is_tried_and_not_all_of_them(origin: Origin, internet: Internet) -> None:
    many = [f"93.184.216.{number}" for number in range(1, 100)]
    client = GuardedClient(allow_http=True, resolve=Names(many_example=[many]).resolve)
    assert (await refusal(client, "http://many.example/"))[0] == "url_unreachable"
    assert internet.dialled == [(one, 80) for one in many[:4]]
    internet.places[many[2]] = origin.port
    origin.answers["/"] = ok(b"third")
    assert (await client.fetch("http://many.example/")).body == b"third"


async def test_an_ipv6_address_is_dialled_and_named(origin: Origin, internet: Internet) -> None:
    internet.places["2606:4700::1111"] = origin.port
    origin.answers["/"] = ok()
    await GuardedClient(allow_http=True).fetch("http://[2606:4700:0::1111]:8080/")
    assert internet.dialled == [("2606:4700::1111", 8080)]
    assert "Host: [2606:4700::1111]:8080\r\n" in origin.heads[0]


async def test_an_allowed_name_is_trusted_at_its_port_only(origin: Origin, internet: Internet) -> None:
    names = Names(files_corp=[["10.0.0.7"]])
    internet.places["10.0.0.7"] = origin.port
    origin.answers["/"] = ok(b"internal")
    client = GuardedClient(allowed_hosts=["files.corp:81"], allow_http=True, resolve=names.resolve)
    assert (await client.fetch("http://FILES.corp.:81/")).body == b"internal"
    for other in ("http://files.corp/", "http://files.corp:8080/", "http://10.0.0.7:81/", "http://10.0.0.7/"):
        assert (await refusal(client, other))[0] == "url_refused"
    assert internet.dialled == [("10.0.0.7", 81)]


REFUSED = """
http://example.com/ ftp://example.com/ file:///etc/passwd gopher://example.com/ data:,x ws://example.com/ example.com
//example.com/ https:example.com https:/example.com https:// https://user@example.com/ https://:p@example.com/
https://example.com:22/ https://example.com:0/ https://example.com:-1/ https://example.com:65536/ https://example.com:x/
https://example.com:6667/ https://a..b/ https://%65xample.com/ https://[::1 https://[fe80::1%25eth0]/ https://[v1.a]/
https://127.0.0.1/ https://127.1/ https://0x7f.1/ https://2130706433/ https://0177.0.0.1/ https://[::1]/ https://0/
https://[::ffff:7f00:1]/ https://[64:ff9b::7f00:1]/ https://[2002:7f00:1::]/ https://169.254.169.254/ https://127.0.0.1./
https://１２７.0.0.1/ https://127。0。0。1/ https://localhost/ https://LOCALHOST./ https://example.com\\@127.0.0.1/
"""


@pytest.mark.parametrize("url", ["", *REFUSED.split()])
async def test_a_url_is_refused_by_its_looks_or_its_address(url: str, internet: Internet) -> None:
    assert (await refusal(GuardedClient(), url))[0] == "url_refused"
    assert internet.dialled == []


@pytest.mark.parametrize("odd", [*"\r\n\t\0 \x7f\x85\xa0\xad\u200b\u2028\u202e\ud800\\", "\r\nX: y\r\n\r\n"])
@pytest.mark.parametrize(
    "place", ["{}https://a.example/", "https://a.example/{}", "https://a.example{}/", "https://a.example/?{}#"]
)
async def test_control_characters_are_refused(odd: str, place: str, internet: Internet) -> None:
    client = GuardedClient(resolve=Names(a_example=[["8.8.8.8"]]).resolve)
    assert (await refusal(client, place.format(odd)))[0] == "url_refused"
    assert internet.dialled == []


@pytest.mark.parametrize("url", ["https://a.example/" + "a" * 8192, "https://" + "a." * 5000 + "/", "x" * 1_000_000])
async def test_a_very_long_url_is_refused(url: str) -> None:
    assert (await refusal(GuardedClient(), url))[0] == "url_refused"


@given(st.text(max_size=60), st.sampled_from(["", "https://", "http://", "https://[", "//", "https:///"]))
async def test_no_text_is_anything_but_refused(text: str, start: str) -> None:
    async def home(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    client = GuardedClient(allow_http=True, resolve=home)
    with pytest.raises(InvalidRequestError) as caught:
        await client.fetch(start + text)
    assert caught.value.code == "url_refused"


@given(st.ip_addresses(), st.sampled_from(["{0}", "{1}", "0x{2:x}", "{2}", "0{2:o}", "{3}.{4}", "0x{3:x}.0{4:o}"]))
async def test_no_spelling_leads_to_an_address_that_is_not_global(ip: Any, spelling: str) -> None:
    number = int(ip)
    if ip.is_global and not ip.is_multicast:
        return
    spelled = ip.exploded if ip.version == 6 else spelling.format(ip, ip, number, number >> 24, number & 0xFFFFFF)
    for host in {f"[{spelled}]"} if ip.version == 6 else {spelled, f"[::ffff:{ip}]", f"[64:ff9b::{ip}]"}:
        assert (await refusal(GuardedClient(), f"https://{host}/"))[0] == "url_refused"


# What nobody may see


async def test_logs_show_no_query_and_no_body(origin: Origin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    origin.answers["/a"] = moved(f"/b?key={SECRET}", "302 Found", f"Set-Cookie: {SECRET}=1")
    origin.answers["/b"] = ok(SECRET.encode())
    origin.answers["/bad"] = f"{SECRET}\r\n\r\n".encode()
    client = client_for(origin)
    await client.fetch(at(origin, f"/a?key={SECRET}"))
    for url in (at(origin, f"/bad?{SECRET}"), f"https://10.0.0.1/?{SECRET}", f"https://u:{SECRET}@a.example/"):
        try:
            await client.fetch(url)
        except InvalidRequestError:
            logging.getLogger("test").exception("failed")
    assert SECRET not in caplog.text
    assert "refused to fetch from 10.0.0.1" in caplog.text


async def test_other_clients_keep_their_log(origin: Origin, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    origin.answers["/"] = ok()
    await client_for(origin).fetch(at(origin))
    caplog.clear()
    async with httpx.AsyncClient(trust_env=False) as other:
        await other.get(at(origin))
    assert "receive_response_headers" in caplog.text


def test_the_http_client_is_imported_when_it_is_used() -> None:
    code = "import sys, frontdesk.kit.outbound as o; o.GuardedClient(); print('httpx' in sys.modules, 'ssl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"
