"""Which pages the operator's own CORS middleware lets in: the channels then let them in too."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from frontdesk.abc.channel import AllowsOrigin, Channel

_ANY_PAGE = (
    "channel {!r}: the host's CORSMiddleware lets pages of every origin in, and the channel has no auth=: any page "
    "that somebody on this machine visits can call it; name the origins, or add auth="
)


def origins_of(middleware: Sequence[Middleware]) -> AllowsOrigin | None:
    """What the outermost CORS middleware says of an origin; `None` where there is none."""
    found = _made(middleware)
    return None if found is None else found.is_allowed_origin


def origin_warnings(middleware: Sequence[Middleware], channels: Sequence[Channel]) -> list[str]:
    """Name the channels that every page can call."""
    found = _made(middleware)
    if found is None or not found.allow_all_origins:
        return []
    return [_ANY_PAGE.format(one.name) for one in channels if one.takes_http and one.auth is None]


def _made(middleware: Sequence[Middleware]) -> CORSMiddleware | None:
    for kind, arguments, keywords in middleware:
        if isinstance(kind, type) and issubclass(kind, CORSMiddleware):
            return kind(Starlette(), *arguments, **keywords)
    return None
