"""Marks are parsed as the server parses them, and entities are counted in UTF-16 units."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk_testing.telegram.errors import ApiError
from frontdesk_testing.telegram.markup.entities import check_entities, format_text
from frontdesk_testing.telegram.markup.html import parse_html
from frontdesk_testing.telegram.markup.markdown import parse_markdown, parse_markdown_v2
from frontdesk_testing.telegram.markup.text import FormattedText, ParseError, trim, units

Parsed = list[tuple[str, int, int]]


def brief(text: FormattedText) -> Parsed:
    return [(entity["type"], entity["offset"], entity["length"]) for entity in text.entities]


HTML: list[tuple[str, str, Parsed]] = [
    ("<b>a<i>b</i></b>", "ab", [("bold", 0, 2), ("italic", 1, 1)]),
    ("😀<u>x</u>", "😀x", [("underline", 2, 1)]),
    ("&lt;b&gt; &amp; &quot;&#65;&#x42; &copy;", '<b> & "AB &copy;', []),
    ('<a href="https://x.y/?a=1&amp;b=2">z</a>', "z", [("text_link", 0, 1)]),
    ("<a>z</a>", "z", []),
    ('<span class="tg-spoiler">s</span><tg-spoiler>t</tg-spoiler>', "st", [("spoiler", 0, 1), ("spoiler", 1, 1)]),
    ("<blockquote expandable>q</blockquote>", "q", [("expandable_blockquote", 0, 1)]),
    ('<pre><code class="language-py">x</code></pre>', "x", [("pre", 0, 1)]),
    ('<tg-emoji emoji-id="5">x</tg-emoji>', "x", [("custom_emoji", 0, 1)]),
    ("<b></b>a", "a", []),
    ("<b >a</>", "a", [("bold", 0, 1)]),
]


@pytest.mark.parametrize(("source", "text", "entities"), HTML)
def test_html(source: str, text: str, entities: Parsed) -> None:
    parsed = parse_html(source)
    assert (parsed.text, brief(parsed)) == (text, entities)


def test_links_and_languages_are_kept() -> None:
    assert parse_html('<a href="https://x.y/?a=1&amp;b=2">z</a>').entities[0]["url"] == "https://x.y/?a=1&b=2"
    assert parse_html('<pre><code class="language-py">x</code></pre>').entities[0]["language"] == "py"
    assert parse_markdown_v2("```py\nx\n```").entities[0]["language"] == "py"
    assert parse_markdown_v2(r"[a](b\)c)").entities[0]["url"] == "b)c"
    assert parse_markdown_v2("![x](tg://emoji?id=5)").entities[0]["custom_emoji_id"] == "5"


MARKDOWN_V2: list[tuple[str, str, Parsed]] = [
    ("*a _b_*", "a b", [("bold", 0, 3), ("italic", 2, 1)]),
    ("__u__ ~s~ ||p||", "u s p", [("underline", 0, 1), ("strikethrough", 2, 1), ("spoiler", 4, 1)]),
    (r"1\. \*x\*", "1. *x*", []),
    ("`a.b`", "a.b", [("code", 0, 3)]),
    ("```\na_b\n```", "a_b\n", [("pre", 0, 4)]),
    ("[t](https://x.y)", "t", [("text_link", 0, 1)]),
    (">a\n>b\nc", "a\nb\nc", [("blockquote", 0, 3)]),
    (">a||", "a", [("expandable_blockquote", 0, 1)]),
    (">||a||", "a", [("blockquote", 0, 1), ("spoiler", 0, 1)]),
    ("😀*x*", "😀x", [("bold", 2, 1)]),
]


@pytest.mark.parametrize(("source", "text", "entities"), MARKDOWN_V2)
def test_markdown_v2(source: str, text: str, entities: Parsed) -> None:
    parsed = parse_markdown_v2(source)
    assert (parsed.text, brief(parsed)) == (text, entities)


def test_the_older_markdown() -> None:
    parsed = parse_markdown("*a* _b_ `c` [d](e) ```\nf``` \\* a.b")
    assert parsed.text == "a b c d f * a.b"
    assert [kind for kind, _, _ in brief(parsed)] == ["bold", "italic", "code", "text_link", "pre"]
    assert parse_markdown("[a] b").entities == ()


REFUSED: list[tuple[Callable[[str], FormattedText], str, str]] = [
    (parse_html, "<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
    (parse_html, "ä<x>y</x>", 'Unsupported start tag "x" at byte offset 2'),
    (parse_html, "a < b", 'Unsupported start tag "" at byte offset 2'),
    (parse_html, "a</b>", "Unexpected end tag at byte offset 1"),
    (parse_html, "<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
    (parse_html, "<b", "Unclosed start tag at byte offset 0"),
    (parse_html, "<b>x</b", "Unclosed end tag at byte offset 4"),
    (parse_html, "<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
    (parse_markdown_v2, "1.", "Character '.' is reserved and must be escaped with the preceding '\\'"),
    (parse_markdown_v2, "a *b", "Can't find end of Bold entity at byte offset 2"),
    (parse_markdown_v2, "*a _b*", "Can't find end of Italic entity at byte offset 3"),
    (parse_markdown_v2, "`a", "Can't find end of Code entity at byte offset 0"),
    (parse_markdown_v2, "[a](b", "Can't find end of a URL at byte offset 3"),
    (parse_markdown_v2, "[a[b](c)](d)", "Can't find end of TextUrl entity at byte offset 0"),
    (parse_markdown_v2, ">*a\nb*", "Can't find end of Bold entity at byte offset 1"),
    (parse_markdown, "a *b", "Can't find end of the entity starting at byte offset 2"),
    (parse_markdown, "[a](b", "Can't find end of the entity starting at byte offset 0"),
]


@pytest.mark.parametrize(("parse", "source", "told"), REFUSED)
def test_what_cannot_be_parsed_is_named(parse: Callable[[str], FormattedText], source: str, told: str) -> None:
    with pytest.raises(ParseError, match=re.escape(told)):
        parse(source)


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


WRONG: list[tuple[str, list[dict[str, Any]], str]] = [
    ("ab", [entity("bold", 1, 2)], "ends after the end of the text at UTF-16 offset 2"),
    ("😀", [entity("bold", 1, 1)], "begins in a middle of a UTF-16 symbol"),
    ("😀", [entity("bold", 0, 1)], "ends in a middle of a UTF-16 symbol"),
    ("ab", [entity("bold", -1, 2)], "has a wrong length"),
    ("ab", [entity("bold", 0, 0)], "has a wrong length"),
    ("ab", [entity("loud", 0, 1)], "unsupported type"),
    ("ab", [entity("text_link", 0, 1)], 'Can\'t find field "url"'),
    ("abc", [entity("bold", 0, 2), entity("italic", 1, 2)], "overlap"),
    ("abc", [entity("code", 0, 3), entity("bold", 1, 1)], "can't be within code"),
    ("abc", [entity("bold", 0, 3), entity("pre", 1, 1)], "can't be within bold"),
    (
        "abc",
        [entity("blockquote", 0, 3), entity("bold", 0, 3), entity("blockquote", 1, 1)],
        "blockquote at UTF-16 offset 1 can't be within bold",
    ),
]


@pytest.mark.parametrize(("text", "entities", "told"), WRONG)
def test_entities_that_cannot_be_are_refused(text: str, entities: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(ApiError, match=re.escape(told)):
        format_text(text, None, entities)


def test_what_a_text_mentions_is_found() -> None:
    text = "/start@my_bot @ann_b #tag https://x.y/a?b a@b.cc x@y /a/b"
    parsed = format_text(text, None, None)
    kinds = [kind for kind, _, _ in brief(parsed)]
    assert kinds == ["bot_command", "mention", "hashtag", "url", "email"]


def test_nothing_is_found_in_code_or_in_a_link() -> None:
    assert brief(format_text("<code>@some_one</code>", "HTML", None)) == [("code", 0, 9)]
    assert brief(format_text('<a href="https://x.y">/start</a>', "html", None)) == [("text_link", 0, 6)]
    assert brief(format_text("<b>@some_one</b>", "HTML", None)) == [("bold", 0, 9), ("mention", 0, 9)]


def test_space_around_a_text_is_removed_with_the_entities_moved() -> None:
    parsed = format_text("  a b ", None, [entity("bold", 4, 2)])
    assert (parsed.text, brief(parsed)) == ("a b", [("bold", 2, 1)])
    covered = trim(FormattedText("  a", ({"type": "code", "offset": 0, "length": 3},)))
    assert (covered.text, brief(covered)) == ("  a", [("code", 0, 3)])


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_is_no_utf_8_is_refused(text: str) -> None:
    with pytest.raises(ApiError, match="strings must be encoded in UTF-8"):
        format_text(text, None, None)


def test_a_message_keeps_a_hundred_entities() -> None:
    parsed = format_text("<b>x</b> " * 101, "HTML", None)
    assert (len(parsed.text), len(parsed.entities)) == (201, 100)


def test_a_parse_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(ApiError, match="unsupported parse_mode"):
        format_text("a", "BBCode", None)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n<>&*_[]()`|.!\\>"), max_size=40)
ESCAPED = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")


@given(TEXT)
def test_escaped_html_is_the_text(text: str) -> None:
    assert parse_html(html.escape(text, quote=False)) == FormattedText(text)


@given(TEXT)
def test_escaped_markdown_is_the_text(text: str) -> None:
    assert parse_markdown_v2(ESCAPED.sub(r"\\\1", text)) == FormattedText(text)


MARKS = st.text(st.sampled_from("*_~|`[](>!\\\n ab😀<&;/=\"'pre"), max_size=30)


@given(MARKS, st.sampled_from(["HTML", "MarkdownV2", "Markdown"]))
def test_no_text_breaks_a_parser_and_entities_lie_within_the_text(source: str, mode: str) -> None:
    try:
        parsed = format_text(source, mode, None)
    except ApiError:
        return
    assert parsed.text == parsed.text.rstrip()
    for found in parsed.entities:
        assert 0 <= found["offset"] < found["offset"] + found["length"] <= units(parsed.text)
    explicit = [found for found in parsed.entities if found["type"] in ("bold", "italic", "spoiler", "underline")]
    check_entities(parsed.text, explicit)
