"""The markup of a platform: a subclass of `Dialect` is all that a renderer needs."""

from collections.abc import Mapping

from frontdesk.kit.chat.markdown.layout import Kind, Style, Styles


class Dialect:
    """Shows no styles at all; a subclass changes what its platform can do."""

    entities: Mapping[Kind, str] = {}
    """The names of entities, for a platform that takes styles apart from the text."""
    link_schemes: tuple[str, ...] = ()
    """The beginnings of URLs that can be links; others are shown behind their text."""
    heading: Styles = ()
    """The styles of a heading."""
    quote_spans: bool = False
    """Whether a quote is a style; otherwise its lines begin with `>`."""
    styles_end_with_lines: bool = False
    """Whether a style has to be closed at the end of a line and opened again in the next."""
    bullet: str = "•"
    rule: str = "———"
    table_width: int = 60
    """The most columns of characters of a table that is shown as one."""

    def marks(self, style: Style, before: str, behind: str) -> tuple[str, str]:
        """Return what opens and closes a style between two characters, which are empty at the ends of the text."""
        return "", ""

    def escape(self, text: str, code: bool) -> str:
        """Escape a text, each character by itself, whatever is around it."""
        return text

    def disarm(self, text: str, kind: Kind | None) -> str:
        """Change a text, or code of a kind, that would be taken for markup and can't be escaped."""
        return text

    def nest(self, styles: Styles) -> Styles:
        """Return those of the styles of a text, outer ones first, that can be nested in each other."""
        return styles


class Plain(Dialect):
    """Plain text."""
