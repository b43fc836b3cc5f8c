"""A text is cut at the best place, and what was open goes on in the next part."""

import pytest

from frontdesk.markdown import Entities, Entity, Mrkdwn, Plain, Unit, parse, split


def plain(text: str, limit: int, unit: Unit = "characters") -> list[str]:
    return [part.text for part in split(parse(text), Plain(), limit, unit=unit)]


def mrkdwn(text: str, limit: int) -> list[str]:
    return [part.text for part in split(parse(text), Mrkdwn(), limit)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("one two\n\nthree four five", ["one two", "three four five"]),
        ("# Head\n\nmany words here", ["Head\n\nmany words", "here"]),
        ("- one\n- two\n- three x", ["• one\n• two", "• three x"]),
        ("one two three\nfour five six", ["one two three", "four five six"]),
        ("One is so. Two is so. Three", ["One is so.", "Two is so. Three"]),
        ("one two three four five", ["one two three", "four five"]),
        ("aaaaaaaaaaaaaaaaaaaa", ["aaaaaaaaaaaaaaaa", "aaaa"]),
        ("Hi.\n\nand then many words", ["Hi.\n\nand then", "many words"]),
        ("一二三四五六七八九。一二三四五六七八九十", ["一二三四五六七八九。", "一二三四五六七八九十"]),
        ("> one two three\n> four five six", ["> one two three", "> four five six"]),
        ("> one two three four five six", ["> one two three", "> four five six"]),
        ("> one two\n>\n> three four five", ["> one two", "> three four", "> five"]),
        ("one\u00a0two three\u00a0four", ["one\u00a0two", "three\u00a0four"]),
    ],
)
def test_the_best_place_is_taken(text: str, parts: list[str]) -> None:
    assert plain(text, 16) == parts


@pytest.mark.parametrize(
    ("unit", "parts"),
    [("characters", ["👍👍👍👍", "👍"]), ("utf16", ["👍👍", "👍👍", "👍"]), ("bytes", ["👍"] * 5)],
)
def test_each_unit_is_counted(unit: Unit, parts: list[str]) -> None:
    assert plain("👍" * 5, 4, unit) == parts


@pytest.mark.parametrize(
    "seen", ["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "\u1100\u1161\u11a8", "🏴\U000e0067\U000e0062\U000e007f"]
)
def test_a_seen_character_is_not_torn(seen: str) -> None:
    for before in range(12):
        parts = plain("x" * before + seen + "yyy", 12)
        assert any(seen in part for part in parts), parts


def test_a_style_is_closed_and_opened_again() -> None:
    assert mrkdwn("**one two three** four", 12) == ["*one two*", "*three* four"]
    parts = split(parse("a **one two three** b"), Entities(), 10, unit="utf16")
    assert [part.text for part in parts] == ["a one two", "three b"]
    assert [part.entities for part in parts] == [(Entity("bold", 2, 7),), (Entity("bold", 0, 5),)]


def test_a_link_goes_on_with_its_url() -> None:
    parts = split(parse("[one two three](https://a.b)"), Entities(), 10)
    assert [(part.text, part.entities[0].url) for part in parts] == [
        ("one two", "https://a.b"),
        ("three", "https://a.b"),
    ]


def test_code_that_fits_stays_in_one_part() -> None:
    text = "some words before it\n\n```py\nx = 1\n\ny = 2\n```\n\nand words behind it"
    assert mrkdwn(text, 30) == ["some words before it", "```\nx = 1\n\ny = 2\n```", "and words behind it"]


def test_code_that_is_too_long_is_closed_and_opened_again() -> None:
    text = "```py\n" + "\n".join(f"line {number}" for number in range(4)) + "\n```"
    assert mrkdwn(text, 24) == ["```\nline 0\nline 1\n```", "```\nline 2\nline 3\n```"]
    parts = split(parse(text), Entities(), 13)
    assert [(part.text, part.entities[0].language) for part in parts] == [
        ("line 0\nline 1", "py"),
        ("line 2\nline 3", "py"),
    ]


def test_the_indentation_of_code_is_kept_at_a_cut() -> None:
    assert mrkdwn("```\ndef f():\n    return 1\n```", 24) == ["```\ndef f():\n```", "```\n    return 1\n```"]


def test_rows_stay_whole_and_the_header_comes_again() -> None:
    text = "|a|b|\n|-|-|\n" + "".join(f"|{number}|x|\n" for number in range(4))
    assert plain(text, 24) == ["a | b\n--+--\n0 | x\n1 | x", "a | b\n--+--\n2 | x\n3 | x"]
    assert mrkdwn(text + "|4|x|\n|5|x|\n", 42)[1] == "```\na | b\n--+--\n3 | x\n4 | x\n5 | x\n```"


def test_a_header_that_takes_most_of_a_part_does_not_come_again() -> None:
    text = "|aaaa|bbbb|\n|-|-|\n" + "|c|d|\n" * 3
    assert plain(text, 26) == ["aaaa | bbbb\n-----+-----", "c    | d\nc    | d\nc    | d"]


def test_without_room_for_styles_there_are_none() -> None:
    assert mrkdwn("[one two](https://example.com/a/long/address)", 12) == ["one two"]


def test_there_must_be_room() -> None:
    with pytest.raises(ValueError, match="limit"):
        plain("x", 0)


@pytest.mark.parametrize("text", ["a " * 20_000, "**a** " * 3_000, "\u0301" * 20_000, "🇩" * 20_000, "- a\n" * 3_000])
def test_a_long_text_takes_no_long_time(text: str) -> None:
    assert all(len(part.text) <= 4_096 for part in split(parse(text), Mrkdwn(), 4_096))


@pytest.mark.parametrize("text", ["> ```\n> wbz\n> ```\n", "> ```\n> wbz\n> ```\nwcz"])
def test_a_fence_in_a_quote_before_the_first_cut(text: str) -> None:
    # The cut before the fence was looked up at index -1: an IndexError, or a part that was too long.
    parts = split(parse(text), Mrkdwn(), 11, unit="characters")
    assert "wbz" in "".join(part.text for part in parts)
    assert all(len(part.text) <= 11 for part in parts)
