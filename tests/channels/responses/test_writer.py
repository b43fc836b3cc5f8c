from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.responses.schema import TextDelta
from frontdesk.channels.responses.writer import TextDeltas
from frontdesk.openai.bodies import encode

# Ids are ours, but nothing here depends on it: quotes, and what looks like a field, must do no harm.
_IDS = st.one_of(st.text(max_size=20), st.sampled_from(['"sequence_number":0', '","delta":""', "msg_1"]))
_TEXTS = st.one_of(st.text(st.characters(), max_size=40), st.sampled_from(["\ud83d", "\ud83d\ude00", '"delta":""']))
_PIECES = st.tuples(st.integers(0, 10**6), _IDS, st.integers(0, 300), st.integers(0, 300), _TEXTS)


@given(st.lists(_PIECES, max_size=6))
def test_the_events_are_those_that_are_encoded_whole(pieces: list[tuple[int, str, int, int, str]]) -> None:
    deltas = TextDeltas()
    for number, item_id, output_index, content_index, text in pieces:
        whole = TextDelta(
            sequence_number=number,
            item_id=item_id,
            output_index=output_index,
            content_index=content_index,
            delta=text,
        )
        told = deltas.event(number, item_id, output_index, content_index, text)
        assert told == b"event: response.output_text.delta\ndata: " + encode(whole) + b"\n\n"
