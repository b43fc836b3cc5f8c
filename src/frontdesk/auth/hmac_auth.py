"""Request signatures with a shared secret, which is never transmitted.

The signature is an HMAC-SHA256, in hexadecimal digits after `v2=`, over these lines, joined by a line feed:

v2
    the principal
    the method, such as POST
    the path with its query, as it is sent
    the time, in seconds since the epoch, with up to six decimals
    the nonce: 8 to 128 letters, digits or any of . _ : -, never used twice
    the SHA-256 of the body, in hexadecimal digits
    name:value, for each header that must be signed and is sent, by name in lower case, sorted
"""

import hashlib
import hmac
import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from math import floor
from typing import NamedTuple
from urllib.parse import quote

from starlette.types import Scope

from frontdesk.asgi.messages import Headers
from frontdesk.auth.nonces import ProcessNonces
from frontdesk.clock import Clock, SystemClock
from frontdesk.errors import TooManyRequestsError, UnauthenticatedError, UnavailableError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.auth import Principal, ShowsSchemes, SignsBodies, UsesNonces
from frontdesk.interfaces.store import Nonces
from frontdesk.models.identity import ANONYMOUS
from frontdesk.models.settings import check_settings, count_finding, seconds_finding
from frontdesk.secret import Secret, list_secrets, looks_secret, reveal

MIN_SECRET_LENGTH = 16
MAX_REMEMBERED = 100_000
SIGNED_PREFIX = b"x-agent-"
"""The prefix of the headers that choose what a channel runs; each of them that is sent is signed."""
EMPTY = hashlib.sha256(b"").hexdigest()
_NONCE = re.compile(rb"[A-Za-z0-9._:-]{8,128}")
_TIME = re.compile(rb"[0-9]{1,12}(?:\.[0-9]{1,6})?")
_HASH = re.compile(rb"[0-9a-f]{64}")
_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}")
_IN_PATHS = "/:@!$&'()*+,;=-._~"
_DESCRIBED = "An HMAC-SHA256 over the request, see the documentation of the host."
_WRONG = "The signature is not valid."
_DIRECTION = 'the names come first, as in HmacAuth({"billing": "..."})'

Given = str | Secret | Sequence[str | Secret]


class HmacHeaders(NamedTuple):
    """The headers that a signed request brings."""

    principal: str = "x-signature-principal"
    timestamp: str = "x-signature-timestamp"
    nonce: str = "x-signature-nonce"
    body_hash: str = "x-content-sha256"
    signature: str = "x-signature"


_USUAL = HmacHeaders()


class HmacAuth(ShowsSchemes, SignsBodies, UsesNonces):
    """Requests signed with a shared secret: `HmacAuth({"alice": secret})`.

    A principal may have several secrets, to rotate them without interruption. A signature is valid once, from
    `max_ahead_seconds` before its time until `window_seconds` after it. Used signatures are kept in the host's store.
    If that does not survive the process, all signatures that an earlier process may have accepted are rejected: those
    with a time up to `max_ahead_seconds` after the start.
    """

    name = "hmac"
    gives_claims = False

    def __init__(
        self,
        secrets: Mapping[str, Given],
        *,
        window_seconds: float = 300.0,
        max_ahead_seconds: float = 5.0,
        signed_headers: Collection[str] = (),
        headers: HmacHeaders = _USUAL,
        max_remembered: int = MAX_REMEMBERED,
        clock: Clock | None = None,
    ) -> None:
        check_settings(
            "HmacAuth",
            seconds_finding("window_seconds", window_seconds),
            count_finding("max_remembered", max_remembered),
        )
        if not 0 <= max_ahead_seconds <= window_seconds:
            raise ValueError("HmacAuth: max_ahead_seconds must be between 0 and window_seconds")
        if len(set(headers)) < len(headers) or not all(map(_HEADER.fullmatch, headers)):
            raise ValueError("HmacAuth: headers must be five different lower-case names")
        if isinstance(signed_headers, str) or not all(map(_HEADER.fullmatch, signed_headers)):
            raise ValueError("HmacAuth: signed_headers must be lower-case names")
        if any(name.startswith(SIGNED_PREFIX.decode()) or name in signed_headers for name in headers):
            raise ValueError("HmacAuth: headers must not contain a name of signed_headers")
        self._clock = clock or SystemClock()
        self._window, self._ahead = window_seconds, max_ahead_seconds
        self._names = HmacHeaders(*headers)
        self._headers = [name.encode() for name in headers]
        self._signed_too = frozenset(name.encode() for name in signed_headers)
        self.body_header = headers.body_hash.encode()
        self.security_schemes: Mapping[str, Mapping[str, str]] = {
            "hmac": {"type": "apiKey", "in": "header", "name": headers.signature, "description": _DESCRIBED}
        }
        self._people = _people(secrets, max_remembered)
        # An unknown name is checked too, so that the time it takes does not reveal which names are known.
        self._nobody = _Person("", (Secret(RandomIds().new("nobody")),), 1)
        self._nonces: Nonces = ProcessNonces()
        self._not_before = self._clock.now() + max_ahead_seconds

    def use_nonces(self, nonces: Nonces, *, durable: bool) -> None:
        self._nonces = nonces
        # An earlier process has accepted nothing that was further ahead of its clock than this.
        self._not_before = 0.0 if durable else self._clock.now() + self._ahead

    async def authenticate_request(self, scope: Scope, headers: Headers) -> Principal | None:
        signed = self._read_signed(scope, headers)
        if signed is None:
            return None
        person, signature, time = signed
        now = self._clock.now()
        self._check_time(time, now)
        person.check_capacity(self._clock.steady())
        # Kept for a window longer than it is good for: the clock of another replica may be behind this one.
        expires_at = time + 2 * self._window
        if not await self._nonces.use(self.name, signature.decode(), now=now, expires_at=expires_at):
            raise UnauthenticatedError(
                "This signature was used before. Sign the request again.", code="signature_replayed"
            )
        person.take_capacity(self._clock.steady() + 2 * self._window + self._ahead)
        return person.principal

    def _check_time(self, time: float, now: float) -> None:
        if time > now + self._ahead or time < now - self._window:
            text = f"The time of the signature is {time - now:+.0f} s from this host's."
            raise UnauthenticatedError(text, code="signature_expired")
        if time < self._not_before:
            if now < self._not_before:
                raise UnavailableError(
                    "This host has just started and can't detect replayed signatures yet. Sign the request again.",
                    retry_after=self._not_before - now,
                )
            raise UnauthenticatedError(
                "The signature was made before this host started. Sign the request again.", code="signature_expired"
            )

    async def recheck(self, scope: Scope, headers: Headers) -> Principal | None:
        # It counted at the handshake, and the time of that is over; what may have changed since are the secrets.
        signed = self._read_signed(scope, headers)
        return None if signed is None else signed[0].principal

    def _read_signed(self, scope: Scope, headers: Headers) -> "tuple[_Person, bytes, float] | None":
        given = [headers.get(name, b"") for name in self._headers]
        principal, timestamp, nonce, body_hash, signature = given
        if not principal and not signature:
            return None
        if not (_TIME.fullmatch(timestamp) and _NONCE.fullmatch(nonce) and _HASH.fullmatch(body_hash)):
            needed = ", ".join(self._names)
            raise UnauthenticatedError(f"A signed request requires valid headers {needed}.")
        if scope["type"] != "http" and body_hash != EMPTY.encode():
            raise UnauthenticatedError("A WebSocket handshake must be signed with an empty body.")
        self._require_single(scope)
        person = self._people.get(principal, self._nobody)
        method = scope.get("method", "GET").encode()
        text = _text(principal, method, _target(scope), timestamp, nonce, body_hash, *self._lines(headers))
        # All of them, so that the time it takes does not reveal which one it was.
        right = [hmac.compare_digest(_sign(secret, text), signature) for secret in person.secrets]
        if not any(right) or person is self._nobody:
            raise UnauthenticatedError(_WRONG)
        return person, signature, float(timestamp)

    def _must_sign(self, name: bytes) -> bool:
        return name.startswith(SIGNED_PREFIX) or name in self._signed_too

    def _require_single(self, scope: Scope) -> None:
        # Of two, one reader takes the first and another the last.
        sent = [name for name, _ in scope.get("headers", ()) if self._must_sign(name)]
        if len(sent) != len(set(sent)):
            raise UnauthenticatedError("The request has a duplicate signed header. Send each signed header once.")

    def _lines(self, headers: Headers) -> list[bytes]:
        lines = sorted(name + b":" + headers[name] for name in headers if self._must_sign(name))
        if any(b"\n" in line for line in lines):
            raise UnauthenticatedError("A signed header contains a line break.")
        return lines

    def sign(
        self,
        principal: str,
        method: str,
        target: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timestamp: float | None = None,
        nonce: str | None = None,
    ) -> dict[str, str]:
        """Return headers that sign a request with the first secret of a principal.

        `target` is the path with its query. `headers` are the other request headers, of which the required ones are
        signed.
        """
        person = self._people[principal.encode()]
        at = _format_time(self._clock.now() if timestamp is None else timestamp)
        once = nonce or RandomIds().new("n")
        body_hash = hashlib.sha256(body).hexdigest()
        parts = (principal, method.upper(), target, at, once, body_hash)
        sent = {name.lower().encode(): value.strip().encode("latin-1") for name, value in (headers or {}).items()}
        text = _text(*(part.encode() for part in parts), *self._lines(sent))
        signature = _sign(person.secrets[0], text).decode()
        return dict(zip(self._names, (principal, at, once, body_hash, signature), strict=True))

    def __repr__(self) -> str:
        return f"HmacAuth({len(self._people)} principals)"


class _Person:
    def __init__(self, name: str, secrets: Sequence[Secret], most: int) -> None:
        self.principal = Principal(id=name)
        self.secrets = secrets
        self._most = most
        self._ends: deque[float] = deque()

    def check_capacity(self, now: float) -> None:
        """Raise if the principal has no space for another signature. Limits are per principal, to isolate them."""
        ends = self._ends
        while ends and ends[0] <= now:
            ends.popleft()
        if len(ends) >= self._most:
            raise TooManyRequestsError("Too many signed requests of this principal.", retry_after=ends[0] - now)

    def take_capacity(self, until: float) -> None:
        """Record that a signature is stored until a time, by the steady clock."""
        self._ends.append(until)


def _people(secrets: Mapping[str, Given], most: int) -> dict[bytes, _Person]:
    people: dict[bytes, _Person] = {}
    owners: dict[str, int] = {}
    for number, (name, given) in enumerate(secrets.items(), 1):
        # Not by name: of a mapping that was written the wrong way round, the name is the secret.
        label = f"principal {number} of {len(secrets)}"
        _require_name(name, label)
        own = [_long_enough(label, secret) for secret in list_secrets(given, f"HmacAuth: the secrets of {label}")]
        if not own:
            raise ValueError(f"HmacAuth: {label} has no secret")
        for secret in own:
            if owners.setdefault(secret.reveal(), number) != number:
                raise ValueError(f"HmacAuth: principal {owners[secret.reveal()]} and {label} have the same secret")
        people[name.encode()] = _Person(name, own, most)
    if not people:
        raise ValueError("HmacAuth requires at least one principal, without principals it denies every caller")
    return people


def _require_name(name: object, label: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"HmacAuth: the name of {label} must be a string, got {type(name).__name__}")
    if not name or name == ANONYMOUS or not name.isprintable() or not name.isascii():
        raise ValueError(f"HmacAuth: {label} has an invalid name: use printable ASCII other than {ANONYMOUS!r}")
    if looks_secret(name):
        raise ValueError(f"HmacAuth: the name of {label} looks like a secret; {_DIRECTION}")


def _long_enough(label: str, given: object) -> Secret:
    if not isinstance(given, (str, Secret)):
        raise TypeError(f"HmacAuth: a secret of {label} must be a string, got {type(given).__name__}")
    if len(reveal(given)) < MIN_SECRET_LENGTH:
        raise ValueError(f"HmacAuth: a secret of {label} is shorter than {MIN_SECRET_LENGTH} characters; {_DIRECTION}")
    return given if isinstance(given, Secret) else Secret(given)


def _target(scope: Scope) -> bytes:
    sent: bytes | None = scope.get("raw_path")
    # Some servers leave the query in it, and some have none; a path that was decoded could hold a line's end.
    path = quote(scope["path"], safe=_IN_PATHS).encode() if sent is None else sent.partition(b"?")[0]
    query: bytes = scope.get("query_string", b"")
    return path + b"?" + query if query else path


def _text(*parts: bytes) -> bytes:
    return b"\n".join((b"v2", *parts))


def _sign(secret: Secret, text: bytes) -> bytes:
    return b"v2=" + hmac.new(secret.reveal().encode(), text, hashlib.sha256).hexdigest().encode()


def _format_time(time: float) -> str:
    # Never rounded up: a moment later than now is ahead.
    whole = floor(time)
    return f"{whole}.{floor((time - whole) * 1_000_000):06d}"
