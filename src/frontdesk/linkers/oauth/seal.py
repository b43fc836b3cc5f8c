"""Signed ids for URLs and cookies, which can't be forged."""

import base64
import hashlib
import hmac

_LONGEST = 200


class Seal:
    """Signs ids, each for one purpose, with a secret of the host's."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def close(self, purpose: str, value: str) -> str:
        """Return an id with its signature."""
        return f"{value}.{self.derive(purpose, value)}"

    def open(self, purpose: str, text: str) -> str | None:
        """Return the id, if it was signed here for the same purpose."""
        value, _, signature = text.rpartition(".")
        if len(text) > _LONGEST or not text.isascii() or not value:
            return None
        return value if hmac.compare_digest(signature, self.derive(purpose, value)) else None

    def derive(self, purpose: str, value: str) -> str:
        """Return the keyed hash of an id for a purpose: 256 bits in URL-safe base64."""
        signed = hmac.digest(self._secret, f"{purpose}\n{value}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def digest(value: str) -> str:
    """Return the hash that is stored of a value that only the browser keeps."""
    return hashlib.sha256(value.encode()).hexdigest()
