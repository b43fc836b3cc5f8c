"""Seal the tokens that platforms give with events, and open them while they last."""

from msgspec import json

from frontdesk.clock import Clock
from frontdesk.data.delivery import InboxItem
from frontdesk.data.reply_token import SealedToken
from frontdesk.errors import SealError
from frontdesk.kit.auth.sealing import Sealer

_NO_KEY = "a token of a platform is stored only encrypted: set needs_seal_key on the channel, and seal_key= on the host"


class ReplyTokens:
    """The tokens of one channel's events."""

    def __init__(self, channel: str, sealer: Sealer, clock: Clock) -> None:
        self._channel = channel
        self._sealer = sealer
        self._clock = clock

    def seal(self, item: InboxItem, token: str, expires_at: float) -> InboxItem:
        """Return an event with its token; a `SealError` if the host has no key."""
        if not self._sealer.has_key:
            raise SealError(_NO_KEY)
        key_id, data = self._sealer.seal(token.encode(), self._bound_to(item.event_id))
        sealed = SealedToken(event_id=item.event_id, key_id=key_id, data=data, expires_at=expires_at)
        return item.replace(reply_token=sealed)

    def open(self, token: SealedToken | None) -> str | None:
        """Return a token; `None` if there is none, or it has expired."""
        if token is None or self._clock.now() >= token.expires_at:
            return None
        return self._sealer.open(token.key_id, token.data, self._bound_to(token.event_id)).decode()

    def _bound_to(self, event_id: str) -> bytes:
        return json.encode(["reply token", self._channel, event_id])
