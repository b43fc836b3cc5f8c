"""Verifies the signature of an event.

The platform signs the time and the body with the secret that it shares with us: `x-message-signature` is `v1=` and the
HMAC-SHA256 of `v1:TIME:BODY` in hexadecimal digits, `x-message-timestamp` is the time in whole seconds. What is older
or newer than the window is refused. Within it a copy of an event changes nothing, because its id is known.
"""

import hashlib
import hmac
from collections.abc import Sequence

from frontdesk.asgi.messages import Headers
from frontdesk.chat.webhook import verify_hmac, verify_time
from frontdesk.errors import UnauthenticatedError
from frontdesk.secret import Secret

SIGNATURE = b"x-message-signature"
TIMESTAMP = b"x-message-timestamp"
_MAX_TIMESTAMP_LENGTH = 12


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of the platform for a body."""
    signed = f"v1:{timestamp}:".encode() + body
    return f"v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def verify(
    headers: Headers, body: bytes, *, secret: Secret | Sequence[Secret] | None, now: float, window: float
) -> None:
    """Reject a body without a valid, recent signature."""
    timestamp, given = headers.get(TIMESTAMP, b""), headers.get(SIGNATURE, b"")
    # Without a secret anybody could sign.
    if not secret or not given or not timestamp.isdigit() or len(timestamp) > _MAX_TIMESTAMP_LENGTH:
        raise UnauthenticatedError("The event has no signature.")
    verify_hmac(secret, b"v1:%b:%b" % (timestamp, body), given.removeprefix(b"v1="))
    verify_time(timestamp, now, max_age_seconds=window)
