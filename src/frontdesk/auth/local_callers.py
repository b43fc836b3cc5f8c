"""Decides if a request comes from a program on this machine. Pure.

A proxy on this machine also connects from the loopback address. So a caller is local only if the request has no sign of
a proxy: no header that proxies, tunnels and platforms add, no HTTP/1.0 (the default of nginx for its upstreams), and no
other host name.
"""

import ipaddress
import re
from functools import lru_cache
from typing import Any

from starlette.types import Scope

from frontdesk.asgi.messages import Headers

_HOST = re.compile(r"\[([^\]]*)\](?::\d+)?|([^:]*)(?::\d+)?")
FORWARDED = frozenset(
    {
        b"cdn-loop",
        b"client-ip",
        b"forwarded",
        b"forwarded-for",
        b"front-end-https",
        b"max-forwards",
        b"proxy-authorization",
        b"proxy-connection",
        b"remote-addr",
        b"remote-user",
        b"surrogate-capability",
        b"true-client-ip",
        b"via",
        b"wl-proxy-client-ip",
        b"x-client-ip",
        b"x-cloud-trace-context",
        b"x-cluster-client-ip",
        b"x-coming-from",
        b"x-host",
        b"x-http-host-override",
        b"x-originating-ip",
        b"x-real-host",
        b"x-real-ip",
        b"x-remote-addr",
        b"x-remote-ip",
        b"x-request-start",
        b"x-scheme",
        b"x-varnish",
        b"z-forwarded-for",
    }
)
"""Headers that proxies add; a program that calls a host on its own machine sends none of them."""
FORWARDED_PREFIXES = (
    b"ali-",
    b"cf-",
    b"cloudfront-",
    b"fastly-",
    b"fly-",
    b"ngrok-",
    b"tailscale-",
    b"x-akamai-",
    b"x-amz",
    b"x-appengine-",
    b"x-appgw-",
    b"x-arr-",
    b"x-azure-",
    b"x-envoy-",
    b"x-forwarded",
    b"x-goog-",
    b"x-haproxy-",
    b"x-heroku-",
    b"x-nginx-",
    b"x-original-",
    b"x-proxy",
    b"x-proxied",
    b"x-vercel-",
)
"""Prefixes of further headers of this kind."""


_LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""The usual names of this machine's own address."""


def is_local(scope: Scope, headers: Headers) -> bool:
    """Return True if a request comes from this machine without any sign of forwarding."""
    client: Any = scope.get("client")
    if not client or not (client[0] in _LOOPBACK or is_loopback(client[0])) or scope.get("http_version") == "1.0":
        return False
    return _is_direct(headers.get(b"host", b""), tuple(headers))


# A client sends the same headers every time, so that the prefixes are compared once.
@lru_cache(maxsize=64)
def _is_direct(host: bytes, names: tuple[bytes, ...]) -> bool:
    return _names_loopback(host) and not _was_forwarded(names)


def _was_forwarded(names: tuple[bytes, ...]) -> bool:
    return not FORWARDED.isdisjoint(names) or any(name.startswith(FORWARDED_PREFIXES) for name in names)


def _names_loopback(host: bytes) -> bool:
    # Checked too, because a name that an attacker controls can point to the loopback address.
    name = _HOST.fullmatch(host.decode("latin-1"))
    return name is not None and is_loopback(name[1] or name[2] or "")


def is_loopback(address: str) -> bool:
    if address in _LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
