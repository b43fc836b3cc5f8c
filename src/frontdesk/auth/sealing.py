"""Encrypts stored data with the operator's keys. The keys can be rotated one at a time."""

import hashlib
import hmac
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from frontdesk.errors import SealError
from frontdesk.errors.base import install_hint
from frontdesk.ids import new_nonce
from frontdesk.secret import Secret

MIN_KEY_LENGTH = 32
_NONCE_BYTES = 12
_NOT_SEALED = ""
_UNKNOWN_KEY = "it is encrypted with an unknown key. Add that key after the first one in seal_key="
_CHANGED = "its authentication tag is invalid: the value was changed or moved"


class Sealer:
    """Encrypts with the first key and decrypts with any. Without keys, data is stored unencrypted."""

    def __init__(self, keys: Sequence[Secret] = (), *, is_required: bool = False) -> None:
        self._is_required = is_required
        self._keys = {_derive(key, "key id").hex()[:16]: key for key in keys}
        self._ciphers: dict[str, Any] = {}

    @property
    def has_key(self) -> bool:
        return bool(self._keys)

    def findings(self) -> list[str]:
        wrong: list[str] = []
        if self._is_required and not self._keys:
            wrong.append("seal_key: it has no key; give it one, or leave it out to store data unencrypted")
        if any(len(key.reveal()) < MIN_KEY_LENGTH for key in self._keys.values()):
            wrong.append(f"seal_key: a key must have at least {MIN_KEY_LENGTH} random characters")
        if self._keys and find_spec("cryptography") is None:
            wrong.append(f"seal_key: it needs the package cryptography: {install_hint('seal')}")
        return wrong

    def seal(self, data: bytes, bound_to: bytes) -> tuple[str, bytes]:
        """Encrypt data bound to a context. Return the key id and the stored bytes."""
        if not self._keys:
            return _NOT_SEALED, data
        key_id, nonce = next(iter(self._keys)), new_nonce()
        return key_id, nonce + self._cipher(key_id).encrypt(nonce, data, bound_to)

    def open(self, key_id: str, data: bytes, bound_to: bytes) -> bytes:
        """Decrypt data bound to a context. Raise `SealError` if no key opens it."""
        if key_id == _NOT_SEALED:
            return data
        if key_id not in self._keys:
            raise SealError(_UNKNOWN_KEY)
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher(key_id).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], bound_to)
        except (InvalidTag, ValueError):
            raise SealError(_CHANGED) from None

    def _cipher(self, key_id: str) -> Any:
        if key_id not in self._ciphers:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._ciphers[key_id] = AESGCM(_derive(self._keys[key_id], "aes-gcm"))
        return self._ciphers[key_id]


def _derive(key: Secret, purpose: str) -> bytes:
    return hmac.digest(key.reveal().encode(), f"frontdesk {purpose}".encode(), hashlib.sha256)
