"""Nonces of signed requests."""

from typing import Protocol


class Nonces(Protocol):
    """Nonces that were used, so that what they sign counts once."""

    async def use(self, scope: str, nonce: str, *, now: float, expires_at: float) -> bool:
        """Take a nonce of a scope; `False` if it is taken. When this returns, it stays so until `expires_at`.

        Of any number of uses at once, over all processes that share the store, one succeeds.
        """
        ...
