"""Every regular expression of the package takes a time that grows with its text, and not with its square.

Steps are counted, not seconds: three times the text may take three times the steps, and a little more.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.linear.attacks import attacks
from tests.linear.patterns import Found, find_hidden, patterns
from tests.linear.steps import Steps, TooManyStepsError

ALL = patterns()
SIZE = 90
MOST_PER_CHARACTER = 150
"""How often a character may be looked at, at any size: a bound of a repetition must not be a thousand."""


def worst(pattern: re.Pattern[Any], *, anchored: bool) -> str | None:
    """The attack that takes more than a linear number of steps, if there is one."""
    steps = Steps(pattern)
    for small, large in attacks(steps, SIZE, anchored=anchored):
        few, many = count(steps, small, anchored), count(steps, large, anchored)
        if many > 4 * few + 100 or many > MOST_PER_CHARACTER * len(large):
            return f"{few} steps for {len(small)} characters, {many} for {len(large)}: {large[:80]!r}..."
    return None


def count(steps: Steps, text: str, anchored: bool) -> int:
    """The steps that a text takes, or a few more than it may take."""
    steps.restart(budget=MOST_PER_CHARACTER * len(text) + 1)
    with suppress(TooManyStepsError):
        if anchored:
            steps.fullmatch(text)
        else:
            steps.spans(text)
    return steps.count


@pytest.mark.parametrize("found", ALL, ids=str)
def test_a_pattern_takes_linear_time(found: Found) -> None:
    told = worst(found.pattern, anchored=found.anchored)
    assert told is None, f"{found}: {told}"


# What was there once, and others of the kind.
BAD: list[tuple[str, bool]] = [
    (r"\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*){1,3}", False),
    (r" - at `\$\.?(.*)`$", False),
    (r" - at `(?:key` in `)?\$\.?(.*)`$", False),
    (r"[.!?…]+[\"'”’)\]]*\s+", False),
    (r"\b(what|which).*\b(did|have|do) (i|you)\b.*\b(say|said|tell|told)", False),
    (r"[\d(][\d\s.+\-*/()]*[\d)]", False),
    (r"\s+$", False),
    (r"(a+)+b", True),
    (r"(\w*)*-", True),
    (r"\w+\d+x", True),
    (r"(?:a|a)*b", True),
    (r"a{1,4000}b", False),
]


@pytest.mark.parametrize(("pattern", "anchored"), BAD, ids=[one[0] for one in BAD])
def test_a_pattern_that_does_not_is_found(pattern: str, anchored: bool) -> None:
    assert worst(re.compile(pattern), anchored=anchored) is not None


def test_every_pattern_can_be_seen() -> None:
    assert not find_hidden()
    assert len(ALL) > 40
    assert any(found.place == "channels/responses/schema" for found in ALL)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import re\n\ndef f(x):\n    return re.search('a+$', x)\n", "re.search"),
        ("import re\n\ndef f(x):\n    return re.compile('a+$')\n", "re.compile"),
        ("import re\nx = re.sub('a+$', '', 'b')\n", "re.sub"),
        ("from re import search\n", "imports from re"),
    ],
)
def test_one_that_can_not_be_seen_is_found(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "module.py").write_text(text)
    assert any(told in one for one in find_hidden(tmp_path))


ALPHABET = st.sampled_from("aZ0_-. :/@=\"'`~,;!?&(\n\tx$[]é\x00") | st.sampled_from(
    ["eyJaaaaaaaaaa", "password", "bearer ", "://", "```\n", "data:a/b;base64,", "sk-", "CancelledError\n", "12345:"]
)


@examples(40)
@given(st.lists(ALPHABET, max_size=30).map("".join))
def test_the_counter_finds_what_the_engine_finds(text: str) -> None:
    for found in ALL:
        subject: Any = text.encode("latin-1") if isinstance(found.pattern.pattern, bytes) else text
        assert Steps(found.pattern).spans(text) == [match.span() for match in found.pattern.finditer(subject)], found
        assert Steps(found.pattern).fullmatch(text) == (found.pattern.fullmatch(subject) is not None), found
