"""A text that still grows is shown without halves of marks."""

import pytest

from frontdesk.markdown import Entities, Plain, parse, render
from frontdesk.markdown.parse import close_open

CLOSED: list[tuple[str, str]] = [
    ("", ""),
    ("a b", "a b"),
    ("a **b", "a **b**"),
    ("a **b c", "a **b c**"),
    ("a **b*", "a **b**"),
    ("a **b**", "a **b**"),
    ("a **", "a"),
    ("a *b **c", "a *b **c***"),
    ("***a", "***a***"),
    ("**a** *b", "**a** *b*"),
    ("a __b", "a __b__"),
    ("~~a", "~~a~~"),
    ("~a", "~a"),
    ("`a", "`a`"),
    ("`a **b", "`a **b`"),
    ("``a`b`", "``a`b``"),
    ("a `", "a"),
    ("`a` `b", "`a` `b`"),
    ("a [b", "a b"),
    ("a [b](https://c", "a b"),
    ("a [b](https://c)", "a [b](https://c)"),
    ("a [b](c(d", "a b"),
    ("a [b](c(d))", "a [b](c(d))"),
    ("![a](https://b", "a"),
    ("**a [b *c", "**a b *c***"),
    ("[a](b) [c", "[a](b) c"),
    ("a[0", "a[0"),
    ("a [1]", "a [1]"),
    ("a [b c]", "a b c"),
    ("a [b c] d", "a [b c] d"),
    ("snake_case and a_b", "snake_case and a_b"),
    ("1 * 2 * 3", "1 * 2 * 3"),
    ("\\*a", "\\*a"),
    ("a\\", "a"),
    ("```py\nx = 1\n``", "```py\nx = 1"),
    ("```py\nx **", "```py\nx **"),
    ("```py\nx\n```\n**a", "```py\nx\n```\n**a**"),
    ("```py\nx\n```", "```py\nx\n```"),
    ("a\n\n```", "a\n"),
    ("```a``` **b", "```a``` **b**"),
    ("a\n-", "a"),
    ("a\n\n-", "a"),
    ("a\n==", "a"),
    ("a\n\n#", "a"),
    ("a\n``", "a"),
    ("- a **b\n- c", "- a **b\n- c"),
    ("- a\n- **b", "- a\n- **b**"),
    ("# **a", "# **a**"),
    ("a **b\n\nc", "a **b\n\nc"),
    ("> **a", "> **a**"),
    ("| a | **b", "| a | **b**"),
    ("| a | b |\n|--", "| a | b |"),
]


@pytest.mark.parametrize(("text", "closed"), CLOSED, ids=[text for text, _ in CLOSED])
def test_what_is_open_is_closed(text: str, closed: str) -> None:
    assert close_open(text) == closed


ANSWER = """## Plan

First **bold words**, then *some ~~old~~ more*, `code` and [a link](https://example.com/a_b).

- one **item**
- two

```py
x = 1
```

> a *quote*

| a | b |
|---|---|
| 1 | **2** |
"""


def test_no_beginning_of_an_answer_shows_half_a_mark() -> None:
    for place in range(len(ANSWER)):
        shown = render(parse(ANSWER[:place], partial=True), Plain()).text
        assert not any(mark in shown for mark in ("**", "*", "~~", "`", "[", "](")), (place, shown)


def test_a_style_is_there_from_its_first_word_on() -> None:
    shown = render(parse("a **bold wor", partial=True), Entities())
    assert (shown.text, [entity.type for entity in shown.entities]) == ("a bold wor", ["bold"])


def test_a_whole_text_is_left_as_it_is() -> None:
    assert parse(ANSWER, partial=True) == parse(ANSWER)
