"""What the terminal client makes of bytes and of text."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.cli.chat import error_text, read_events
from frontdesk.cli.options import url
from frontdesk.cli.terminal import printable, visible

STREAM = [
    ("started", {"id": "run_1"}),
    ("update", {"text": "one\u2028two\x85\n"}),
    ("completed", {"status": "completed"}),
]


@given(st.lists(st.integers(0, 300)), st.sampled_from(["\n", "\r\n"]))
def test_events_come_out_whole_wherever_the_bytes_are_cut(cuts: list[int], end: str) -> None:
    events = [
        f"event: {name}{end}id: 1{end}data: {json.dumps(data, ensure_ascii=False)}{end}{end}: keep-alive{end}{end}"
        for name, data in STREAM
    ]
    wire = "".join(events).encode()
    edges = [0, *sorted(cuts), len(wire)]
    chunks = [wire[start:stop] for start, stop in pairwise(edges)]
    assert list(read_events(chunks)) == STREAM


def test_an_error_is_one_line() -> None:
    error = {"code": "invalid_request", "message": "The message is empty.", "param": "message"}
    assert error_text(error, 400) == "The message is empty. (400, invalid_request, message)"
    assert error_text({"message": "Oh."}) == "Oh."


@pytest.mark.parametrize(
    ("text", "shown", "written_out"),
    [
        ("Café 👩‍🍳", "Café 👩‍🍳", "Café 👩\\u200d🍳"),
        ("a\tb\nc", "a\tb\nc", "a\\tb\\nc"),
        ("\x1b[2J\x07\x9b2J\x7f", "[2J2J", "\\u001b[2J\\u0007\\u009b2J\\u007f"),
        ("pay \u202e001", "pay \u202e001", "pay \\u202e001"),
    ],
)
def test_text_can_not_steer_the_terminal_and_an_approval_hides_nothing(text: str, shown: str, written_out: str) -> None:
    assert printable(text) == shown
    assert visible(text) == written_out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("http://localhost:8000", "http://localhost:8000/invocations"),
        ("https://example.com/", "https://example.com/invocations"),
        ("http://[::1]:80?a=b", "http://[::1]:80/invocations?a=b"),
        ("http://localhost/doors/one", "http://localhost/doors/one"),
    ],
)
def test_a_url_without_a_path_gets_the_usual_one(typed: str, meant: str) -> None:
    assert url(typed) == meant
