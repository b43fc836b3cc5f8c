"""Whatever an agent writes, every platform gets all of it, in order, within its limits."""

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk.markdown import Dialect, Entities, Entity, Plain, Rendered, Unit, parse, render, split
from frontdesk.markdown.layout import length
from tests.markdown.samples import ANY_TEXTS, DIALECTS, TEXTS, list_shown_words, words

UNITS: st.SearchStrategy[Unit] = st.sampled_from(["characters", "utf16", "bytes"])
NESTED = {"bold", "italic", "strikethrough"}
by_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: type(dialect).__name__)


def is_within(few: list[str], many: list[str]) -> bool:
    """Tell whether one list is the other with something left out."""
    rest = iter(many)
    return all(word in rest for word in few)


def without_marks(text: str) -> str:
    """Leave out what may stand within a word that had to be cut."""
    return re.sub(r"<https?://[^|<>]*\||[*_~`>\s\u200b]", "", text)


@by_dialect
@given(text=TEXTS)
def test_every_word_is_carried_in_order(dialect: Dialect, text: str) -> None:
    rendered = words(render(parse(text), dialect).text)
    assert is_within(list_shown_words(text), rendered)
    assert set(rendered) <= set(words(text))


@by_dialect
@given(text=TEXTS, limit=st.integers(40, 120), unit=UNITS)
def test_every_word_is_carried_in_parts(dialect: Dialect, text: str, limit: int, unit: Unit) -> None:
    carried = words("".join(without_marks(part.text) for part in split(parse(text), dialect, limit, unit=unit)))
    assert is_within(list_shown_words(text), carried)
    assert set(carried) <= set(words(text))


@by_dialect
@given(text=ANY_TEXTS, limit=st.integers(8, 60), unit=UNITS)
@example(text="> > a\n&amp;", limit=8, unit="characters")
def test_no_part_is_longer_than_the_limit(dialect: Dialect, text: str, limit: int, unit: Unit) -> None:
    for part in split(parse(text), dialect, limit, unit=unit):
        assert length(part.text, unit) <= limit
        assert part.text.strip()


@by_dialect
@given(text=ANY_TEXTS)
def test_the_smallest_limit_ends(dialect: Dialect, text: str) -> None:
    for part in split(parse(text), dialect, 1):
        assert part.text


@by_dialect
@given(text=ANY_TEXTS)
def test_what_fits_is_one_part(dialect: Dialect, text: str) -> None:
    whole = render(parse(text), dialect)
    parts = split(parse(text), dialect, max(1, len(whole.text) * 3))
    # Code that is only a space, and a quote of nothing, say nothing.
    says_something = all(shown.text.strip() for shown in (whole, render(parse(text), Plain())))
    assert ["".join(part.text.split()) for part in parts] == ["".join(whole.text.split())] * says_something


@given(ANY_TEXTS, st.integers(8, 60))
def test_the_parts_joined_are_the_whole_but_for_spaces(text: str, limit: int) -> None:
    # Without headers and marks of quotes, which come again, a part adds nothing.
    text = text.replace("|", "/").replace(">", "/")
    parts = split(parse(text), Plain(), limit)
    assert "".join("".join(part.text.split()) for part in parts) == "".join(render(parse(text), Plain()).text.split())


def well_nested(rendered: Rendered) -> bool:
    size = length(rendered.text, "utf16")
    for entity in rendered.entities:
        assert entity.offset >= 0
        assert entity.length > 0
        assert entity.offset + entity.length <= size
        text = rendered.text.encode("utf-16-le")[entity.offset * 2 : (entity.offset + entity.length) * 2]
        text.decode("utf-16-le")
    return all(fit(first, second) for first, second in itertools.combinations(rendered.entities, 2))


def fit(first: Entity, second: Entity) -> bool:
    first_end, second_end = first.offset + first.length, second.offset + second.length
    if first_end <= second.offset or second_end <= first.offset:
        return True
    inside = (first.offset <= second.offset and second_end <= first_end) or (
        second.offset <= first.offset and first_end <= second_end
    )
    kinds = {first.type, second.type}
    if kinds & {"code", "pre"}:
        return inside and "blockquote" in kinds
    return inside and len(kinds) == 2 and bool(kinds & {*NESTED, "blockquote"})


@given(ANY_TEXTS, st.integers(8, 60))
@example("**a** `b` **c [`d`](https://e.f) g**", 20)
@example("> **a\n> b**\n\n> > c", 8)
def test_entities_are_nested_as_they_may_be(text: str, limit: int) -> None:
    assert well_nested(render(parse(text), Entities()))
    assert all(well_nested(part) for part in split(parse(text), Entities(), limit, unit="utf16"))


@given(TEXTS, st.integers(40, 80))
@example("wbzwczwdz](https://a.b)](https://a.b)]wez", 40)
def test_entities_of_the_parts_cover_the_same_words(text: str, limit: int) -> None:
    def styled(rendered: Rendered, kind: str) -> str:
        data = rendered.text.encode("utf-16-le")
        spans = [data[e.offset * 2 : (e.offset + e.length) * 2] for e in rendered.entities if e.type == kind]
        return "".join("".join(words(span.decode("utf-16-le"))) for span in spans)

    parts = split(parse(text), Entities(), limit, unit="utf16")
    for kind in ("bold", "text_link", "code"):
        assert styled(render(parse(text), Entities()), kind) == "".join(styled(part, kind) for part in parts)


@given(TEXTS, st.integers(40, 80))
def test_a_fence_is_closed_in_every_part(text: str, limit: int) -> None:
    for part in split(parse(text), DIALECTS[1], limit):
        assert part.text.count("```") % 2 == 0


@given(ANY_TEXTS)
def test_nothing_of_a_text_can_ping_or_open_a_tag_in_slack(text: str) -> None:
    rendered = render(parse(text), DIALECTS[1]).text
    without = re.sub(r"<(https?://|mailto:|tel:)[^<>|]*\|[^<>]*>", "", rendered)
    assert "<" not in without
    assert all(match in ("&amp;", "&lt;", "&gt;") for match in re.findall(r"&.{0,3};?", without)) or "&" not in without


@given(ANY_TEXTS, st.integers(0, 200))
def test_any_beginning_can_be_shown(text: str, place: int) -> None:
    beginning = text[:place]
    carried = words(render(parse(beginning, partial=True), Plain()).text)
    assert set(carried) <= set(words(beginning))
    # Only what is in the last block may still be left out.
    assert is_within(list_shown_words(beginning.rpartition("\n\n")[0]), carried)
