"""API keys: who is calling over HTTP."""

import asyncio
import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from frontdesk.abc.auth import Principal
from frontdesk.clock import Clock, SystemClock
from frontdesk.data.identity import ANONYMOUS
from frontdesk.errors import UnauthenticatedError
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.auth.key_file import HASHED, KeyFileError, StoredKey, digest_of, read_hash, read_keys
from frontdesk.kit.auth.secrets import Secret, revealed
from frontdesk.kit.http.asgi import Headers
from frontdesk.loggers import access as log

SHORTEST_KEY = 16
LOOK_SECONDS = 1.0
"""The seconds after which a file of keys is checked for changes again."""
_JWT = re.compile(rb"eyJ[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)

Key = str | Secret
_Entry = tuple[bytes, Principal | None, float | None]
_NOBODY: _Entry = (b"", None, None)


class ApiKeyAuth:
    """API keys, each of which stands for a principal. Only their hashes are kept.

    `ApiKeyAuth({"alice": ["key-one...", "sha256:..."]})`: a key in plain text or as `ApiKeyAuth.hash(key)` gives it.
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
            raise TypeError('ApiKeyAuth takes the keys with the names of their principals: ApiKeyAuth({"ada": "..."})')
        for principal, given in keys.items():
            for key in [given] if isinstance(given, (str, Secret)) else given:
                _add(self._principals, principal, _digest(principal, revealed(key)))
        if not self._principals:
            raise ValueError("ApiKeyAuth needs at least one key; with none nobody could come in")

    @staticmethod
    def hash(key: Key) -> str:
        """Return the hash of a key, to be written into a configuration instead of the key."""
        return HASHED + digest_of(revealed(key)).hex()

    @classmethod
    def from_file(cls, path: str | Path, *, clock: Clock | None = None) -> "ApiKeyAuth":
        """Take the keys from a file that `frontdesk keys` writes, and follow its changes while the host runs."""
        return _FileKeys(Path(path), clock or SystemClock())

    async def authenticate(self, headers: Headers) -> Principal | None:
        # An empty one is a wrong one: it must not be made good by another header.
        presented = headers.get(b"x-api-key", headers.get(b"api-key"))
        bearer = presented is None
        if bearer and (presented := _bearer(headers)) is None:
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
            raise UnauthenticatedError("The API key is no longer valid.", code="key_expired")
        return principal

    def __repr__(self) -> str:
        return f"ApiKeyAuth({len(self._principals)} keys)"


class _FileKeys(ApiKeyAuth):
    """Keys in a file, which is read again when it has changed. One that can't be read changes nothing."""

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
        change = await asyncio.to_thread(_changed, self._path, self._seen)
        self._look_at = self._clock.now() + LOOK_SECONDS
        if change is None:
            return
        self._seen, keys = change
        if isinstance(keys, KeyFileError):
            log.error("the keys stay as they were: %s", keys)
            return
        self._principals = keys
        log.info("%s has changed: it has %d keys", self._path, len(keys))


_Stamp = tuple[int, int, int] | None


def _stamp(path: Path) -> _Stamp:
    """Return what changes whenever a file changes; `None` if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _changed(path: Path, seen: _Stamp) -> tuple[_Stamp, dict[bytes, _Entry] | KeyFileError] | None:
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
    for key in keys:
        try:
            _add(table, key.principal, key.digest, key.ends_at)
        except ValueError as error:
            raise KeyFileError(str(error)) from None
    return table


def _add(table: dict[bytes, _Entry], principal: str, digest: bytes, ends_at: float | None = None) -> None:
    if not principal or principal == ANONYMOUS:
        raise ValueError(f"ApiKeyAuth: a principal can't be called {principal!r}")
    _, owner, ends = table.setdefault(digest, (digest, Principal(id=principal), ends_at))
    if owner is not None and owner.id != principal:
        raise ValueError(f"ApiKeyAuth: {owner.id!r} and {principal!r} have the same key")
    if ends_at is not None and (ends is None or ends_at < ends):
        # A key that is listed twice ends when the first of them does.
        table[digest] = (digest, owner, ends_at)


def _digest(principal: str, key: str) -> bytes:
    if not key.startswith(HASHED):
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"ApiKeyAuth: a key of {principal!r} is shorter than {SHORTEST_KEY} characters")
        return digest_of(key)
    try:
        return read_hash(key)
    except ValueError as error:
        raise ValueError(f"ApiKeyAuth: {error}; one of {principal!r} is not") from None


def _bearer(headers: Headers) -> bytes | None:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" and token.strip() else None
