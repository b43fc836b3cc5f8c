"""Where the guarded client goes: the rules for URLs, names, addresses and certificates."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import InvalidRequestError
from frontdesk.outbound.client import GuardedClient
from frontdesk.outbound.network import resolve
from tests.outbound.origin import Certificate, Internet, Names, Origin, build_redirect, ok, refusal, serve_origin


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with serve_origin() as one:
        yield one


@pytest.fixture
async def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    return Internet(monkeypatch)


async def test_the_connection_goes_to_the_address_that_was_checked(
    origin: Origin, internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(files_example=[["93.184.216.34"], ["127.0.0.1"]])
    monkeypatch.setattr("socket.getaddrinfo", None)
    internet.places["93.184.216.34"] = origin.port
    origin.answers["/"] = ok(b"public")
    client = GuardedClient(allow_http=True, resolve=names.resolve)
    assert (await client.fetch("http://Files.example.:8080/", caller="ann")).url == "http://files.example:8080/"
    assert (names.asked, internet.dialled) == (["files.example"], [("93.184.216.34", 8080)])
    assert "Host: files.example:8080\r\n" in origin.heads[0]
    # The name leads home the second time: nothing of the first time helps it.
    assert (await refusal(client, "http://files.example:8080/"))[0] == "url_refused"
    assert len(internet.dialled) == 1


async def test_a_name_that_changes_between_redirects_is_refused(origin: Origin, internet: Internet) -> None:
    names = Names(files_example=[["93.184.216.34"], ["10.0.0.1"]])
    internet.places["93.184.216.34"] = origin.port
    origin.answers["/"] = build_redirect("http://files.example/again")
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
    assert (await client.fetch("http://many.example/", caller="ann")).body == b"third"


async def test_an_ipv6_address_is_dialled_and_named(origin: Origin, internet: Internet) -> None:
    internet.places["2606:4700::1111"] = origin.port
    origin.answers["/"] = ok()
    await GuardedClient(allow_http=True).fetch("http://[2606:4700:0::1111]:8080/", caller="ann")
    assert internet.dialled == [("2606:4700::1111", 8080)]
    assert "Host: [2606:4700::1111]:8080\r\n" in origin.heads[0]


async def test_an_allowed_name_is_trusted_at_its_port_only(origin: Origin, internet: Internet) -> None:
    names = Names(files_corp=[["10.0.0.7"]])
    internet.places["10.0.0.7"] = origin.port
    origin.answers["/"] = ok(b"internal")
    client = GuardedClient(allowed_hosts=["files.corp:81"], allow_http=True, resolve=names.resolve)
    assert (await client.fetch("http://FILES.corp.:81/", caller="ann")).body == b"internal"
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
https://localhost/ https://LOCALHOST./ https://example.com\\@127.0.0.1/
"""


@pytest.mark.parametrize(
    "url", ["", "https://\uff11\uff12\uff17.0.0.1/", "https://127\u30020\u30020\u30021/", *REFUSED.split()]
)
async def test_a_url_is_refused_by_its_looks_or_its_address(url: str, internet: Internet) -> None:
    async def known(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34"] if host == "example.com" else await resolve(host, port)

    assert (await refusal(GuardedClient(resolve=known), url))[0] == "url_refused"
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
        await client.fetch(start + text, caller="ann")
    assert caught.value.code == "url_refused"


@given(st.ip_addresses(), st.sampled_from(["{0}", "{1}", "0x{2:x}", "{2}", "0{2:o}", "{3}.{4}", "0x{3:x}.0{4:o}"]))
async def test_no_spelling_leads_to_an_address_that_is_not_global(ip: Any, spelling: str) -> None:
    number = int(ip)
    if ip.is_global and not ip.is_multicast:
        return
    spelled = ip.exploded if ip.version == 6 else spelling.format(ip, ip, number, number >> 24, number & 0xFFFFFF)
    for host in {f"[{spelled}]"} if ip.version == 6 else {spelled, f"[::ffff:{ip}]", f"[64:ff9b::{ip}]"}:
        assert (await refusal(GuardedClient(), f"https://{host}/"))[0] == "url_refused"


# Certificates


async def test_a_certificate_is_checked_for_the_name(internet: Internet, certificate: Certificate) -> None:
    names = Names(files_example=[["93.184.216.34"]], other_example=[["93.184.216.34"]])
    client = GuardedClient(ssl_context=certificate.build_context(), resolve=names.resolve)
    async with serve_origin(tls=certificate.server) as origin:
        internet.places["93.184.216.34"] = origin.port
        origin.answers["/"] = ok(b"safe")
        assert (await client.fetch("https://files.example./", caller="ann")).body == b"safe"
        assert (await client.fetch("https://93.184.216.34/", caller="ann")).body == b"safe"
        assert (await refusal(client, "https://other.example/"))[0] == "url_unreachable"
    assert (origin.names, len(origin.heads)) == (["files.example", None, "other.example"], 2)
    assert internet.dialled == [("93.184.216.34", 443)] * 3


async def test_a_certificate_that_nobody_signed_is_refused(internet: Internet, certificate: Certificate) -> None:
    client = GuardedClient(resolve=Names(files_example=[["93.184.216.34"]]).resolve)
    async with serve_origin(tls=certificate.server) as origin:
        internet.places["93.184.216.34"] = origin.port
        with pytest.raises(InvalidRequestError) as caught:
            await client.fetch("https://files.example/", caller="ann")
    assert (caught.value.code, origin.heads) == ("url_unreachable", [])
    # Only the operator's log gets to see why.
    assert "self-signed" in str(caught.value.__cause__)


async def test_no_redirect_leaves_tls(internet: Internet, certificate: Certificate) -> None:
    names = Names(files_example=[["93.184.216.34"]])
    client = GuardedClient(ssl_context=certificate.build_context(), allow_http=True, resolve=names.resolve)
    async with serve_origin(tls=certificate.server) as origin:
        internet.places["93.184.216.34"] = origin.port
        origin.answers["/"] = build_redirect("http://files.example/plain")
        code, text = await refusal(client, "https://files.example/")
    assert (code, "from https to http" in text, len(internet.dialled)) == ("url_refused", True, 1)
