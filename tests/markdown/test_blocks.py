"""Markdown as blocks: what becomes of each node, and what is left to the text."""

from typing import Any

import pytest
from hypothesis import given

from frontdesk.markdown import Entities, pack, parse, render, to_blocks
from frontdesk.markdown.nodes import Heading
from tests.examples import examples
from tests.markdown.samples import ANY_TEXTS


def one(text: str) -> Any:
    blocks = to_blocks(parse(text))
    assert blocks is not None
    (block,) = blocks
    return block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("words", {"type": "paragraph", "text": "words"}),
        ("**bold** *it* ~~no~~", ["bold", "italic", "strikethrough"]),
        ("`x<y`", {"type": "paragraph", "text": {"type": "code", "text": "x<y"}}),
        ("## Title", {"type": "heading", "size": 2, "text": "Title"}),
        ("```py\nx = 1\n```", {"type": "pre", "text": "x = 1", "language": "py"}),
        ("a\n\n---", ["paragraph", "divider"]),
        ("> quoted", {"type": "blockquote", "blocks": [{"type": "paragraph", "text": "quoted"}]}),
        ("$5 and <b>x</b>", {"type": "paragraph", "text": "$5 and <b>x</b>"}),
    ],
)
def test_a_node_is_a_block_of_its_kind(text: str, expected: Any) -> None:
    blocks = to_blocks(parse(text))
    if isinstance(expected, dict):
        assert blocks == [expected]
    else:
        assert blocks is not None
        shown = blocks[0]["text"] if len(blocks) == 1 else blocks
        assert [part["type"] for part in shown if isinstance(part, dict)] == expected


def test_lists_have_numbers_and_checkboxes() -> None:
    words = {"type": "paragraph", "text": "a"}
    assert one("3. a\n4. a")["items"] == [{"blocks": [words], "value": n, "type": "1"} for n in (3, 4)]
    assert one("- [x] a\n- [ ] a")["items"] == [
        {"blocks": [words], "has_checkbox": True, "is_checked": True},
        {"blocks": [words], "has_checkbox": True},
    ]


def test_a_table_is_a_table() -> None:
    header, row = one("| a | b |\n| - | -: |\n| 1 | |")["cells"]
    assert [(cell["text"], cell["align"], cell.get("is_header")) for cell in header] == [
        ("a", "left", True),
        ("b", "right", True),
    ]
    assert [(cell["text"], cell["align"]) for cell in row] == [("1", "left"), ("", "right")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[here](https://a.example)", {"type": "url", "text": "here", "url": "https://a.example"}),
        ("![a cat](https://a.example/c.png)", {"type": "url", "text": "a cat", "url": "https://a.example/c.png"}),
        ("[call](tel:123)", ["call", " (tel:123)"]),
    ],
)
def test_a_link_leads_to_the_web_or_is_written_out(text: str, expected: Any) -> None:
    assert one(text)["text"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "\n\n".join(["word"] * 501),
        "> " * 20 + "deep",
        "|" + " a |" * 21 + "\n|" + " - |" * 21 + "\n",
        "-\n- second",
    ],
)
def test_what_the_platform_would_not_take_has_no_blocks(text: str) -> None:
    assert to_blocks(parse(text)) is None


@examples(60)
@given(ANY_TEXTS)
def test_packed_documents_have_all_blocks_in_their_order(text: str) -> None:
    document, dialect = parse(text), Entities()
    packed = pack(document, dialect, 200, unit="utf16")
    assert [block for part in packed for block in part.blocks] == list(document.blocks)
    for part in packed:
        fits = len(render(part, dialect).text.encode("utf-16-le", "replace")) // 2 <= 200
        assert fits or all(isinstance(block, Heading) for block in part.blocks[:-1])


def test_a_heading_is_packed_with_what_it_is_about() -> None:
    first, second = pack(parse(f"{'a' * 150}\n\n# Title\n\n{'b' * 80}"), Entities(), 200, unit="utf16")
    assert (len(first.blocks), len(second.blocks)) == (1, 2)
