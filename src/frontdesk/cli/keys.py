"""`frontdesk keys`: manages the API keys in a file."""

import json
import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec

from frontdesk.auth.api_keys import ApiKeyAuth, KeyFileError, StoredKey, append, extract_time, parse_seconds, read_keys
from frontdesk.cli.terminal import CommandError, print_table, visible
from frontdesk.clock import SystemClock
from frontdesk.ids import RandomIds, new_secret
from frontdesk.models.identity import ANONYMOUS

PREFIX = "fdk_"
MAX_NAME_LENGTH = 256
_LENGTH = re.compile(r"([1-9][0-9]{0,5})([mhd])")
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_COLUMNS = ("id", "principal", "state", "created", "expires", "revoked")


def run(arguments: Namespace) -> int:
    path = Path(arguments.file)
    try:
        if arguments.action == "create":
            return _create(path, arguments.principal, arguments.expires)
        if arguments.action == "revoke":
            return _revoke(path, arguments.key_id)
        return _list(path, as_json=arguments.json)
    except KeyFileError as error:
        raise CommandError(f"--file: {error}") from None
    except OSError as error:
        raise CommandError(f"--file: {path} can't be written: {error.strerror}") from None


def _create(path: Path, principal: str, expires: str | None) -> int:
    if (
        not principal.strip()
        or principal == ANONYMOUS
        or len(principal) > MAX_NAME_LENGTH
        or not principal.isprintable()
    ):
        raise CommandError(f"NAME: invalid principal name {visible(principal)!r}")
    if path.exists():
        # A file that can't be read is not appended to.
        read_keys(path)
    now = SystemClock().now()
    key = PREFIX + new_secret()
    stored = StoredKey(
        id=RandomIds().new("key"),
        principal=principal,
        hash=ApiKeyAuth.hash(key),
        created=extract_time(now),
        expires=None if expires is None else _end(expires, now),
    )
    append(path, stored)
    # The key is alone on stdout, for a pipe; the explanation goes to stderr.
    until = f"until {stored.expires}" if stored.expires else "until it is revoked"
    print(f"The key of {principal}, shown this once. In {path} it is {stored.id}, good {until}.", file=sys.stderr)
    print(key)
    return 0


def _end(text: str, now: float) -> str:
    length = _LENGTH.fullmatch(text)
    try:
        at = now + int(length[1]) * _UNITS[length[2]] if length else parse_seconds(text)
    except ValueError as error:
        raise CommandError(f"--expires: {error}, or like 90d, 12h or 30m") from None
    if at <= now:
        raise CommandError(f"--expires: {text} is in the past")
    return extract_time(at)


def _list(path: Path, *, as_json: bool) -> int:
    now = SystemClock().now()
    rows = [_row(key, now) for key in read_keys(path)]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(_COLUMNS, rows)
    return 0


def _row(key: StoredKey, now: float) -> dict[str, Any]:
    fields: dict[str, Any] = {**dict.fromkeys(_COLUMNS), **msgspec.to_builtins(key), "state": key.state(now)}
    return {name: fields[name] for name in _COLUMNS}


def _revoke(path: Path, key_id: str) -> int:
    now = SystemClock().now()
    stored = next((key for key in read_keys(path) if key.id == key_id), None)
    if stored is None:
        raise CommandError(f"ID: {path} has no key {visible(key_id)}")
    if stored.state(now) == "revoked":
        print(f"{key_id} of {visible(stored.principal)} is revoked already, since {stored.revoked}.")
        return 0
    append(path, StoredKey(id=key_id, revoked=extract_time(now)))
    print(f"{key_id} of {visible(stored.principal)} is revoked. A host that runs refuses it within a second.")
    return 0
