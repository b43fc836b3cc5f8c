"""Who is calling over HTTP."""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from starlette.types import Scope

from frontdesk.abc.auth import HttpAuth, Principal
from frontdesk.data.identity import ANONYMOUS, Caller, ChannelIdentity
from frontdesk.errors import ForbiddenError, UnauthenticatedError
from frontdesk.kit.http import Headers

SHORTEST_KEY = 16
_HASHED = "sha256:"
_HOST = re.compile(r"\[([^\]]*)\](?::\d+)?|([^:]*)(?::\d+)?")


class ApiKeyAuth:
    """API keys, each of which stands for a principal. Only their hashes are kept.

    `ApiKeyAuth({"alice": ["key-one...", "sha256:..."]})`: a key in plain text or as `ApiKeyAuth.hash(key)` gives it.
    """

    name = "api_key"

    def __init__(self, keys: Mapping[str, str | Sequence[str]]) -> None:
        self._principals: dict[bytes, tuple[bytes, Principal]] = {}
        for principal, given in keys.items():
            for key in [given] if isinstance(given, str) else given:
                self._add(principal, key)
        if not self._principals:
            raise ValueError("ApiKeyAuth needs at least one key; with none nobody could come in")

    def _add(self, principal: str, key: str) -> None:
        if not principal or principal == ANONYMOUS:
            raise ValueError(f"ApiKeyAuth: a principal can't be called {principal!r}")
        digest = _read_hash(principal, key) if key.startswith(_HASHED) else _digest(_long_enough(principal, key))
        _, known = self._principals.setdefault(digest, (digest, Principal(id=principal)))
        if known.id != principal:
            raise ValueError(f"ApiKeyAuth: {known.id!r} and {principal!r} have the same key")

    @staticmethod
    def hash(key: str) -> str:
        """What to write into a configuration instead of the key."""
        return _HASHED + _digest(key).hex()

    async def authenticate(self, headers: Headers) -> Principal | None:
        presented = headers.get(b"x-api-key") or headers.get(b"api-key") or _bearer(headers)
        if presented is None:
            return None
        digest = hashlib.sha256(presented).digest()
        # How long the look-up takes can depend on the hash, never on the key.
        stored, principal = self._principals.get(digest, (b"", None))
        if not hmac.compare_digest(digest, stored) or principal is None:
            raise UnauthenticatedError("The API key is not valid.")
        return principal

    def __repr__(self) -> str:
        return f"ApiKeyAuth({len(self._principals)} keys)"


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _long_enough(principal: str, key: str) -> str:
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"ApiKeyAuth: a key of {principal!r} is shorter than {SHORTEST_KEY} characters")
    return key


def _read_hash(principal: str, key: str) -> bytes:
    try:
        digest = bytes.fromhex(key.removeprefix(_HASHED))
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise ValueError(f"ApiKeyAuth: a hashed key of {principal!r} is not 'sha256:' and 64 hexadecimal digits")
    return digest


def _bearer(headers: Headers) -> bytes | None:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" and token.strip() else None


class HttpVerifier:
    """Finds the caller of an HTTP request, or refuses it. The same for every HTTP channel."""

    def __init__(
        self,
        channel: str,
        auth: HttpAuth | None,
        *,
        allow_anonymous: bool = False,
        allowed_origins: Collection[str] = (),
    ) -> None:
        self._channel = channel
        self._auth = auth
        self._allow_anonymous = allow_anonymous
        self._origins = frozenset(origin.encode() for origin in allowed_origins)
        nobody = ChannelIdentity(channel=channel, native_id=ANONYMOUS)
        self._local = Caller(identity=nobody, anonymous=True)
        self._stranger = Caller(identity=nobody, anonymous=True, may_name_sessions=False)

    async def verify(self, scope: Scope, headers: Headers) -> Caller:
        """The caller; `UnauthenticatedError` or `ForbiddenError` for everyone else."""
        origin = headers.get(b"origin")
        if origin is not None and origin not in self._origins:
            _same_origin(origin, headers)
        if self._auth is not None:
            return await self._authenticated(self._auth, headers)
        if _is_local(scope, headers):
            return self._local
        if self._allow_anonymous:
            return self._stranger
        raise UnauthenticatedError("Callers from other machines need credentials, and this channel has none to check.")

    async def _authenticated(self, auth: HttpAuth, headers: Headers) -> Caller:
        principal = await auth.authenticate(headers)
        if principal is None:
            raise UnauthenticatedError
        identity = ChannelIdentity(channel=self._channel, native_id=principal.id)
        return Caller(identity=identity, claims=principal.claims, claim_source=auth.name if principal.claims else None)


def origin_findings(origins: Collection[str]) -> list[str]:
    """What is wrong with the origins that a channel lets in, a line each."""
    return [
        f"allowed_origins: {origin!r} must look like 'https://example.com'"
        for origin in origins
        if "://" not in origin or origin.endswith("/")
    ]


def _same_origin(origin: bytes, headers: Headers) -> None:
    # A page on another origin must not drive this host with its visitor's network access or credentials.
    _, _, authority = origin.partition(b"://")
    if not authority or authority != headers.get(b"host"):
        raise ForbiddenError("Pages of this origin may not call this host.", code="origin_refused")


def _is_local(scope: Scope, headers: Headers) -> bool:
    client: Any = scope.get("client")
    return bool(client) and _is_loopback(client[0]) and _names_loopback(headers.get(b"host", b""))


@lru_cache(maxsize=64)
def _names_loopback(host: bytes) -> bool:
    # Checked too, because a name that an attacker controls can point to the loopback address.
    name = _HOST.fullmatch(host.decode("latin-1"))
    return name is not None and _is_loopback(name[1] or name[2] or "")


def _is_loopback(address: str) -> bool:
    if address in ("127.0.0.1", "localhost", "::1"):
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
