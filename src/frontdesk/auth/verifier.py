"""Authenticates the caller of an HTTP request and checks its origin, for all HTTP channels."""

import re
from collections.abc import Awaitable, Callable, Collection
from typing import Self

from starlette.types import Scope

from frontdesk.asgi.messages import Cors, Headers, RefusedOrigins, SingleHeaders
from frontdesk.auth.any_auth import not_an_auth
from frontdesk.auth.local_callers import is_local
from frontdesk.errors import ForbiddenError, UnauthenticatedError
from frontdesk.interfaces.auth import HttpAuth, OneAuth, Principal, RequestAuth, SignsBodies
from frontdesk.interfaces.channel import AllowsOrigin, ChannelContext
from frontdesk.models.identity import ANONYMOUS, Caller, ChannelIdentity

Allow = Callable[[Caller], Awaitable[None]]
"""Refuses a caller who may not come in."""

_MAX_CACHED_CALLERS = 1_024
"""The number of principals whose `Caller` is cached."""
_LIKE = "look like 'https://example.com': no path, no slash at its end, no wildcard"
_STRICT = re.compile(r"(?:https://[a-z0-9.-]+|http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?")


class HttpVerifier:
    def __init__(
        self,
        channel: str,
        auth: OneAuth | None,
        *,
        allow_anonymous: bool = False,
        allowed_origins: Collection[str] = (),
        allows_origin: AllowsOrigin | None = None,
        home: Callable[[str], str] | None = None,
    ) -> None:
        """Configure the verifier. `allows_origin` decides about origins that are not in `allowed_origins`.

        `home` returns the home channel for principals of a channel.
        """
        self._channel = channel
        self._home = home
        self._principal_channel = channel
        self._name = "" if auth is None else auth.name
        # Checked once: asking what an object can do takes longer than checking a key.
        self._request = auth if isinstance(auth, RequestAuth) else None
        self._plain = auth if isinstance(auth, HttpAuth) else None
        if auth is not None and self._request is None and self._plain is None:
            # Without this, a mistake in its definition would let every caller in.
            raise not_an_auth(auth)
        self._allow_anonymous = allow_anonymous
        self._origins = frozenset(origin.encode() for origin in allowed_origins)
        self._allows_origin = allows_origin
        self._refused = RefusedOrigins()
        self.cors = Cors(allowed_origins, credentials=auth is not None) if allowed_origins else None
        """The sharing of answers with pages of the `allowed_origins`, if there are any."""
        self._callers: dict[str, Caller] = {}
        self.body_header = auth.body_header if isinstance(auth, SignsBodies) else None
        """The header whose hash the body must have, where one is sent."""
        nobody = ChannelIdentity(channel=channel, native_id=ANONYMOUS)
        self._local = Caller(identity=nobody, anonymous=True)
        self._stranger = Caller(identity=nobody, anonymous=True, may_name_sessions=False)

    @classmethod
    def for_channel(
        cls, name: str, auth: OneAuth | None, context: ChannelContext, allowed_origins: Collection[str]
    ) -> Self:
        """Build the verifier of a channel from its host context. `name` is the channel of its callers."""
        return cls(
            name,
            auth,
            allow_anonymous=context.anonymous_allowed,
            allowed_origins=allowed_origins,
            allows_origin=context.allows_origin,
            home=None if auth is None else context.links.principal_channel,
        )

    async def verify(self, scope: Scope, headers: Headers) -> Caller:
        """Return the caller. Raise `UnauthenticatedError` or `ForbiddenError` otherwise."""
        if b"origin" in headers:
            self.check_origin(headers)
        if self._request is not None:
            return self._caller(await self._request.authenticate_request(scope, single_headers(scope, headers)))
        if self._plain is not None:
            return self._caller(await self._plain.authenticate(single_headers(scope, headers)))
        if is_local(scope, headers):
            return self._local
        if self._allow_anonymous:
            return self._stranger
        raise UnauthenticatedError(
            "Remote and proxied callers need credentials, and this channel has no auth. Set auth= on the channel."
        )

    def check_origin(self, headers: Headers, *, log_refusal: bool = True) -> None:
        origin = headers.get(b"origin")
        if origin is None or origin in self._origins or _is_same_origin(origin, headers):
            return
        if self._allows_origin is not None and self._allows_origin(origin.decode("latin-1")):
            return
        # A page on another origin must not drive this host with its visitor's network access or credentials.
        if log_refusal:
            self._refused.warn(origin, self._origins.union(own_origins(headers)))
        raise ForbiddenError(
            "The origin of this page is not allowed. Add it to allowed_origins of the channel.",
            code="origin_refused",
        )

    async def recheck(self, scope: Scope, headers: Headers) -> Caller:
        """Return the caller of an accepted connection. Single-use credentials, such as a signature, are not used
        again."""
        if self._request is not None:
            return self._caller(await self._request.recheck(scope, single_headers(scope, headers)))
        return await self.verify(scope, headers)

    def _caller(self, principal: Principal | None) -> Caller:
        if principal is None:
            raise UnauthenticatedError
        if self._home is not None and (channel := self._home(self._channel)) != self._principal_channel:
            self._principal_channel = channel
            self._callers.clear()
        if principal.claims or principal.isolation is not None:
            return self._build_caller(principal)
        caller = self._callers.get(principal.id)
        if caller is None:
            if len(self._callers) >= _MAX_CACHED_CALLERS:
                self._callers.clear()
            caller = self._callers[principal.id] = self._build_caller(principal)
        return caller

    def _build_caller(self, principal: Principal) -> Caller:
        if principal.id in ("", ANONYMOUS):
            # These ids are for callers without credentials, and no credentials may give access to what is theirs.
            raise UnauthenticatedError
        return Caller(
            identity=ChannelIdentity(channel=self._principal_channel, native_id=principal.id),
            claims=principal.claims,
            claim_source=self._name if principal.claims else None,
            isolation=principal.isolation,
        )


def single_headers(scope: Scope, headers: Headers) -> Headers:
    """Wrap the headers so that repeated ones cannot be read. A proxy may have checked the other credential."""
    sent = scope.get("headers", ())
    return headers if len(sent) <= len(headers) else SingleHeaders(headers, sent)


def origin_findings(origins: Collection[str], *, setting: str = "allowed_origins", strict: bool = False) -> list[str]:
    """Return the errors in the origins of a setting, one line each.

    `strict` is for origins that become part of a header: they must be written as browsers do, and use TLS unless local.
    """
    if len(origins) > 1 and all(len(origin) == 1 for origin in origins):
        # The characters of a text that was given instead of a list.
        return [f"{setting}: got one string, put it into a list: [{''.join(origins)!r}]"]
    form = "be like 'https://shop.example': in small letters, and without a path" if strict else _LIKE
    return [f"{setting}: {origin!r} must {form}" for origin in origins if not _is_origin(origin, strict=strict)]


def _is_origin(origin: str, *, strict: bool) -> bool:
    return _STRICT.fullmatch(origin) is not None if strict else "://" in origin and not origin.endswith("/")


def own_origins(headers: Headers) -> list[bytes]:
    """Return the possible origins of a page of this host, by the `Host` header of a request."""
    host = headers.get(b"host", b"")
    return [b"http://" + host, b"https://" + host]


def _is_same_origin(origin: bytes, headers: Headers) -> bool:
    scheme, _, authority = origin.partition(b"://")
    return scheme in (b"http", b"https") and bool(authority) and authority == headers.get(b"host")
