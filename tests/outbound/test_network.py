"""Which addresses, ports and names are public, and which hosts an operator can allow."""

import ipaddress
import socket

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk.outbound.network import AllowedHosts, is_address, is_public, is_web_port, plain_host, resolve

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001:80b::200e", "64:ff9b::808:808"]
REFUSED = {
    "this network": ["0.0.0.0", "0.1.2.3"],
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12:3456::1", "fec0::1"],
    "link-local": ["169.254.0.1", "fe80::1", "fe80::1%eth0", "febf::1", "2606:4700::1111%eth0"],
    "cloud metadata": ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"],
    "carrier's NAT": ["100.64.0.1", "100.127.255.255"],
    "multicast": ["224.0.0.1", "224.0.1.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.255", "4000::1", "5f00::1", "::2", "100::1"],
    "unspecified": ["0.0.0.0", "::"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "benchmarks": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "relays": ["192.88.99.1"],
    "mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::ffff:0:127.0.0.1", "::ffff:8.8.8.8"],
    "compatible": ["::127.0.0.1", "::10.0.0.1", "::8.8.8.8"],
    "6to4": ["2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c0a8:101::1", "2002:808:808::1"],
    "NAT64": ["64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.1.2.3", "64:ff9b:1::1"],
    "Teredo": ["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "no address": [
        "",
        "localhost",
        "127.1",
        "0x7f.0.0.1",
        "2130706433",
        "1.2.3.4.5",
        "1.2.3.04",
        "8.8.8.8/32",
        " 8.8.8.8",
    ],
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(("kind", "address"), [(kind, one) for kind, some in REFUSED.items() for one in some])
def test_every_other_address_is_not(kind: str, address: str) -> None:
    assert not is_public(address), kind


@given(st.ip_addresses())
def test_what_python_calls_not_global_is_never_public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if not ip.is_global or ip.is_multicast:
        assert not is_public(str(ip))
        assert not is_public(ip.exploded)


@given(st.ip_addresses(v=4))
@example(ipaddress.IPv4Address("127.0.0.1"))
@example(ipaddress.IPv4Address("169.254.169.254"))
def test_no_embedding_makes_an_address_public(ip: ipaddress.IPv4Address) -> None:
    number = int(ip)
    for prefix in ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::"):
        embedded = str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | number))
        assert not is_public(embedded) or (prefix == "64:ff9b::" and is_public(str(ip)))
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))))
    assert not is_public(str(ipaddress.IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF))))


@pytest.mark.parametrize("port", [80, 443, 1024, 3000, 8080, 8443, 65535])
def test_a_port_of_the_web(port: int) -> None:
    assert is_web_port(port)


@pytest.mark.parametrize(
    "port", [-1, 0, 1, 21, 22, 25, 53, 81, 110, 389, 445, 587, 1023, 2049, 6000, 6667, 65536, 10**9]
)
def test_a_port_of_something_else(port: int) -> None:
    assert not is_web_port(port)


@pytest.mark.parametrize(
    ("given_host", "plain"),
    [
        ("Files.Example", "files.example"),
        ("files.example.", "files.example"),
        ("my_bucket.example", "my_bucket.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a" * 63 + ".example", "a" * 63 + ".example"),
        ("0x7f.1", "0x7f.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0:0::1", "::1"),
        ("FD00:0::A", "fd00::a"),
        ("", None),
        (".", None),
        ("a..b", None),
        ("files.example..", None),
        (".example", None),
        ("-a.example", None),
        ("a" * 64 + ".example", None),
        (".".join(["a" * 50] * 6), None),
        ("a b", None),
        ("a\n", None),
        ("a%2eb", None),
        ("a/b", None),
        ("a@b", None),
        ("bücher.example", None),
        ("fe80::1%eth0", None),
    ],
)
def test_a_host_has_one_spelling(given_host: str, plain: str | None) -> None:
    assert plain_host(given_host) == plain


def test_an_address_is_told_from_a_name() -> None:
    assert [is_address(one) for one in ("10.0.0.1", "::1", "files.corp", "127.1")] == [True, True, False, False]


def test_an_allowed_host_is_meant_with_its_port_or_the_usual_one() -> None:
    hosts = AllowedHosts(["Files.Corp.", "media.corp:8443", "10.0.0.7:8080", "[FD00:0::7]", "[::1]:9000"])
    assert hosts.has("files.corp", 443, usual=True)
    assert not hosts.has("files.corp", 8443, usual=False)
    assert hosts.has("media.corp", 8443, usual=False)
    assert not hosts.has("media.corp", 443, usual=True)
    assert hosts.has("10.0.0.7", 8080, usual=False)
    assert hosts.has("fd00::7", 443, usual=True)
    assert hosts.has("::1", 9000, usual=False)
    for other in ("corp", "x.files.corp", "files.corp.example", "files-corp", "::1"):
        assert not hosts.has(other, 443, usual=True)


NO_HOSTS = """
* *.corp https://files.corp files.corp/ files.corp: files.corp:0 files.corp:65536 files.corp:http a@files.corp
::1 [::1 [files.corp] [10.0.0.1] []:80 bücher.corp files.corp:80:80
"""


@pytest.mark.parametrize("entry", ["", " ", "a b", "files.corp\n", *NO_HOSTS.split()])
def test_an_entry_that_is_no_host_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match="allowed_hosts"):
        AllowedHosts([entry])


def test_one_text_is_not_a_list_of_hosts() -> None:
    with pytest.raises(ValueError, match="a list of hosts"):
        AllowedHosts("files.corp")


@pytest.mark.parametrize("spelling", ["127.1", "0x7f.1", "0x7f000001", "2130706433", "0177.0.0.1", "017700000001"])
async def test_odd_spellings_resolve_to_what_they_mean(spelling: str) -> None:
    assert list(await resolve(spelling, 80)) == ["127.0.0.1"]


async def test_a_name_without_an_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(OSError, match="not known"):
        await resolve("nobody.example", 443)
