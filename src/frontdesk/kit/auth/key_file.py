"""The file of API keys: a line of JSON for each key, with its hash and never the key itself.

    {"id": "key_...", "principal": "alice", "hash": "sha256:...", "created": "2026-01-31T12:00:00Z"}
    {"id": "key_...", "revoked": "2026-03-31T12:00:00Z"}

A later line about the same key adds to an earlier one. So the file only grows by whole lines, nothing has to be
locked, and it tells who had a key when.
"""

import hashlib
import hmac
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from frontdesk.data.identity import ANONYMOUS

HASHED = "sha256:"
_LARGEST = 16 * 1024 * 1024
_EMPTY = hashlib.sha256().digest()


class KeyFileError(ValueError):
    """The file can't be read as one of keys."""


class StoredKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The record of one key; times are those of ISO 8601."""

    id: str
    principal: str = ""
    hash: str = ""
    created: str | None = None
    expires: str | None = None
    revoked: str | None = None

    @property
    def digest(self) -> bytes:
        """Return the hash as bytes."""
        return read_hash(self.hash)

    @property
    def ends_at(self) -> float | None:
        """Return when the key stops being valid, in seconds since the epoch; `None` if never."""
        ends = [seconds_of(time) for time in (self.expires, self.revoked) if time is not None]
        return min(ends) if ends else None

    def state(self, now: float) -> str:
        """Return `active`, `expired` or `revoked`."""
        if self.revoked is not None and seconds_of(self.revoked) <= now:
            return "revoked"
        return "expired" if self.expires is not None and seconds_of(self.expires) <= now else "active"


_decoder = msgspec.json.Decoder(StoredKey)


def read_keys(path: Path) -> list[StoredKey]:
    """Return all keys of a file, in the order in which they were made."""
    try:
        if path.stat().st_size > _LARGEST:
            raise KeyFileError(f"{path} is larger than a file of keys can be")
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise KeyFileError(f"there is no file {path}; `frontdesk keys create NAME --file {path}` makes one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(
            f"{path} can't be read: {getattr(error, 'strerror', None) or type(error).__name__}"
        ) from None
    return _joined(path, text.splitlines())


def _joined(path: Path, lines: Iterable[str]) -> list[StoredKey]:
    keys: dict[str, StoredKey] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            change = _decoder.decode(line)
            key = keys.get(change.id, change)
            fields: dict[str, Any] = msgspec.to_builtins(change)
            keys[change.id] = _checked(msgspec.structs.replace(key, **fields))
        except (msgspec.DecodeError, ValueError) as error:
            # What the line holds is not shown: somebody may have written a key there.
            raise KeyFileError(f"{path}, line {number}: {_reason(error)}") from None
    return list(keys.values())


def _checked(key: StoredKey) -> StoredKey:
    if not key.id or not key.principal or key.principal == ANONYMOUS:
        raise ValueError("a key needs an id and a principal")
    for time in (key.created, key.expires, key.revoked):
        if time is not None:
            seconds_of(time)
    read_hash(key.hash)
    return key


def _reason(error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError) or not isinstance(error, msgspec.DecodeError):
        return str(error)
    return "this is not JSON"


def append(path: Path, key: StoredKey) -> None:
    """Append a change of a key; create the file, for this user only, if there is none."""
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


def digest_of(key: str) -> bytes:
    """Return the hash of a key."""
    return hashlib.sha256(key.encode()).digest()


def read_hash(text: str) -> bytes:
    """Return the bytes of `sha256:...`; raise a `ValueError` for any other text."""
    try:
        digest = bytes.fromhex(text.removeprefix(HASHED)) if text.startswith(HASHED) else b""
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise ValueError("a hashed key is 'sha256:' and 64 hexadecimal digits")
    if hmac.compare_digest(digest, _EMPTY):
        raise ValueError("a hashed key is not that of an empty one")
    return digest


def seconds_of(time: str) -> float:
    """Return a time of ISO 8601 in seconds since the epoch; one without a zone is in UTC."""
    try:
        parsed = datetime.fromisoformat(time)
    except ValueError:
        raise ValueError("a time must look like 2026-01-31T12:00:00Z") from None
    return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).timestamp()


def time_of(seconds: float) -> str:
    """Return seconds since the epoch as a time of ISO 8601."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
