"""Rich messages: their blocks, limits and visible text."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from frontdesk_testing.telegram.errors import ApiError, bad_request
from frontdesk_testing.telegram.methods.call import Call
from frontdesk_testing.telegram.records import Json

MAX_CHARACTERS, MAX_BLOCKS, MAX_DEPTH, MAX_COLUMNS = 32_768, 500, 16, 20
_FORMS = ("blocks", "html", "markdown")
_COVERED = {"paragraph", "heading", "pre", "footer", "divider", "list", "blockquote", "table", "details"}
_ONLY_IN_DRAFTS = "thinking"
_TEXTS = ("text", "summary", "caption", "credit", "expression", "alternative_text")


def rich_content(call: Call, *, draft: bool = False) -> Json:
    """Return the content of a rich message of a call, with its blocks as they are received."""
    given: Json = call.given["rich_message"]
    if len(given.keys() & set(_FORMS)) != 1:
        raise bad_request("exactly one of the fields blocks, html, and markdown must be used")
    if "blocks" not in given:
        raise ApiError(501, "Not Implemented: the fake reads no HTML and no Markdown of rich messages")
    blocks: list[Json] = given["blocks"]
    _check(blocks, draft)
    message: Json = {"blocks": [_receive(block) for block in blocks]}
    if given.get("is_rtl"):
        message["is_rtl"] = True
    return {"rich_message": message}


def _check(blocks: list[Json], draft: bool) -> None:
    every = list(_every(blocks, 1))
    for block, _ in every:
        kind = block["type"]
        if kind not in _COVERED and not (draft and kind == _ONLY_IN_DRAFTS):
            raise ApiError(501, f"Not Implemented: the fake does not show blocks of type {kind}")
        if kind == "table":
            _check_table(block["cells"])
    text = "\n".join(line for block in blocks for line in _lines(block))
    if not text.strip():
        raise bad_request("rich message must be non-empty")
    if len(text) > MAX_CHARACTERS:
        raise bad_request("rich message is too long")
    if len(every) > MAX_BLOCKS:
        raise bad_request("rich message has too many blocks")
    if max(depth for _, depth in every) > MAX_DEPTH or _text_depth(blocks) > MAX_DEPTH:
        raise bad_request("rich message is nested too deeply")


def _check_table(rows: list[list[Json]]) -> None:
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise bad_request("rows of a table must have the same number of cells")
    if len(rows[0]) > MAX_COLUMNS:
        raise bad_request("table has too many columns")
    for cell in (cell for row in rows for cell in row):
        if cell["align"] not in ("left", "center", "right") or cell["valign"] not in ("top", "middle", "bottom"):
            raise bad_request("wrong alignment of a table cell")


def _every(blocks: Sequence[Json], depth: int) -> Iterator[tuple[Json, int]]:
    """Yield the blocks at all depths."""
    for block in blocks:
        yield block, depth
        for item in block.get("items", ()):
            yield from _every(item["blocks"], depth + 1)
        yield from _every(block.get("blocks", ()), depth + 1)


def _receive(block: Json) -> Json:
    """Return a block as it is received: items of a list have a label."""
    received = dict(block)
    if "items" in block:
        received["items"] = [{"label": _label(item), **_with_blocks(item)} for item in block["items"]]
    return _with_blocks(received)


def _with_blocks(holder: Json) -> Json:
    if "blocks" not in holder:
        return holder
    return {**holder, "blocks": [_receive(block) for block in holder["blocks"]]}


def _label(item: Json) -> str:
    return f"{item['value']}." if "value" in item else "•"


def extract_text(content: Json) -> str:
    """Return the text of a rich message, a line for each paragraph, item and row. Empty for other contents."""
    blocks = content.get("rich_message", {}).get("blocks", ())
    return "\n".join(line for block in blocks for line in _lines(block))


def _lines(block: Json) -> Iterator[str]:
    for name in _TEXTS:
        if name in block:
            yield _join(block[name])
    for item in block.get("items", ()):
        first, *others = [line for inner in item["blocks"] for line in _lines(inner)] or [""]
        yield f"{_label(item)} {first}"
        yield from others
    for inner in block.get("blocks", ()):
        yield from _lines(inner)
    for row in block.get("cells", ()):
        yield " | ".join(_join(cell.get("text", "")) for cell in row)


def _join(text: Any) -> str:
    """Return a text without styles."""
    if isinstance(text, str):
        return text
    if isinstance(text, dict):
        styled = cast(Json, text)
        return "".join(_join(styled[name]) for name in _TEXTS if name in styled)
    return "".join(map(_join, cast(Sequence[Any], text)))


def _text_depth(value: Any) -> int:
    """Return the nesting depth of styled texts."""
    if isinstance(value, list | tuple):
        return max((_text_depth(part) for part in cast(Sequence[Any], value)), default=0)
    if not isinstance(value, dict):
        return 0
    holder = cast(Json, value)
    inner = max((_text_depth(holder[name]) for name in holder if isinstance(holder[name], dict | list)), default=0)
    return inner + (1 if isinstance(holder.get("text"), dict | list | str) else 0)
