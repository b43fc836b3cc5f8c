"""Renders incomplete answers, starting at the last sent message."""

import asyncio
import sys
from collections import OrderedDict
from typing import NamedTuple

from frontdesk.chat.messages import OutboundMessage
from frontdesk.chat.rendering import Renderer
from frontdesk.concurrency.offload import run_rendering
from frontdesk.errors import PushError
from frontdesk.interfaces.chat import LivePlace

MAX_ANSWERS = 1_024
"""The number of answers of which a channel knows what was sent. Others are rendered from their beginning."""
ALL_MESSAGES = sys.maxsize
"""The number of known messages of a text of which no message is sent, such as a draft."""
MAX_FREE_LENGTH = 8_192
SECONDS_PER_CHARACTER = 0.0002
"""The pause for each character that was rendered beyond the free ones: twenty times what it costs at worst."""


class Tail(NamedTuple):
    """The last messages of an answer."""

    offset: int
    """The start of their text."""
    before: int
    """The number of messages before them."""
    messages: list[OutboundMessage]
    places: list[int]
    """The places in their text from which each of them can be rendered, 0 where it needs what is before it."""

    @property
    def total(self) -> int:
        return self.before + len(self.messages)

    def after(self, known: int) -> list[OutboundMessage]:
        """Return the messages after the first `known` ones."""
        return self.messages[max(known - self.before, 0) :]


class _Sent(NamedTuple):
    offset: int
    messages: int
    prefix_hash: int
    free_at: float


class GrowingTexts:
    """Renders growing texts. Sent messages are not rendered again, except for the last one.

    A text that is one large block, such as a list, is rendered as a whole in a thread. The pause until its next
    rendering grows with its size.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._sent: OrderedDict[tuple[object, ...], _Sent] = OrderedDict()

    async def render(self, place: LivePlace, text: str, known: int) -> Tail:
        """Render a text with `known` sent messages. Raise `PushError` if it was rendered too recently."""
        clock = asyncio.get_running_loop().time
        sent = self._sent.get(_key(place)) if known else None
        if sent is not None and sent.free_at > clock():
            raise PushError(
                "The answer was rendered too recently. Retry later.", code="paused", retry_after=sent.free_at - clock()
            )
        offset, before = 0, 0
        if sent is not None and sent.messages < known and hash(text[: sent.offset]) == sent.prefix_hash:
            offset, before = sent.offset, sent.messages
        rest = text[offset:]
        shown = await run_rendering(rest, self._renderer.render_growing, rest)
        pause = SECONDS_PER_CHARACTER * max(len(rest) - MAX_FREE_LENGTH, 0)
        self._keep(place, _Sent(offset, before, hash(text[:offset]), clock() + pause))
        return Tail(offset, before, [message for message, _ in shown], [start for _, start in shown])

    def note_sent(self, place: LivePlace, text: str, tail: Tail, known: int) -> None:
        """Record the number of known messages of a text. The next rendering starts with the last one, if possible."""
        sent = self._sent.get(_key(place))
        if sent is None:
            return
        for number in range(min(known - tail.before, len(tail.places)) - 1, 0, -1):
            if tail.places[number]:
                offset = tail.offset + tail.places[number]
                self._keep(place, _Sent(offset, tail.before + number, hash(text[:offset]), sent.free_at))
                return

    def _keep(self, place: LivePlace, sent: _Sent) -> None:
        self._sent[_key(place)] = sent
        self._sent.move_to_end(_key(place))
        if len(self._sent) > MAX_ANSWERS:
            self._sent.popitem(last=False)


def _key(place: LivePlace) -> tuple[object, ...]:
    return (*place.identity.key, place.conversation_id)
