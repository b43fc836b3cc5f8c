"""Idempotency keys: a request that a caller sends again under the same key runs once, in whichever process it arrives.

The id of the run follows from the key, so that two requests at once meet in the store, which takes an id once.
"""

import hashlib

import msgspec

from frontdesk.data.request import ChannelRequest
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.http.asgi import Headers

HEADER = "Idempotency-Key"
LONGEST_KEY = 255

_HEADER = HEADER.lower().encode()
_DIGITS = 40
_NOT_STORED = f"A request with an {HEADER} has to be stored: without that nothing could answer it again."
_TWO_IDS = f"A request has an {HEADER} or an id of its own for the run, not both."


def keyed(request: ChannelRequest, headers: Headers, raw: bytes, *more: bytes) -> ChannelRequest:
    """Return a request with the key of its headers, if they have one; `more` is what it says beside its body."""
    given = headers.get(_HEADER)
    if given is None:
        return request
    key = given.decode("latin-1")
    if not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        message = f"An {HEADER} has 1 to {LONGEST_KEY} printable ASCII characters."
        raise InvalidRequestError(message, param=HEADER)
    if request.run_id is not None:
        raise InvalidRequestError(_TWO_IDS, param=HEADER)
    if not request.store:
        raise InvalidRequestError(_NOT_STORED, param=HEADER)
    return request.replace(idempotency_key=key, request_hash=_digest(raw, more))


def _digest(raw: bytes, more: tuple[bytes, ...]) -> str:
    """Hash what a request says, whatever the order in which the fields of its body come."""
    canonical = msgspec.json.encode(msgspec.json.decode(raw), order="sorted")
    return hashlib.sha256(b"\n".join((canonical, *more))).hexdigest()


def run_id_of(prefix: str, owner: str, channel: str, key: str) -> str:
    """Return the id of the run that a key stands for."""
    name = msgspec.json.encode([owner, channel, key])
    return f"{prefix}_{hashlib.sha256(name).hexdigest()[:_DIGITS]}"
