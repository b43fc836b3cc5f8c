"""Idempotency keys: repeated requests of a caller with the same key run once, across processes.

The run id is derived from the key. Concurrent requests meet in the store, which accepts an id once.
"""

import hashlib

import msgspec

from frontdesk.asgi.messages import Headers
from frontdesk.errors import InvalidRequestError
from frontdesk.models.request import ChannelRequest

HEADER = "Idempotency-Key"
MAX_KEY_LENGTH = 255

_HEADER = HEADER.lower().encode()
_DIGITS = 40
_NOT_STORED = f"A request with an {HEADER} requires `store`."
_TWO_IDS = f"A request has an {HEADER} or an id of its own for the run, not both."


def keyed(request: ChannelRequest, headers: Headers, raw: bytes, *more: bytes) -> ChannelRequest:
    """Return a request with the idempotency key of its headers, if any. `more` is request data besides the body."""
    given = headers.get(_HEADER)
    if given is None:
        return request
    key = given.decode("latin-1")
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        message = f"An {HEADER} has 1 to {MAX_KEY_LENGTH} printable ASCII characters."
        raise InvalidRequestError(message, param=HEADER)
    if request.run_id is not None:
        raise InvalidRequestError(_TWO_IDS, param=HEADER)
    if not request.store:
        raise InvalidRequestError(_NOT_STORED, param=HEADER)
    return request.replace(idempotency_key=key, request_hash=_digest(raw, more))


def _digest(raw: bytes, more: tuple[bytes, ...]) -> str:
    """Hash a request independently of the order of the fields of its body."""
    try:
        canonical = msgspec.json.encode(msgspec.json.decode(raw), order="sorted")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # A field that the channel ignores has a value that Python can't represent, such as 1e999. A repeated request
        # has the same bytes.
        canonical = raw
    return hashlib.sha256(b"\n".join((canonical, *more))).hexdigest()


def get_run_id(prefix: str, owner: str, channel: str, key: str) -> str:
    name = msgspec.json.encode([owner, channel, key])
    return f"{prefix}_{hashlib.sha256(name).hexdigest()[:_DIGITS]}"
