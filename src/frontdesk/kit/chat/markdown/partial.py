"""Closes what a growing text has left open, so that it can be shown while it grows. Pure, in linear time.

A fence that is open needs nothing, for the parser closes it. Styles and code are closed, a link without its end is
shown as its text, and marks with nothing behind them yet are left out.
"""

import re

_FENCE = re.compile(r"^[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+(`{3,}+|~{3,}+)([^\n]*+)", re.MULTILINE)
# Where styles of the line before it can't go on.
_BLOCK = re.compile(r"^[ \t>]*+(?:[-*+] |\d{1,9}[.)] |#{1,6} |\|)", re.MULTILINE)
# A line that can still become something else: a rule, an item, the line under a heading or under a table's header.
_OPEN_LINE = re.compile(r"(?:[-=]++|[*+]|#{1,6}|`{1,2}|~{1,2}|\|[-|: ]*+)")
_TOKEN = re.compile(r"\\[^\n]?|`++|\*++|_++|~++|!?\[|\]\(?")
_TICKS = re.compile(r"`++")
_BRACKET = re.compile(r"[()]")
_DEEPEST = 12


def close_open(text: str) -> str:
    """Return a text of which nothing is left open."""
    fence = _open_fence(text)
    above, newline, line = text.rpartition("\n")
    if fence is not None:
        # Backticks alone in the last line of a block of code are the beginning of its end.
        return above if newline and line.strip() and not line.strip().strip(fence) else text
    if _OPEN_LINE.fullmatch(line.strip(" \t>")):
        text = above
    text = text.rstrip()
    start = _last_block(text)
    return text[:start] + _close_inline(text[start:])


def _open_fence(text: str) -> str | None:
    """Return the character of the fence that is open at the end."""
    opened: str | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            # Backticks around words in a line are no fence.
            opened = None if fence[1].startswith("`") and "`" in fence[2] else fence[1]
        elif fence[1].startswith(opened) and not fence[2].strip():
            opened = None
    return opened and opened[0]


def _last_block(text: str) -> int:
    start = text.rfind("\n\n") + 1
    for block in _BLOCK.finditer(text, start):
        start = block.end()
    # Styles end with the cell of a table.
    return max(start, text.rfind("|", start) + 1) if text[start - 1 : start] == "|" else start


def _close_inline(text: str) -> str:
    # A mark at the end has nothing to mark yet, or is a part of what ends a style.
    scan = _Scan(text.removesuffix("\\").rstrip("*_~").rstrip())
    scan.run()
    return scan.closed()


class _Scan:
    """Finds styles, code and links without an end in the last block of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = len(text)
        self._styles: list[tuple[str, int]] = []
        self._links: list[re.Match[str]] = []
        self._code: re.Match[str] | None = None
        self._behind_code = _code_ends(text)

    def run(self) -> None:
        """Look at each mark once, up to the first that is without an end."""
        place: int | None = 0
        while place is not None and (token := _TOKEN.search(self._text, place)):
            place = self._read(token)

    def _read(self, token: re.Match[str]) -> int | None:
        """Take note of a mark; return where to go on."""
        mark = token[0]
        if mark[0] == "`":
            if token.start() not in self._behind_code:
                self._code = token
            return self._behind_code.get(token.start())
        if mark[0] in "*_~":
            self._read_style(token)
        elif mark.endswith("["):
            self._links.append(token)
        elif mark[0] == "]" and self._links:
            return self._read_link(token)
        return token.end()

    def _read_link(self, token: re.Match[str]) -> int | None:
        behind = token.end()
        if token[0] == "](":
            behind = _behind_target(self._text, token.end())
        elif behind == len(self._text) and _is_label(self._text[self._links[-1].end() : token.start()]):
            behind = None
        if behind is None:
            self._end = token.start()
        else:
            self._links.pop()
        return behind

    def _read_style(self, token: re.Match[str]) -> None:
        mark, count = token[0][0], len(token[0])
        before, behind = _before(self._text, token), self._text[token.end() : token.end() + 1]
        closes = before.strip() and not (mark == "_" and behind.isalnum())
        opens = behind.strip() and not (mark == "_" and before.isalnum())
        while closes and count and (index := self._opener(mark)) is not None:
            opened = self._styles[index][1]
            del self._styles[index:]
            if opened > count:
                self._styles.append((mark, opened - count))
            count -= min(opened, count)
        if opens and count and len(self._styles) < _DEEPEST:
            self._styles.append((mark, count))

    def _opener(self, mark: str) -> int | None:
        return next((index for index in reversed(range(len(self._styles))) if self._styles[index][0] == mark), None)

    def closed(self) -> str:
        """Return the text with an end to everything."""
        text = self._text[: self._end]
        if self._code is not None:
            inside = text[self._code.end() :].rstrip("`")
            text = text[: self._code.end()] + inside + self._code[0] if inside.strip() else text[: self._code.start()]
        if self._links:
            link = self._links[-1]
            if not _before(text, link).isalnum():
                text = text[: link.start()] + text[link.end() :]
        # A single tilde is no style.
        ends = [mark * count for mark, count in reversed(self._styles) if mark != "~" or count > 1]
        return text.rstrip() + "".join(ends)


def _code_ends(text: str) -> dict[int, int]:
    """Find where the code ends that begins with some backticks: behind the next that are as many."""
    ends: dict[int, int] = {}
    last: dict[int, int] = {}
    for ticks in _TICKS.finditer(text):
        size = len(ticks[0])
        if size in last:
            ends[last[size]] = ticks.end()
        last[size] = ticks.start()
    return ends


def _is_label(text: str) -> bool:
    """Tell whether a URL is likely to follow; numbers and tasks are in brackets by themselves."""
    return len(text) > 1 and not text.isdigit()


def _behind_target(text: str, place: int) -> int | None:
    """Return the place behind the parenthesis that ends a link."""
    depth = 1
    for bracket in _BRACKET.finditer(text, place):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return bracket.end()
    return None


def _before(text: str, token: re.Match[str]) -> str:
    return text[max(0, token.start() - 1) : token.start()]
