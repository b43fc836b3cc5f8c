"""Finds the pages that the operator's own CORS middleware lets in: the channels then let them in too."""

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
    """Return the check of the outermost CORS middleware; `None` where there is none."""
    cors = _made(middleware)
    return None if cors is None else cors.is_allowed_origin


def origin_warnings(middleware: Sequence[Middleware], channels: Sequence[Channel]) -> list[str]:
    """Name the channels that every page can call."""
    cors = _made(middleware)
    if cors is None or not cors.allow_all_origins:
        return []
    return [_ANY_PAGE.format(channel.name) for channel in channels if channel.takes_http and channel.auth is None]


def _made(middleware: Sequence[Middleware]) -> CORSMiddleware | None:
    for kind, arguments, keywords in middleware:
        if isinstance(kind, type) and issubclass(kind, CORSMiddleware):
            return kind(Starlette(), *arguments, **keywords)
    return None
