"""Decides which addresses and ports an untrusted URL may use. Pure, except for `resolve`."""

import asyncio
import re
import socket
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# Addresses that `is_global` of some version of Python allows, though they are not for the public.
_REFUSED_V4 = (
    IPv4Network("168.63.129.16/32"),  # Azure answers its own machines here
    IPv4Network("192.0.0.0/24"),  # protocol assignments; Oracle's cloud answers its own machines here
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv4Network("224.0.0.0/4"),  # multicast
    IPv4Network("240.0.0.0/4"),  # reserved, and broadcast
)
# IPv6 is allowed by exception: what is not global unicast is refused, mapped and compatible addresses among it.
_UNICAST_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = (
    IPv6Network("2001::/23"),  # protocol assignments: Teredo, ORCHID, benchmarks
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("2002::/16"),  # 6to4
    IPv6Network("3fff::/20"),  # documentation
)
# In a network that speaks IPv6 only, every public IPv4 host has an address in here.
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return True if the address is reachable for anyone on the internet."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv4Address):
        return _is_public_v4(ip)
    if ip.scope_id is not None:
        return False
    if ip in _NAT64:
        return _is_public_v4(IPv4Address(int(ip) & 0xFFFFFFFF))
    return _is_public_v6(ip)


def _is_public_v4(ip: IPv4Address) -> bool:
    return ip.is_global and not any(ip in network for network in _REFUSED_V4)


def _is_public_v6(ip: IPv6Address) -> bool:
    return ip in _UNICAST_V6 and ip.is_global and not any(ip in network for network in _REFUSED_V6)


# Ports above 1023 that speak something else than HTTP: those that browsers refuse, by the Fetch standard.
_OTHER_PROTOCOLS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080}
)


def is_web_port(port: int) -> bool:
    """Return True if a port is plausible for HTTP.

    Below 1024 only 80 and 443 are. Other low ports belong to mail, shells and directories, which could interpret the
    bytes of an HTTP request.
    """
    return port in (80, 443) or (1024 <= port <= 65535 and port not in _OTHER_PROTOCOLS)


_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,62})"
_NAME = re.compile(rf"(?=.{{1,253}}+\Z){_LABEL}(?:\.{_LABEL})*", re.ASCII)
_ENTRY = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[0-9]{1,5}))?", re.ASCII)


def plain_host(host: str) -> str | None:
    """Return the canonical spelling of a host name or an address, or `None` if it is invalid."""
    host = host.lower().removesuffix(".")
    try:
        ip = ip_address(host)
    except ValueError:
        return host if _NAME.fullmatch(host) else None
    return None if isinstance(ip, IPv6Address) and ip.scope_id is not None else str(ip)


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class AllowedHosts:
    """Hosts that the operator trusts, whatever their addresses are.

    `files.corp` means the default port of the scheme only, `files.corp:8443` that port only. IP addresses are written
    as in a URL: `10.0.0.7:8443`, `[fd00::7]`.
    """

    def __init__(self, entries: Collection[str]) -> None:
        if isinstance(entries, str):
            raise ValueError(f"allowed_hosts must be a list of hosts, got {entries!r}")
        self._entries = frozenset(_read_entry(entry) for entry in entries)

    def has(self, host: str, port: int, *, usual: bool) -> bool:
        """Return True if a plain host is trusted at a port. `usual` means that it is the scheme's default port."""
        return (host, port) in self._entries or (usual and (host, None) in self._entries)


def _read_entry(entry: str) -> tuple[str, int | None]:
    match = _ENTRY.fullmatch(entry)
    host = plain_host(match["v6"] or match["name"] or "") if match else None
    if match is None or host is None or (":" in host) != (match["v6"] is not None):
        raise ValueError(f"allowed_hosts: {entry!r} is not a host or host:port (an IPv6 address goes in brackets)")
    port = match["port"]
    if port is not None and not 0 < int(port) <= 65535:
        raise ValueError(f"allowed_hosts: {entry!r} has an invalid port")
    return host, None if port is None else int(port)


# Own threads, because a stranger's name server can be slow: no other work may wait behind it.
_threads = ThreadPoolExecutor(16, thread_name_prefix="frontdesk-names")


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return all addresses of a host, best first. Raise `OSError` if it has none.

    A cancelled call waits for its thread to end, because the thread is not available to other calls before.
    """
    lookup = asyncio.get_running_loop().run_in_executor(_threads, _look_up, host, port)
    try:
        return list(dict.fromkeys(await asyncio.shield(lookup)))
    except asyncio.CancelledError:
        await asyncio.wait([lookup])
        raise


def _look_up(host: str, port: int) -> list[str]:
    # Bytes are taken as they are; a text would be encoded once more.
    infos = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(address[0]) for *_, address in infos]
