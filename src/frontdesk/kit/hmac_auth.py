"""Signed requests: a shared secret that never travels.

The signature is an HMAC-SHA256, in hexadecimal digits behind `v1=`, over these lines, joined by a line feed:

    v1
    the principal
    the method, such as POST
    the path with its query, as it is sent
    the time, in whole seconds since the epoch
    the nonce: 8 to 128 letters, digits or any of . _ : -, never used twice
    the SHA-256 of the body, in hexadecimal digits
"""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from starlette.types import Scope

from frontdesk.abc.auth import Principal
from frontdesk.clock import Clock, SystemClock
from frontdesk.data.identity import ANONYMOUS
from frontdesk.errors import TooManyRequestsError, UnauthenticatedError
from frontdesk.ids import RandomIds
from frontdesk.kit.http import Headers
from frontdesk.kit.secrets import Secret

SHORTEST_SECRET = 16
MOST_REMEMBERED = 100_000
EMPTY = hashlib.sha256(b"").hexdigest()
_NONCE = re.compile(rb"[A-Za-z0-9._:-]{8,128}")
_NUMBER = re.compile(rb"[0-9]{1,12}")
_HASH = re.compile(rb"[0-9a-f]{64}")
_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}")
_IN_PATHS = "/:@!$&'()*+,;=-._~"
_DESCRIBED = "An HMAC-SHA256 over the request, see the documentation of the host."
_WRONG = "The signature is not valid."

Given = str | Secret | Sequence[str | Secret]


class HmacHeaders(NamedTuple):
    """The headers that a signed request brings."""

    principal: str = "x-signature-principal"
    timestamp: str = "x-signature-timestamp"
    nonce: str = "x-signature-nonce"
    body_hash: str = "x-content-sha256"
    signature: str = "x-signature"


_USUAL = HmacHeaders()


class HmacAuth:
    """Requests signed with a secret that both sides know: `HmacAuth({"alice": secret})`.

    A principal may have several secrets, so that they can be changed without a break. A signature counts once, and for
    `window_seconds` before and after its time. What was signed before this object was made is refused: whether it has
    counted already is not known here.
    """

    name = "hmac"
    gives_claims = False

    def __init__(
        self,
        secrets: Mapping[str, Given],
        *,
        window_seconds: float = 300.0,
        headers: HmacHeaders = _USUAL,
        max_remembered: int = MOST_REMEMBERED,
        clock: Clock | None = None,
    ) -> None:
        if window_seconds <= 0 or max_remembered < 1:
            raise ValueError("HmacAuth: window_seconds and max_remembered must be positive")
        if len(set(headers)) < len(headers) or not all(map(_HEADER.fullmatch, headers)):
            raise ValueError("HmacAuth: headers must be five different names in lower case")
        self._clock = clock or SystemClock()
        self._since = int(self._clock.now())
        self._window = window_seconds
        self._names = HmacHeaders(*headers)
        self._headers = [one.encode() for one in headers]
        self.body_header = headers.body_hash.encode()
        self.security_schemes: Mapping[str, Mapping[str, str]] = {
            "hmac": {"type": "apiKey", "in": "header", "name": headers.signature, "description": _DESCRIBED}
        }
        self._people = _people(secrets, max_remembered)
        # Whoever is unknown is checked too, so that the time it takes tells nobody's name.
        self._nobody = _Person("", (Secret(RandomIds().new("nobody")),), 1)

    async def authenticate_request(self, scope: Scope, headers: Headers) -> Principal | None:
        signed = self._signed(scope, headers)
        if signed is None:
            return None
        person, signature, time = signed
        now = self._clock.now()
        if abs(now - time) > self._window:
            raise UnauthenticatedError(
                "The time of the signature is too far from this host's.", code="signature_expired"
            )
        if time < self._since:
            raise UnauthenticatedError("The signature is older than this host; sign anew.", code="signature_expired")
        person.count(signature, now, 2 * self._window)
        return person.principal

    async def recheck(self, scope: Scope, headers: Headers) -> Principal | None:
        # It counted at the handshake, and the time of that is over; what may have changed since are the secrets.
        signed = self._signed(scope, headers)
        return None if signed is None else signed[0].principal

    def _signed(self, scope: Scope, headers: Headers) -> "tuple[_Person, bytes, int] | None":
        """Who has signed a request, with what, and when."""
        given = [headers.get(name, b"") for name in self._headers]
        principal, timestamp, nonce, body_hash, signature = given
        if not principal and not signature:
            return None
        if not (_NUMBER.fullmatch(timestamp) and _NONCE.fullmatch(nonce) and _HASH.fullmatch(body_hash)):
            needed = ", ".join(self._names)
            raise UnauthenticatedError(f"A signed request needs the headers {needed}, each in its form.")
        if scope["type"] != "http" and body_hash != EMPTY.encode():
            raise UnauthenticatedError("A handshake is signed with an empty body.")
        person = self._people.get(principal, self._nobody)
        text = _text(principal, scope.get("method", "GET").encode(), _target(scope), timestamp, nonce, body_hash)
        # All of them, so that the time it takes does not tell which one it was.
        right = [hmac.compare_digest(_sign(one, text), signature) for one in person.secrets]
        if not any(right) or person is self._nobody:
            raise UnauthenticatedError(_WRONG)
        return person, signature, int(timestamp)

    def sign(
        self,
        principal: str,
        method: str,
        target: str,
        body: bytes = b"",
        *,
        timestamp: int | None = None,
        nonce: str | None = None,
    ) -> dict[str, str]:
        """The headers that sign a request with the first secret of a principal; `target` is the path with its query."""
        person = self._people[principal.encode()]
        at = str(int(self._clock.now()) if timestamp is None else timestamp)
        once = nonce or RandomIds().new("n")
        body_hash = hashlib.sha256(body).hexdigest()
        parts = (principal, method.upper(), target, at, once, body_hash)
        signature = _sign(person.secrets[0], _text(*(one.encode() for one in parts)))
        return dict(zip(self._names, (principal, at, once, body_hash, signature.decode()), strict=True))

    def __repr__(self) -> str:
        return f"HmacAuth({len(self._people)} principals)"


class _Person:
    """A principal, its secrets, and the signatures of it that have counted."""

    def __init__(self, name: str, secrets: Sequence[Secret], most: int) -> None:
        self.principal = Principal(id=name)
        self.secrets = secrets
        self._most = most
        self._seen: dict[bytes, float] = {}

    def count(self, signature: bytes, now: float, keep: float) -> None:
        """Takes note of a signature; refuses one that was here before, or for which there is no room."""
        seen = self._seen
        while seen and (first := next(iter(seen.items())))[1] <= now:
            del seen[first[0]]
        if signature in seen:
            raise UnauthenticatedError("This signature was used already; sign anew.", code="signature_replayed")
        if len(seen) >= self._most:
            # To forget one would let it count again. Each principal has its own room, so this hurts nobody else.
            raise TooManyRequestsError("Too many signed requests.", retry_after=next(iter(seen.values())) - now)
        seen[signature] = now + keep


def _people(secrets: Mapping[str, Given], most: int) -> dict[bytes, _Person]:
    people: dict[bytes, _Person] = {}
    owners: dict[str, str] = {}
    for name, given in secrets.items():
        if not name or name == ANONYMOUS or not name.isprintable() or not name.isascii():
            raise ValueError(f"HmacAuth: a principal can't be called {name!r}")
        own = [_long_enough(name, one) for one in ([given] if isinstance(given, (str, Secret)) else given)]
        if not own:
            raise ValueError(f"HmacAuth: {name!r} has no secret")
        for secret in own:
            if owners.setdefault(secret.reveal(), name) != name:
                raise ValueError(f"HmacAuth: {owners[secret.reveal()]!r} and {name!r} have the same secret")
        people[name.encode()] = _Person(name, own, most)
    if not people:
        raise ValueError("HmacAuth needs at least one principal; with none nobody could come in")
    return people


def _long_enough(name: str, given: str | Secret) -> Secret:
    if len(given.reveal() if isinstance(given, Secret) else given) < SHORTEST_SECRET:
        raise ValueError(f"HmacAuth: a secret of {name!r} is shorter than {SHORTEST_SECRET} characters")
    return given if isinstance(given, Secret) else Secret(given)


def _target(scope: Scope) -> bytes:
    """The path with its query, as it was sent."""
    sent: bytes | None = scope.get("raw_path")
    # Some servers leave the query in it, and some have none; a path that was decoded could hold a line's end.
    path = quote(scope["path"], safe=_IN_PATHS).encode() if sent is None else sent.partition(b"?")[0]
    query: bytes = scope.get("query_string", b"")
    return path + b"?" + query if query else path


def _text(*parts: bytes) -> bytes:
    return b"\n".join((b"v1", *parts))


def _sign(secret: Secret, text: bytes) -> bytes:
    return b"v1=" + hmac.new(secret.reveal().encode(), text, hashlib.sha256).hexdigest().encode()
