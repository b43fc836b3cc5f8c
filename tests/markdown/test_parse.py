"""What an agent writes becomes the tree that it means, and no word is dropped."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import helpers

from frontdesk.markdown import Plain, parse, render
from frontdesk.markdown.nodes import (
    Block,
    Break,
    Cell,
    Code,
    CodeBlock,
    Document,
    Emphasis,
    Heading,
    Image,
    Inline,
    Item,
    Link,
    List,
    Paragraph,
    Quote,
    Rule,
    Strike,
    Strong,
    Table,
    Text,
)

A, B, C = Text("a"), Text("b"), Text("c")


def p(*children: Inline) -> Paragraph:
    return Paragraph(children)


def item(*children: Inline) -> Item:
    return Item((p(*children),))


URL = "https://a.b/c"

INLINES: list[tuple[str, tuple[Inline, ...]]] = [
    ("a", (A,)),
    ("**a**", (Strong((A,)),)),
    ("__a__", (Strong((A,)),)),
    ("*a*", (Emphasis((A,)),)),
    ("_a_", (Emphasis((A,)),)),
    ("***a***", (Emphasis((Strong((A,)),)),)),
    ("**a *b***", (Strong((Text("a "), Emphasis((B,)))),)),
    ("~~a~~", (Strike((A,)),)),
    ("~a~", (Text("~a~"),)),
    ("`a`", (Code("a"),)),
    ("`` a`b ``", (Code("a`b"),)),
    ("`**a**`", (Code("**a**"),)),
    ("a\nb", (A, Break(), B)),
    ("a  \nb", (A, Break(hard=True), B)),
    ("a\\\nb", (A, Break(hard=True), B)),
    ("\\*a\\*", (Text("*a*"),)),
    ("snake_case_name", (Text("snake_case_name"),)),
    ("2 * 3 * 4", (Text("2 * 3 * 4"),)),
    ("**a", (Text("**a"),)),
    ("** a**", (Text("** a**"),)),
    ("&lt;&amp;&copy;", (Text("<&©"),)),
    ("<b>a</b>", (Text("<b>a</b>"),)),
    ("a <!-- b -->", (Text("a <!-- b -->"),)),
    (f"[a]({URL})", (Link((A,), URL),)),
    (f'[a]({URL} "title")', (Link((A,), URL),)),
    (f"[**a** b]({URL})", (Link((Strong((A,)), Text(" b")), URL),)),
    ("[a](b)", (Link((A,), "b"),)),
    ("[a]", (Text("[a]"),)),
    ("[a](javascript:b)", (Text("[a](javascript:b)"),)),
    (f"![a]({URL}) b", (Image("a", URL), Text(" b"))),
    (f"[![a]({URL})](b)", (Link((Image("a", URL),), "b"),)),
    (f"<{URL}>", (Link((Text(URL),), URL),)),
    ("<a@b.cd>", (Link((Text("a@b.cd"),), "mailto:a@b.cd"),)),
    (URL, (Link((Text(URL),), URL),)),
    (f"({URL}).", (Text("("), Link((Text(URL),), URL), Text(")."))),
    (f"{URL}_(d)", (Link((Text(f"{URL}_(d)"),), f"{URL}_(d)"),)),
    (f"**{URL}**", (Strong((Link((Text(URL),), URL),)),)),
    (f"{URL}。字", (Link((Text(URL),), URL), Text("。字"))),
    ("http:// a", (Text("http:// a"),)),
    ("`" + URL + "`", (Code(URL),)),
    ("a\x00\ud800b", (Text("a\ufffd\ufffdb"),)),
    ("a\r\nb", (A, Break(), B)),
]

BLOCKS: list[tuple[str, tuple[Block, ...]]] = [
    ("", ()),
    ("  \n\n", ()),
    ("a\n\nb", (p(A), p(B))),
    ("# a", (Heading(1, (A,)),)),
    ("###### a ##", (Heading(6, (A,)),)),
    ("a\n===", (Heading(1, (A,)),)),
    ("#a", (p(Text("#a")),)),
    ("---", (Rule(),)),
    ("```py\na\n\n b\n```", (CodeBlock("a\n\n b", "py"),)),
    ("~~~\n```\n~~~", (CodeBlock("```"),)),
    ("```\na", (CodeBlock("a"),)),
    ("    a", (CodeBlock("a"),)),
    ("> a\n> b\n\nc", (Quote((p(A, Break(), B),)), p(C))),
    ("> a\n> > b", (Quote((p(A), Quote((p(B),)))),)),
    ("- a\n- b", (List((item(A), item(B))),)),
    ("- a\n\n- b", (List((item(A), item(B)), tight=False),)),
    ("- a\n  - b\n- c", (List((Item((p(A), List((item(B),)))), item(C))),)),
    ("3. a\n4. b", (List((item(A), item(B)), start=3),)),
    ("- [ ] a\n- [x] b", (List((Item((p(A),), checked=False), Item((p(B),), checked=True))),)),
    ("- a\n\n  b", (List((Item((p(A), p(B))),), tight=False),)),
    ("- ```\n  a\n  ```", (List((Item((CodeBlock("a"),)),)),)),
    ("-", (List((Item(()),)),)),
    (f"![a]({URL})", (Image("a", URL),)),
    ("|a|b|\n|-|-:|\n|c|", (Table((None, "right"), (Cell((A,)), Cell((B,))), ((Cell((C,)), Cell(())),)),)),
    ("|a|\n|:-:|", (Table(("center",), (Cell((A,)),), ()),)),
    ("<div>\n\na", (p(Text("<div>")), p(A))),
    (f"[a]: {URL}\n\n[a]", (p(Link((A,), URL)),)),
    (f"[b][1]\n\n[1]: {URL}", (p(Link((B,), URL)),)),
]


@pytest.mark.parametrize(("text", "children"), INLINES, ids=[text for text, _ in INLINES])
def test_what_is_within_a_line(text: str, children: tuple[Inline, ...]) -> None:
    # A word before it, so that it is no block.
    document = parse(f"a {text}")
    (paragraph,) = document.blocks
    assert isinstance(paragraph, Paragraph)
    first, *rest = children
    joined = (Text(f"a {first.text}"), *rest) if isinstance(first, Text) else (Text("a "), *children)
    assert paragraph.children == joined


@pytest.mark.parametrize(("text", "blocks"), BLOCKS, ids=[text for text, _ in BLOCKS])
def test_blocks(text: str, blocks: tuple[Block, ...]) -> None:
    assert parse(text) == Document(blocks)


def show(text: str) -> str:
    return render(parse(text), Plain()).text


def test_a_definition_that_nothing_refers_to_is_text() -> None:
    assert show(f"[1]: {URL}\n\na") == f"[1]: {URL}\n\na"
    assert show(f'[a]: {URL} "b"\n[a]: {URL}/2\n\n[a]') == f"[a]: {URL}/2\n\na ({URL})"


def test_cells_without_a_column_are_kept() -> None:
    assert show("|a|b|\n|-|-|\n|1|2|3|`4`|") == "a | b\n--+----------\n1 | 2 | 3 | 4"


@pytest.mark.parametrize("mark", ["> ", "- ", "1. "])
def test_what_is_nested_too_deeply_is_text(mark: str) -> None:
    assert show(mark * 500 + "a").endswith("a")
    assert show(mark * 500 + "a").count(mark.strip()) >= 16


def test_styles_that_are_nested_too_deeply_are_left_out() -> None:
    assert show("*a **b " * 100 + "c" + "***" * 100).split()[:3] == ["a", "b", "a"]
    assert show("[" * 500 + "a" + "](b)" * 500).count("a") == 1
    assert show("![" * 500 + "a" + "](b)" * 500).count("a") == 1


BRACKETS = ["[", "]", "![", "](", "(", ")", "a", "*", "`", "<a:b>", "\n", "\\", "[a]: b\n\n", "](b)", "][a]", "[a](b)"]


def test_a_definition_does_not_multiply_a_text() -> None:
    url = "https://a.b/" + "c" * 2_000
    text = f"[a]: {url}\n\n" + "[a] " * 5_000
    assert len(show(text)) < 10 * len(text)
    assert show(f"[a](https://a.b/{'c' * 2_048}) d").endswith(") d")


def test_a_table_with_very_many_columns_is_text() -> None:
    text = "|a" * 100 + "|\n" + "|-" * 100 + "|"
    assert isinstance(parse(text).blocks[0], Paragraph)


@given(st.lists(st.sampled_from(BRACKETS), max_size=120).map("".join), st.sampled_from([0, 30]))
def test_links_are_found_as_the_parser_itself_finds_them(text: str, depth: int) -> None:
    from frontdesk.markdown.rules import make_parser

    ours, own = make_parser(), make_parser()
    own.helpers = helpers  # pyright: ignore[reportAttributeAccessIssue]
    text = "[" * depth + text
    assert [token.as_dict() for token in ours.parse(text)] == [token.as_dict() for token in own.parse(text)]


def test_the_parser_is_imported_with_the_first_markup() -> None:
    program = "\n".join(
        [
            "import sys",
            "from frontdesk.markdown import parse",
            "print('markdown_it' in sys.modules)",
            "parse('*a*')",
            "print('markdown_it' in sys.modules)",
        ]
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]


@given(st.text(alphabet="ab7é中 ,.;:!?'\"%()/_*\u0301\u00a0", max_size=12))
def test_a_line_of_words_is_the_same_with_and_without_the_parser(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["frontdesk.markdown.parse"], "_PLAIN", re.compile(r"(?!)"))
        parsed = parse(text)
    assert parse(text) == parsed
