"""Encodes the most frequent event of a stream, a piece of text, from what all pieces of the text have in common."""

from frontdesk.channels.responses.wire import TextDelta
from frontdesk.kit.openai.answers import encode

_NUMBER = b'"sequence_number":0'
_TEXT = b'"delta":""'


class TextDeltas:
    """Makes the events of one stream; the same as if each was encoded whole, for a third of the cost."""

    __slots__ = ("_after", "_before", "_between", "_place")

    def __init__(self) -> None:
        self._place = ("", -1, -1)
        self._before = self._between = self._after = b""

    def event(self, number: int, item_id: str, output_index: int, content_index: int, text: str) -> bytes:
        """Return one event."""
        place = (item_id, output_index, content_index)
        if place != self._place:
            self._draw(item_id, output_index, content_index)
            self._place = place
        return b"".join((self._before, str(number).encode(), self._between, encode(text), self._after))

    def _draw(self, item_id: str, output_index: int, content_index: int) -> None:
        """Encode an event without a number and a text, and keep what is around them."""
        drawn = encode(
            TextDelta(
                sequence_number=0, item_id=item_id, output_index=output_index, content_index=content_index, delta=""
            )
        )
        # Quotes within an id would be escaped, so that it can't pass for a field.
        before, _, rest = drawn.partition(_NUMBER)
        between, _, after = rest.rpartition(_TEXT)
        self._before = b"event: response.output_text.delta\ndata: " + before + _NUMBER[:-1]
        self._between = between + _TEXT[:-2]
        self._after = after + b"\n\n"
