"""A text is cut so that nothing is lost, doubled or torn."""

import itertools
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk.markdown import plain_text as module
from frontdesk.markdown.plain_text import Units, split_text, text_length
from tests.linear.steps import Steps

PLAIN = ["word", "a sentence.", "Oh!", " ", "\n", "\n\n", "\r\n", "https://example.com/a/b?c=d"]
CODED = ["```\n", "```py\n", "~~~\n", "x = 1\n", "``` x ```"]
SEEN = ["e\u0301", "👩\u200d👩\u200d👧\u200d👦", "🇩🇪", "👍🏽", "각", "\u1100\u1161\u11a8", "नि", "\u200d", "\ud800"]
WORDS = st.sampled_from([*PLAIN, *CODED, *SEEN])
TEXTS = st.one_of(st.text(), st.lists(WORDS, max_size=60).map("".join))
UNITS: st.SearchStrategy[Units] = st.sampled_from(["characters", "utf16"])


@given(TEXTS, st.integers(1, 60), UNITS)
@example("👍", 1, "utf16")
def test_the_parts_joined_are_the_text(text: str, limit: int, units: Units) -> None:
    parts = split_text(text, limit, units=units)
    assert "".join(parts) == text
    assert all(parts)


@given(TEXTS, st.integers(1, 60), UNITS)
def test_no_part_is_longer_than_the_limit(text: str, limit: int, units: Units) -> None:
    for part in split_text(text, limit, units=units):
        # A single character that is too long by itself can't be made shorter.
        assert text_length(part, units) <= limit or len(part) == 1


@given(TEXTS, st.integers(12, 60))
def test_what_people_see_as_one_character_stays_one(text: str, limit: int) -> None:
    parts = split_text(text, limit)
    for before, behind in itertools.pairwise(parts):
        torn = unicodedata.category(behind[0]).startswith("M") or behind[0] == "\u200d" or before[-1] == "\u200d"
        # Nothing joins the end of a line, and only what fills a part all by itself may be torn.
        assert not torn or before[-1] in "\r\n" or len(before) == limit


@pytest.mark.parametrize(
    "seen", ["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "\r\n", "\u1100\u1161\u11a8", "🏴\U000e0067\U000e0062\U000e007f"]
)
def test_a_seen_character_is_not_torn(seen: str) -> None:
    for before in range(12):
        parts = split_text("x" * before + seen + "yyy", 12)
        assert any(seen in part for part in parts), parts


def test_flags_are_cut_between_pairs() -> None:
    assert split_text("🇩🇪🇫🇷🇮🇹", 3) == ["🇩🇪", "🇫🇷", "🇮🇹"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two\n\nthree four five", ["one two\n\n", "three four five"]),
        ("one two three\nfour five six", ["one two three\n", "four five six"]),
        ("One is so. Two is so. Three", ["One is so. ", "Two is so. Three"]),
        ("one two three four five", ["one two three ", "four five"]),
        ("aaaaaaaaaaaaaaaaaaaa", ["aaaaaaaaaaaaaaaa", "aaaa"]),
        ("Hi.\n\nand then many words", ["Hi.\n\nand then ", "many words"]),
        ("", []),
    ],
)
def test_the_best_place_is_taken(text: str, parts: list[str]) -> None:
    assert split_text(text, 16) == parts


CODE = "```py\nx = 1\n\ny = 2\n```\n"


@given(st.integers(0, 40), st.integers(0, 40), st.integers(len(CODE), 60))
def test_code_that_fits_stays_in_one_part(before: int, behind: int, limit: int) -> None:
    text = "word " * before + "\n" + CODE + "word " * behind
    assert any(CODE in part for part in split_text(text, limit))


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "   ```"])
def test_every_fence_is_known(fence: str) -> None:
    code = f"{fence}\na b c d\n{fence}\n"
    assert split_text(f"some words before it\n{code}", 24) == ["some words before it\n", code]


def test_code_that_is_too_long_is_cut_behind_a_line() -> None:
    parts = split_text("```\n" + "line of code\n" * 10 + "```\n", 40)
    assert "".join(parts) == "```\n" + "line of code\n" * 10 + "```\n"
    assert all(part.endswith("\n") for part in parts)


def test_backticks_within_a_line_are_no_fence() -> None:
    assert split_text("```a``` and words. More words.", 20) == ["```a``` and words. ", "More words."]


def test_there_must_be_room() -> None:
    with pytest.raises(ValueError, match="limit"):
        split_text("x", 0)


@pytest.mark.parametrize("text", ["```\n" * 60_000, "a " * 120_000, "é" * 240_000, "\u200d" * 240_000, "🇩" * 240_000])
def test_a_long_text_takes_no_long_time(text: str) -> None:
    assert "".join(split_text(text, 4096, units="utf16")) == text


@pytest.mark.parametrize("unit", ["!", "!'", "\n ", " ", "\n", "```\n"])
def test_forty_thousand_exclamation_marks_took_thirteen_seconds(unit: str) -> None:
    # At most so many looks at each character, by all patterns together.
    counters = [Steps(pattern) for pattern in (*module._BREAKS, module._FENCE)]
    for counter in counters:
        counter.spans(unit * 2_000)
    assert sum(counter.count for counter in counters) < 25 * len(unit) * 2_000
