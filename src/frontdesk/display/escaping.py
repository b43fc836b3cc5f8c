"""Escapes invisible characters in texts that approvers read. Pure.

Only the displayed text is escaped. The digest of a call and the executed call use the original arguments.
"""

import re
from unicodedata import category

import msgspec

MAX_BLANKS = 32
"""The number of blanks in a row that are displayed as they are."""
MAX_LINE_BREAKS = 3
MAX_MARKS = 3
"""The number of combining marks in a row that are displayed: more of them cover the lines around."""
MAX_ANY_MARKS = 5
"""The same for marks of any script. Some scripts need more of them than Latin letters do."""
_MAX_CACHED = 4_096
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_BLANKS = " \u00a0\u202f\u3000"
"""Blanks of ordinary texts: in French before `?`, in Japanese between sentences."""
# Letters, marks and symbols that have no glyph: `Default_Ignorable_Code_Point` of Unicode without those of the
# categories above, and characters whose glyph is empty.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U0001d159\U000e0000-\U000e0fff]"
)
_EMOJI = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_EMOJI_SELECTOR = re.compile(f"((?<=[{_EMOJI}])\ufe0f)")
"""The selector of the colored form of an emoji, which stays. The joiner of two emoji is a format character."""
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_SURPLUS_MARKS = re.compile(f"(?<={_MARK * MAX_MARKS}){_MARK}")
_MARK_CATEGORIES = frozenset({"Me", "Mn"})
_IS_MARK, _IS_NO_MARK = "m", "-"
_SURPLUS_ANY_MARKS = re.compile(f"(?<={_IS_MARK * MAX_ANY_MARKS}){_IS_MARK}+")
_LONG_BLANK = re.compile(f"[\t{_BLANKS}]{{{MAX_BLANKS + 1},}}+")
_LONG_BREAK = re.compile(f"\n(?:[\t{_BLANKS}]*+\n){{{MAX_LINE_BREAKS},}}+")
_SAME = re.compile(r"(.)\1*+", re.DOTALL)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]")


class _Escapes(dict[int, str]):
    """The displayed form of characters, computed at first use. Bounded."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _MAX_CACHED:
            self.clear()
        character = chr(code)
        self[code] = shown = _escape(character) if _is_hidden(character) else character
        return shown


class _MarkKinds(dict[int, str]):
    """Cache of characters that are combining marks, computed at first use. Bounded."""

    def __missing__(self, code: int) -> str:
        if len(self) >= _MAX_CACHED:
            self.clear()
        self[code] = kind = _IS_MARK if category(chr(code)) in _MARK_CATEGORIES else _IS_NO_MARK
        return kind


class ArgumentField(msgspec.Struct, frozen=True, array_like=True):
    """An argument of a call as it is displayed."""

    name: str
    value: str
    is_block: bool = False
    """Whether the value is JSON of several lines."""


def escape_text(text: str) -> str:
    """Escape what can't be seen in a text, such as `\\u202e`. Line breaks and tabs stay.

    Runs of blanks and line breaks that would move the rest out of sight become their number, such as `\\u0020*400`.
    """
    if text.isascii() and text.isprintable() and "  " not in text:
        return text
    pieces = _EMOJI_SELECTOR.split(text.replace("\r\n", "\n"))
    # Every second piece is what the pattern has found.
    pieces[::2] = [piece.translate(_ESCAPES) for piece in pieces[::2]]
    text = _escape_marks(_SURPLUS_MARKS.sub(_escape_match, "".join(pieces)))
    text = _LONG_BREAK.sub(_count_match, text)
    return _LONG_BLANK.sub(_count_match, text)


def escape_line(text: str) -> str:
    """Escape invisible characters of a name, label or other single-line text."""
    return escape_text(text).replace("\n", "\\n").replace("\t", "\\t")


def display_arguments(text: str) -> str:
    """Return the displayed form of the arguments of a call, given as JSON.

    Right-to-left letters may reorder everything around them on display. Such arguments are displayed on separate lines.
    """
    return escape_text(_in_lines(text) if _RIGHT_TO_LEFT.search(text) else text)


def argument_fields(text: str) -> list[ArgumentField] | None:
    """Return the arguments of a call one by one, with numbers as written. None if they are not an object."""
    try:
        values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return [_field(name, bytes(value).decode()) for name, value in values.items()]
    except (ValueError, RecursionError):
        return None


def _field(name: str, value: str) -> ArgumentField:
    name = escape_line(name) if name.strip() else f'"{escape_line(name)}"'
    if value.startswith('"'):
        shown = escape_text(msgspec.json.decode(value, type=str))
        return ArgumentField(name, shown if shown.strip() else f'"{shown}"')
    if value.startswith(("{", "[")):
        return ArgumentField(name, escape_text(_in_lines(value)), is_block=True)
    return ArgumentField(name, value)


def _in_lines(text: str) -> str:
    try:
        return msgspec.json.format(text, indent=2)
    except (ValueError, RecursionError):
        return text


def _is_hidden(character: str) -> bool:
    if character in "\n\t" or character in _BLANKS:
        return False
    return category(character) in _HIDDEN_CATEGORIES or _INVISIBLE.match(character) is not None


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _escape_match(found: re.Match[str]) -> str:
    return _escape(found[0])


def _escape_marks(text: str) -> str:
    """Escape overlong runs of combining marks of any script."""
    if text.isascii():
        return text
    pieces, end = list[str](), 0
    for found in _SURPLUS_ANY_MARKS.finditer(text.translate(_MARK_KINDS)):
        pieces += (text[end : found.start()], *map(_escape, text[found.start() : found.end()]))
        end = found.end()
    return "".join((*pieces, text[end:]))


def _count_match(found: re.Match[str]) -> str:
    return _SAME.sub(_count_same, found[0])


def _count_same(same: re.Match[str]) -> str:
    shown = {"\n": "\\n", "\t": "\\t"}.get(same[1]) or _escape(same[1])
    return shown if len(same[0]) == 1 else f"{shown}*{len(same[0])}"


_ESCAPES = _Escapes()
_MARK_KINDS = _MarkKinds()
