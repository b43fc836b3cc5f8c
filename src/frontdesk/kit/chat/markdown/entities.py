"""Text with entities apart from it, as Telegram takes it: nothing to escape, and nothing that can fail to parse."""

from frontdesk.kit.chat.markdown.dialect import Dialect
from frontdesk.kit.chat.markdown.layout import Kind, Style, Styles

_NAMES: dict[Kind, str] = {
    "bold": "bold",
    "italic": "italic",
    "strike": "strikethrough",
    "code": "code",
    "link": "text_link",
    "pre": "pre",
    "quote": "blockquote",
}


class Entities(Dialect):
    """Text and entities. Code takes no other style within a line, and a quote is not in a quote."""

    entities = _NAMES
    link_schemes = ("http://", "https://")
    heading = (Style("bold"),)
    quote_spans = True
    table_width = 40

    def nest(self, styles: Styles) -> Styles:
        """Leave code alone, or leave it out in a link, which says more."""
        kinds = {style.kind for style in styles}
        if "code" not in kinds:
            return styles
        if "link" in kinds:
            return tuple(style for style in styles if style.kind != "code")
        return tuple(style for style in styles if style.kind == "code")
