"""Finds the caller of an HTTP request, in the same way for every HTTP channel."""

import re
from collections.abc import Awaitable, Callable, Collection
from typing import Self

from starlette.types import Scope

from frontdesk.abc.auth import HttpAuth, OneAuth, Principal, RequestAuth, SignsBodies
from frontdesk.abc.channel import AllowsOrigin, ChannelContext
from frontdesk.data.identity import ANONYMOUS, Caller, ChannelIdentity
from frontdesk.errors import ForbiddenError, UnauthenticatedError
from frontdesk.kit.auth.any_auth import not_an_auth
from frontdesk.kit.auth.local_callers import is_local
from frontdesk.kit.http.asgi import Headers
from frontdesk.kit.http.cors import Cors

Allow = Callable[[Caller], Awaitable[None]]
"""Refuses a caller who may not come in."""

_REMEMBERED = 1_024
"""The number of principals whose `Caller` is cached."""
_LIKE = "look like 'https://example.com': no path, no slash at its end, no wildcard"
_STRICT = re.compile(r"(?:https://[a-z0-9.-]+|http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?")


class HttpVerifier:
    """Finds the caller of an HTTP request, or refuses it."""

    def __init__(
        self,
        channel: str,
        auth: OneAuth | None,
        *,
        allow_anonymous: bool = False,
        allowed_origins: Collection[str] = (),
        allows_origin: AllowsOrigin | None = None,
    ) -> None:
        """Make a verifier; `allows_origin` decides about pages that are not of the `allowed_origins`."""
        self._channel = channel
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
        """Make the verifier of a channel as its host allows; `name` is that of the channel whose callers they are."""
        return cls(
            name,
            auth,
            allow_anonymous=context.anonymous_allowed,
            allowed_origins=allowed_origins,
            allows_origin=context.allows_origin,
        )

    async def verify(self, scope: Scope, headers: Headers) -> Caller:
        """Return the caller; `UnauthenticatedError` or `ForbiddenError` for everyone else."""
        self.check_origin(headers)
        if self._request is not None:
            return self._caller(await self._request.authenticate_request(scope, headers))
        if self._plain is not None:
            return self._caller(await self._plain.authenticate(headers))
        if is_local(scope, headers):
            return self._local
        if self._allow_anonymous:
            return self._stranger
        raise UnauthenticatedError(
            "Callers from other machines, or behind a proxy, need credentials, and this channel has none to check."
        )

    def check_origin(self, headers: Headers) -> None:
        """Refuse a page of an origin that may not call."""
        origin = headers.get(b"origin")
        if origin is None or origin in self._origins:
            return
        if self._allows_origin is None or not self._allows_origin(origin.decode("latin-1")):
            _same_origin(origin, headers)

    async def recheck(self, scope: Scope, headers: Headers) -> Caller:
        """Return the caller of a connection that was let in before: what counts once, as a signature, has counted."""
        if self._request is not None:
            return self._caller(await self._request.recheck(scope, headers))
        return await self.verify(scope, headers)

    def _caller(self, principal: Principal | None) -> Caller:
        if principal is None:
            raise UnauthenticatedError
        if principal.claims or principal.isolation is not None:
            return self._made(principal)
        caller = self._callers.get(principal.id)
        if caller is None:
            if len(self._callers) >= _REMEMBERED:
                self._callers.clear()
            caller = self._callers[principal.id] = self._made(principal)
        return caller

    def _made(self, principal: Principal) -> Caller:
        if principal.id in ("", ANONYMOUS):
            # These ids are for callers without credentials, and no credentials may give access to what is theirs.
            raise UnauthenticatedError
        return Caller(
            identity=ChannelIdentity(channel=self._channel, native_id=principal.id),
            claims=principal.claims,
            claim_source=self._name if principal.claims else None,
            isolation=principal.isolation,
        )


def origin_findings(origins: Collection[str], *, setting: str = "allowed_origins", strict: bool = False) -> list[str]:
    """List what is wrong with the origins of a setting, a line each.

    Strict is for origins that become part of a header: as browsers write them, and over TLS unless they are of this
    machine.
    """
    if len(origins) > 1 and all(len(origin) == 1 for origin in origins):
        # The characters of a text that was given instead of a list.
        return [f"{setting}: one text; put it into a list: [{''.join(origins)!r}]"]
    form = "be like 'https://shop.example': in small letters, and without a path" if strict else _LIKE
    return [f"{setting}: {origin!r} must {form}" for origin in origins if not _is_origin(origin, strict=strict)]


def _is_origin(origin: str, *, strict: bool) -> bool:
    return _STRICT.fullmatch(origin) is not None if strict else "://" in origin and not origin.endswith("/")


def _same_origin(origin: bytes, headers: Headers) -> None:
    # A page on another origin must not drive this host with its visitor's network access or credentials.
    _, _, authority = origin.partition(b"://")
    if not authority or authority != headers.get(b"host"):
        raise ForbiddenError(
            "Pages of this origin may not call this host; allowed_origins of a channel lists those that may.",
            code="origin_refused",
        )
