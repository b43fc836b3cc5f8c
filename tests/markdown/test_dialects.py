"""Each dialect shows what its platform can, and escapes what it would take for markup."""

import msgspec
import pytest

from frontdesk.markdown import Dialect, Entities, Entity, Mrkdwn, Plain, Style, parse, render, split

ANSWER = """# Result

Some **bold _both_** and `a < b`, a [link](https://a.b/?c=1&d=2), a [file](e/f.txt).
Next line, ~~gone~~.

- one
  - two
- [x] done
- ```py
  x = 1
  ```

3. three
4. four

> quoted *words
> go on*
>
> > deeper

| Name | Quantity |
|:-----|---------:|
| pear |        3 |
| fig  |       14 |

---

![a chart](https://a.b/c.png)
"""

PLAIN = """Result

Some bold both and a < b, a link (https://a.b/?c=1&d=2), a file (e/f.txt).
Next line, gone.

• one
  • two
• ☑ done
•
x = 1

3. three
4. four

> quoted words
> go on
>
> > deeper

Name | Quantity
-----+---------
pear |        3
fig  |       14

———

a chart (https://a.b/c.png)"""

MRKDWN = """*Result*

Some *bold _both_* and `a &lt; b`, a <https://a.b/?c=1&amp;d=2|link>, a file (e/f.txt).
Next line, ~gone~.

• one
  • two
• ☑ done
•
```
x = 1
```

3. three
4. four

> quoted _words_
> _go on_
>
> > deeper

```
Name | Quantity
-----+---------
pear |        3
fig  |       14
```

———

<https://a.b/c.png|a chart>"""


def test_plain_text_reads_well() -> None:
    assert render(parse(ANSWER), Plain()).text == PLAIN


def test_mrkdwn() -> None:
    assert render(parse(ANSWER), Mrkdwn()).text == MRKDWN


def test_entities() -> None:
    rendered = render(parse(ANSWER), Entities())
    covered = [(entity.type, rendered.text[entity.offset :][: entity.length]) for entity in rendered.entities]
    assert covered == [
        ("bold", "Result"),
        ("bold", "bold both"),
        ("italic", "both"),
        ("code", "a < b"),
        ("text_link", "link"),
        ("strikethrough", "gone"),
        ("pre", "x = 1"),
        ("blockquote", "quoted words\ngo on\n\n> deeper"),
        ("italic", "words\ngo on"),
        ("pre", "Name | Quantity\n-----+---------\npear |        3\nfig  |       14"),
        ("text_link", "a chart"),
    ]
    assert [entity.language for entity in rendered.entities if entity.type == "pre"] == ["py", None]
    assert [entity.url for entity in rendered.entities if entity.url] == ["https://a.b/?c=1&d=2", "https://a.b/c.png"]


def test_an_entity_is_sent_without_what_it_does_not_have() -> None:
    assert msgspec.json.encode(Entity("bold", 0, 1)) == b'{"type":"bold","offset":0,"length":1}'


def test_offsets_are_counted_in_utf16() -> None:
    rendered = render(parse("👍 **👩\u200d👧 a** b"), Entities())
    assert rendered.entities == (Entity("bold", 3, 7),)


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("**a `b` c**", [("bold", 0, 2), ("code", 2, 1), ("bold", 3, 2)]),
        ("[`a` b](https://c.d)", [("text_link", 0, 3)]),
        ("**[a](https://c.d)**", [("bold", 0, 1), ("text_link", 0, 1)]),
        ("***a***", [("italic", 0, 1), ("bold", 0, 1)]),
        ("> > a", [("blockquote", 0, 3)]),
        ("> `a`", [("blockquote", 0, 1), ("code", 0, 1)]),
        ("# **a**", [("bold", 0, 1)]),
        ("[a](ftp://b)", []),
    ],
)
def test_entities_are_nested_as_telegram_allows(text: str, entities: list[tuple[str, int, int]]) -> None:
    rendered = render(parse(text), Entities())
    assert [(entity.type, entity.offset, entity.length) for entity in rendered.entities] == entities


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
        ("<!here> <@U1>", "&lt;!here&gt; &lt;@U1&gt;"),
        ("`<a>`", "`&lt;a&gt;`"),
        ("a**b**c", "a\u200b*b*\u200bc"),
        ("**a**.", "*a*."),
        ("\\*a\\*", "*\u200ba*\u200b"),
        ("snake_case 2 * 3", "snake_case 2 * 3"),
        ("**a\nb**", "*a*\n*b*"),
        ("[**a** b](https://c.d)", "<https://c.d|a b>"),
        ("**[a](https://c.d)**", "*<https://c.d|a>*"),
        ("[a](https://c.d/e|f)", "<https://c.d/e%7Cf|a>"),
        ("[a](mailto:b@c.d)", "<mailto:b@c.d|a>"),
        ("`` a`b ``", "`a\u02cbb`"),
        ("~~~\n```\n~~~", "```\n``\u200b`\n```"),
        ("\\> a", "\u200b&gt; a"),
        ("**a `b`**", "*a `b`*"),
        ("> ```\n> a\n> ```\n> b", "```\na\n```\n>\n> b"),
    ],
)
def test_what_slack_would_take_for_markup_is_escaped(text: str, shown: str) -> None:
    assert render(parse(text), Mrkdwn()).text.removeprefix("> ") == shown


WIDE = "|A header that is long|Another header that is a little longer|C|\n|-|-|-|\n|**a**|[b](https://d.e)||\n|c|d|e|\n"


def test_a_wide_table_is_shown_as_records() -> None:
    assert render(parse(WIDE), Mrkdwn()).text == (
        "*A header that is long:* *a*\n*Another header that is a little longer:* <https://d.e|b>\n*C:* \n\n"
        "*A header that is long:* c\n*Another header that is a little longer:* d\n*C:* e"
    )


def test_a_table_with_a_very_long_header_is_shown_as_rows() -> None:
    text = f"|{'a' * 50}|{'b' * 50}|\n|-|-|\n|c|d|\n"
    assert render(parse(text), Plain()).text == f"{'a' * 50} | {'b' * 50}\nc | d"


def test_columns_are_as_wide_as_they_look() -> None:
    text = "|a|b|\n|-|:-:|\n|漢字|x|\n|e\u0301|yyy|\n"
    assert render(parse(text), Plain()).text == "a    |  b\n-----+----\n漢字 |  x\ne\u0301    | yyy"


class Markdown(Dialect):
    """Markdown itself, as some platforms take it: marks, escapes outside code, quotes and lists of its own."""

    link_schemes = ("https://",)
    heading = (Style("bold"),)
    bullet = "-"

    def marks(self, style: Style, before: str, behind: str) -> tuple[str, str]:
        if style.kind == "link":
            return "[", f"]({style.value})"
        if style.kind == "pre":
            return f"```{style.value}\n", "\n```"
        mark = {"bold": "**", "italic": "*", "strike": "~~", "code": "`"}.get(style.kind, "")
        return mark, mark

    def escape(self, text: str, code: bool) -> str:
        return text if code else "".join(f"\\{char}" if char in "\\*_~`|>#-[]" else char for char in text)


def test_a_platform_of_ones_own_is_a_few_lines() -> None:
    text = "- **a_b** `c_d`\n- [e](https://f.g)\n\n> h * i\n\n```py\nx = '_'\n```"
    shown = "- **a\\_b** `c_d`\n- [e](https://f.g)\n\n> h \\* i\n\n```py\nx = '_'\n```"
    assert render(parse(text), Markdown()).text == shown


def test_escapes_and_marks_count() -> None:
    parts = split(parse("**" + "_ " * 30 + "a** ```b```"), Markdown(), 20)
    assert all(len(part.text) <= 20 for part in parts)
    assert all(part.text.startswith("**\\_") for part in parts[:-1])
