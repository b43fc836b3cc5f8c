"""Identifies visitors by a cookie that the channel has signed."""

import base64
import hashlib
import hmac
from collections.abc import Callable

from starlette.types import Scope

from frontdesk.asgi.messages import Headers, below, is_secure
from frontdesk.auth.local_callers import is_local
from frontdesk.auth.verifier import Allow, HttpVerifier, own_origins
from frontdesk.errors import ForbiddenError, UnauthenticatedError
from frontdesk.identifiers import digest, is_plain_id
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.interfaces.context import ChannelStorage
from frontdesk.models.identity import Caller, ChannelIdentity

_NAME, _SAFE_NAME = "frontdesk_visitor", "__Host-frontdesk_visitor"
_SECRET = "cookie secret"  # noqa: S105
_SECONDS = 400 * 86_400
"""The longest time for which browsers keep a cookie."""
_MAX_VALUE_LENGTH = 300
_DIGITS = 8
_READS = ("GET", "HEAD")


class Visitors:
    """Signs visitor cookies, with a secret shared by all processes of the host."""

    def __init__(
        self, storage: ChannelStorage, new_id: Callable[[str], str], path: str, *, embeds: bool = False
    ) -> None:
        """Configure the page path. With `embeds`, visitors in frames on other sites are supported."""
        self._embeds = embeds
        self._storage = storage
        self._new_id = new_id
        self._path = path
        self._secret: bytes | None = None

    async def visitor(self, scope: Scope, headers: Headers) -> str | None:
        pairs = [pair.strip().partition("=") for pair in headers.get(b"cookie", b"").decode("latin-1").split(";")]
        cookies = {name: value for name, _, value in reversed(pairs)}
        # A site whose frames get the cookie of the page itself belongs to it: the visitor is the same there.
        for embedded in (False, True) if self._embeds else (False,):
            value = cookies.get(self._cookie_name(scope, headers, embedded=embedded), "")
            if value and len(value) <= _MAX_VALUE_LENGTH:
                return await self._open(value)
        return None

    async def new_cookie(self, scope: Scope, headers: Headers, *, embedded: bool = False) -> bytes:
        """Return the `Set-Cookie` header of a new visitor.

        In a frame the cookie is partitioned by the embedding site: on another site, its reader is another visitor.
        """
        visitor = self._new_id("vis")
        name = self._cookie_name(scope, headers, embedded=embedded)
        value = f"{visitor}.{await self._signature(visitor)}"
        secure = "; Secure" if embedded or name.startswith(_SAFE_NAME) else ""
        site = "None; Partitioned" if embedded else "Lax"
        return f"{name}={value}; Path=/; Max-Age={_SECONDS}; HttpOnly; SameSite={site}{secure}".encode()

    def _cookie_name(self, scope: Scope, headers: Headers, *, embedded: bool) -> str:
        # Browsers send a cookie to every port of a machine, and to every page of it: each page has a name of its own,
        # so that they don't overwrite each other's visitors.
        page = digest(f"{headers.get(b'host', b'').decode('latin-1')}{below(scope, self._path).decode()}")[:_DIGITS]
        # They take a `__Host-` cookie over TLS alone, and nothing else than this machine itself is served without it.
        place = f"embedded_{page}" if embedded else page
        return f"{_NAME if is_local(scope, headers) else _SAFE_NAME}_{place}"

    async def _open(self, value: str) -> str | None:
        visitor, _, signature = value.rpartition(".")
        if not is_plain_id(visitor) or not signature.isascii():
            return None
        return visitor if hmac.compare_digest(signature, await self._signature(visitor)) else None

    async def _signature(self, visitor: str) -> str:
        if self._secret is None:
            self._secret = await self._get_secret()
        signed = hmac.digest(self._secret, f"visitor\n{visitor}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()

    async def _get_secret(self) -> bytes:
        """Return the stored secret, or create one. Of several concurrent processes, one wins."""
        while True:
            value = await self._storage.get(_SECRET)
            if value is not None:
                return str(value.value).encode()
            # Each id has 80 random bits.
            await self._storage.compare_and_set(_SECRET, None, "".join(self._new_id("key") for _ in range(4)))


class VisitorVerifier(HttpVerifier):
    """Finds the visitor of a request, and rejects requests from other origins."""

    def __init__(self, channel: str, visitors: Visitors, *, allow_anonymous: bool) -> None:
        super().__init__(channel, None, allow_anonymous=allow_anonymous)
        self._channel_name = channel
        self._visitors = visitors
        self._lets_in = allow_anonymous

    def require_mount(self, scope: Scope, headers: Headers) -> None:
        """Reject a visitor from another machine, unless the host allows anonymous callers."""
        if not self._lets_in and not is_local(scope, headers):
            raise UnauthenticatedError(
                "This page accepts local visitors only. Set allow_anonymous=True on the host to accept others.",
                code="visitors_refused",
            )

    async def verify(self, scope: Scope, headers: Headers) -> Caller:
        self.require_mount(scope, headers)
        self._require_same_origin(scope, headers)
        visitor = await self._visitors.visitor(scope, headers)
        if visitor is None:
            raise UnauthenticatedError("The visitor cookie is missing. Load the page first.", code="no_visitor")
        return Caller(identity=ChannelIdentity(channel=self._channel_name, native_id=visitor))

    def _require_same_origin(self, scope: Scope, headers: Headers) -> None:
        """Reject pages of other origins. A request that changes something, or stays open, must have an origin."""
        origin = headers.get(b"origin")
        if origin is None and scope["type"] == "http" and scope["method"] in _READS:
            if headers.get(b"sec-fetch-site", b"same-origin") in (b"same-origin", b"none"):
                return
        elif origin is not None:
            scheme, _, authority = origin.partition(b"://")
            # Elsewhere than on this machine the page has TLS: without, anybody on the network between can speak for it.
            is_safe = scheme == b"https" or (scheme == b"http" and (is_secure(origin) or is_local(scope, headers)))
            if is_safe and authority and authority == headers.get(b"host"):
                return
            self._refused.warn(
                origin, [one for one in own_origins(headers) if is_secure(one) or is_local(scope, headers)]
            )
        raise ForbiddenError("Requests from another origin are not allowed.", code="origin_refused")


class PersonVerifier(VisitorVerifier):
    """Finds the person of a request. All linked visitors of this channel count as one person."""

    def __init__(self, channel: str, visitors: Visitors, context: ChannelContext, allow: Allow) -> None:
        """`allow` is called for a visitor who is not the person's first one."""
        super().__init__(channel, visitors, allow_anonymous=context.anonymous_allowed)
        self._context = context
        self._allow = allow

    async def verify(self, scope: Scope, headers: Headers) -> Caller:
        return await self._person(await super().verify(scope, headers), fresh=False)

    async def recheck(self, scope: Scope, headers: Headers) -> Caller:
        # A page is told of a link once: whose it is then must be known here too, also if another process has made it.
        return await self._person(await super().verify(scope, headers), fresh=True)

    async def _person(self, visitor: Caller, *, fresh: bool) -> Caller:
        home = await self._context.links.home(visitor, fresh=fresh)
        if home.key == visitor.identity.key:
            return visitor
        await self._allow(visitor)
        return Caller(identity=home)
