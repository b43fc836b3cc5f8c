"""Slack's mrkdwn."""

import re

from frontdesk.kit.chat.markdown.dialect import Dialect
from frontdesk.kit.chat.markdown.layout import Kind, Style, Styles

_BREAK = "\u200b"
"""A space without width: a border of words where there is none, and harmless where there is one."""

_SIMPLE: dict[Kind, str] = {"bold": "*", "italic": "_", "strike": "~", "code": "`"}
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_FENCE = re.compile("``(?=`)")
# A mark between two words or two spaces is none; one that touches a word on one side is.
_LITERAL = re.compile(r"(?<=[^\W_])[*_~`](?![^\W_])|(?<![^\W_])[*_~`](?=\S)|(?<=\S)(?<![^\W_])[*_~`]")


class Mrkdwn(Dialect):
    """mrkdwn: `& < >` are escaped, and other marks, for which there is no escape, are kept from being marks."""

    link_schemes = ("http://", "https://", "mailto:", "tel:")
    heading = (Style("bold"),)
    styles_end_with_lines = True

    def marks(self, style: Style, before: str, behind: str) -> tuple[str, str]:
        """Return the marks; within a word they need a border of words."""
        if style.kind == "pre":
            return "```\n", "\n```"
        if style.kind == "link":
            url = style.value.replace("|", "%7C").replace("<", "%3C").replace(">", "%3E")
            return f"<{self.escape(url, code=False)}|", ">"
        mark = _SIMPLE.get(style.kind, "")
        left = _BREAK if mark and before.isalnum() else ""
        right = _BREAK if mark and behind.isalnum() else ""
        return left + mark, mark + right

    def escape(self, text: str, code: bool) -> str:
        """Escape the three characters that Slack reads everywhere, in code too."""
        return text.translate(_ESCAPES)

    def disarm(self, text: str, kind: Kind | None) -> str:
        """Keep marks in a text from being read as such, and the marks of code from ending it."""
        if kind == "pre":
            return _FENCE.sub(f"``{_BREAK}", text)
        if kind == "code":
            return text.replace("`", "\u02cb")
        text = _LITERAL.sub(lambda mark: mark[0] + _BREAK, text)
        return _BREAK + text if text.startswith(">") else text

    def nest(self, styles: Styles) -> Styles:
        """Leave out styles within a link or within code, which would be shown as marks."""
        for index, style in enumerate(styles):
            if style.kind in ("link", "code"):
                return styles[: index + 1]
        return styles
