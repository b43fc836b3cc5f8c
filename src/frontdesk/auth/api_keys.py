"""API key authentication of HTTP callers, and the file that stores the key hashes."""

import asyncio
import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from frontdesk.asgi.messages import Headers
from frontdesk.clock import Clock, SystemClock
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.errors import InvalidRequestError, UnauthenticatedError
from frontdesk.interfaces.auth import Principal, ShowsSchemes
from frontdesk.loggers import access as log
from frontdesk.models.identity import ANONYMOUS
from frontdesk.secret import Secret, list_secrets, looks_secret, reveal

HASHED = "sha256:"
_MAX_FILE_BYTES = 16 * 1024 * 1024
_EMPTY = hashlib.sha256().digest()


class KeyFileError(ValueError):
    """The file can't be read as one of keys."""


class StoredKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The record of one key. Times are in ISO 8601."""

    id: str
    principal: str = ""
    hash: str = ""
    created: str | None = None
    expires: str | None = None
    revoked: str | None = None

    @property
    def digest(self) -> bytes:
        return read_hash(self.hash)

    @property
    def ends_at(self) -> float | None:
        """Return the expiry of the key in epoch seconds, or None."""
        ends = [parse_seconds(time) for time in (self.expires, self.revoked) if time is not None]
        return min(ends) if ends else None

    def state(self, now: float) -> str:
        """Return `active`, `expired` or `revoked`."""
        if self.revoked is not None and parse_seconds(self.revoked) <= now:
            return "revoked"
        return "expired" if self.expires is not None and parse_seconds(self.expires) <= now else "active"


_decoder = msgspec.json.Decoder(StoredKey)


def read_keys(path: Path) -> list[StoredKey]:
    """Return all keys of a file, in creation order."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise KeyFileError(f"{path} exceeds the maximum size of a key file")
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise KeyFileError(
            f"file {path} not found. Create it with `frontdesk keys create NAME --file {path}`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(
            f"{path} can't be read: {getattr(error, 'strerror', None) or type(error).__name__}"
        ) from None
    return _join_lines(path, text.splitlines())


def _join_lines(path: Path, lines: Iterable[str]) -> list[StoredKey]:
    keys: dict[str, StoredKey] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            change = _decoder.decode(line)
            key = keys.get(change.id, change)
            fields: dict[str, Any] = msgspec.to_builtins(change)
            keys[change.id] = _check_key(msgspec.structs.replace(key, **fields))
        except (msgspec.DecodeError, ValueError) as error:
            # What the line holds is not shown: somebody may have written a key there.
            raise KeyFileError(f"{path}, line {number}: {_reason(error)}") from None
    return list(keys.values())


def _check_key(key: StoredKey) -> StoredKey:
    if not key.id or not key.principal or key.principal == ANONYMOUS:
        raise ValueError("a key requires an id and a principal")
    for time in (key.created, key.expires, key.revoked):
        if time is not None:
            parse_seconds(time)
    read_hash(key.hash)
    return key


def _reason(error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError) or not isinstance(error, msgspec.DecodeError):
        return str(error)
    return "this is not JSON"


def append(path: Path, key: StoredKey) -> None:
    """Append a change of a key. A missing file is created with access for this user only."""
    line = msgspec.json.encode(key) + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(handle).st_size
        # A line that was written by hand may lack its end.
        whole = size == 0 or os.pread(handle, 1, size - 1) == b"\n" if hasattr(os, "pread") else True
        os.write(handle, line if whole else b"\n" + line)
        os.fsync(handle)
    finally:
        os.close(handle)


def compute_digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def read_hash(text: str) -> bytes:
    """Return the bytes of `sha256:...`. Raise `ValueError` for any other text."""
    try:
        digest = bytes.fromhex(text.removeprefix(HASHED)) if text.startswith(HASHED) else b""
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise ValueError("a hashed key must be 'sha256:' followed by 64 hexadecimal digits")
    if hmac.compare_digest(digest, _EMPTY):
        raise ValueError("a hashed key must not be the hash of an empty key")
    return digest


def parse_seconds(time: str) -> float:
    """Parse an ISO 8601 time into epoch seconds. Times without a zone are in UTC."""
    try:
        parsed = datetime.fromisoformat(time)
    except ValueError:
        raise ValueError("a time must look like 2026-01-31T12:00:00Z") from None
    return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).timestamp()


def extract_time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


MIN_KEY_LENGTH = 16
LOOK_SECONDS = 1.0
"""The seconds after which a file of keys is checked for changes again."""
_DIRECTION = 'the names come first, as in ApiKeyAuth({"ada": "..."})'
_JWT = re.compile(rb"eyJ[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)

Key = str | Secret
_Entry = tuple[bytes, Principal | None, float | None]
_NOBODY: _Entry = (b"", None, None)


class ApiKeyAuth(ShowsSchemes):
    """API keys, each mapped to a principal. Only their hashes are kept.

    `ApiKeyAuth({"alice": ["key-one...", "sha256:..."]})`: a key in plain text or as returned by `ApiKeyAuth.hash(key)`.
    """

    name = "api_key"
    gives_claims = False
    security_schemes: Mapping[str, Mapping[str, str]] = {
        "api_key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
        "bearer": {"type": "http", "scheme": "bearer"},
    }

    def __init__(self, keys: Mapping[str, Key | Sequence[Key]], *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._principals: dict[bytes, _Entry] = {}
        if not isinstance(cast(object, keys), Mapping):
            raise TypeError('ApiKeyAuth requires a mapping of principal names to keys: ApiKeyAuth({"ada": "..."})')
        labels: dict[str, str] = {}
        for number, (principal, given) in enumerate(keys.items(), 1):
            # Not by name: of a mapping that was written the wrong way round, the name is the key.
            labels[principal] = label = f"principal {number} of {len(keys)}"
            _require_name(principal, label)
            for key in list_secrets(given, f"ApiKeyAuth: the keys of {label}"):
                _add(self._principals, principal, _digest(label, key), labels)
        if not self._principals:
            raise ValueError("ApiKeyAuth requires at least one key, without keys it denies every caller")

    @staticmethod
    def hash(key: Key) -> str:
        """Return the hash of a key, for use in a configuration instead of the key."""
        return HASHED + compute_digest(reveal(key)).hex()

    @classmethod
    def from_file(cls, path: str | Path, *, clock: Clock | None = None) -> "ApiKeyAuth":
        """Load the keys from a file written by `frontdesk keys`, and reload it on changes while the host runs."""
        return _FileKeys(Path(path), clock or SystemClock())

    async def authenticate(self, headers: Headers) -> Principal | None:
        # An empty one is a wrong one: it must not be made good by another header.
        presented = headers.get(b"x-api-key", headers.get(b"api-key"))
        bearer = presented is None
        if presented is None and (presented := _bearer(headers)) is None:
            return None
        digest = hashlib.sha256(presented).digest()
        # How long the look-up takes can depend on the hash, never on the key.
        stored, principal, ends_at = self._principals.get(digest, _NOBODY)
        if not hmac.compare_digest(digest, stored) or principal is None:
            if bearer and _JWT.fullmatch(presented):
                # A token of another kind, which another `auth` may accept.
                return None
            raise UnauthenticatedError("The API key is not valid.")
        if ends_at is not None and ends_at <= self._clock.now():
            raise UnauthenticatedError("The API key has expired.", code="key_expired")
        if not bearer:
            self._require_one_key(presented, headers)
        return principal

    def _require_one_key(self, presented: bytes, headers: Headers) -> None:
        """Reject a request with two keys. A proxy may have checked the other one.

        A bearer token that is not a key of this host may be meant for such a proxy, and is ignored.
        """
        if not hmac.compare_digest(headers.get(b"api-key", presented), presented):
            raise _two_keys()
        token = _bearer(headers)
        if token is None or hmac.compare_digest(token, presented):
            return
        if hashlib.sha256(token).digest() in self._principals:
            raise _two_keys()

    def __repr__(self) -> str:
        return f"ApiKeyAuth({len(self._principals)} keys)"


class _FileKeys(ApiKeyAuth):
    """Keys in a file that is reloaded on changes. An unreadable file is ignored."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        # Absolute, so that it is the same file after a change of the directory.
        self._path = path.absolute()
        self._seen = _stamp(path)
        self._principals = _table(read_keys(path))
        self._look_at = clock.now() + LOOK_SECONDS
        self._looking: asyncio.Task[None] | None = None

    async def authenticate(self, headers: Headers) -> Principal | None:
        if not self._look_at - LOOK_SECONDS <= self._clock.now() < self._look_at:
            # Awaited, so that a key that was revoked long ago is not accepted for one more request.
            await self._look_once()
        return await super().authenticate(headers)

    async def _look_once(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = spawn_clean(self._look())
        await asyncio.shield(self._looking)

    async def _look(self) -> None:
        change = await asyncio.to_thread(_read_changed, self._path, self._seen)
        self._look_at = self._clock.now() + LOOK_SECONDS
        if change is None:
            return
        self._seen, keys = change
        if isinstance(keys, KeyFileError):
            log.error("failed to reload the key file, keeping the previous keys: %s", keys)
            return
        self._principals = keys
        log.info("key file reloaded: path=%s keys=%d", self._path, len(keys))


_Stamp = tuple[int, int, int] | None


def _stamp(path: Path) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read_changed(path: Path, seen: _Stamp) -> tuple[_Stamp, dict[bytes, _Entry] | KeyFileError] | None:
    """Return the content of a file if it has changed."""
    now = _stamp(path)
    if now == seen:
        return None
    try:
        return now, _table(read_keys(path))
    except KeyFileError as error:
        return now, error


def _table(keys: Iterable[StoredKey]) -> dict[bytes, _Entry]:
    table: dict[bytes, _Entry] = {}
    labels: dict[str, str] = {}
    for key in keys:
        labels.setdefault(key.principal, f"the principal of {key.id}")
        try:
            _add(table, key.principal, key.digest, labels, key.ends_at)
        except ValueError as error:
            raise KeyFileError(str(error)) from None
    return table


def _add(
    table: dict[bytes, _Entry], principal: str, digest: bytes, labels: Mapping[str, str], ends_at: float | None = None
) -> None:
    _, owner, ends = table.setdefault(digest, (digest, Principal(id=principal), ends_at))
    if owner is not None and owner.id != principal:
        raise ValueError(f"ApiKeyAuth: {labels[owner.id]} and {labels[principal]} have the same key")
    if ends_at is not None and (ends is None or ends_at < ends):
        # A key that is listed twice ends when the first of them does.
        table[digest] = (digest, owner, ends_at)


def _require_name(principal: object, label: str) -> None:
    if not isinstance(principal, str):
        raise TypeError(f"ApiKeyAuth: the name of {label} must be a string, got {type(principal).__name__}")
    if not principal or principal == ANONYMOUS:
        raise ValueError(f"ApiKeyAuth: {label} has a reserved or invalid name: {principal!r}")
    if looks_secret(principal):
        raise ValueError(f"ApiKeyAuth: the name of {label} looks like a key; {_DIRECTION}")


def _digest(label: str, given: object) -> bytes:
    if not isinstance(given, (str, Secret)):
        raise TypeError(f"ApiKeyAuth: a key of {label} must be a string, got {type(given).__name__}")
    key = reveal(given)
    if not key.startswith(HASHED):
        if len(key) < MIN_KEY_LENGTH:
            raise ValueError(f"ApiKeyAuth: a key of {label} is shorter than {MIN_KEY_LENGTH} characters; {_DIRECTION}")
        return compute_digest(key)
    try:
        return read_hash(key)
    except ValueError as error:
        raise ValueError(f"ApiKeyAuth: a key of {label} is invalid: {error}") from None


def _two_keys() -> InvalidRequestError:
    return InvalidRequestError("The request has two different API keys. Send one.", code="several_credentials")


def _bearer(headers: Headers) -> bytes | None:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" and token.strip() else None
