"""`WebTheme`: a few variables of the style sheet, with checks for readable contrast."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from frontdesk.channels.web.files import PICTURES, detect_kind
from frontdesk.errors.sizes import format_size

_COLOR = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_FAMILY = re.compile(r"[A-Za-z0-9][A-Za-z0-9 -]{0,40}")
_GENERIC: Final = frozenset({"system-ui", "sans-serif", "serif", "monospace", "ui-rounded", "ui-serif", "ui-monospace"})
_MAX_FAMILIES = 6
_MAX_RADIUS = 32
MAX_LOGO_BYTES = 262_144
"""The largest number of bytes of a logo."""
_MIN_CONTRAST = 4.5
"""The contrast that WCAG 2.2 AA asks of text."""
# The grounds of the page, as its style sheet has them.
_LIGHT: Final = ("#ffffff", "#f4f5f8")
_DARK: Final = ("#14161b", "#1e2128")
_DIGITS = 16
_STEPS = 20

Rgb = tuple[int, int, int]


class Logo(NamedTuple):
    data: bytes
    media_type: str

    @property
    def name(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:_DIGITS]


@dataclass(frozen=True, kw_only=True)
class WebTheme:
    """The appearance of the page. `findings()` returns one line for each unreadable value."""

    accent: str = "#2f5bd7"
    """The colour of buttons, links and the visitor's own messages, as `#rrggbb`; it must be readable on white."""
    accent_dark: str | None = None
    """The same where the page is dark; without one, the accent is made lighter until it can be read."""
    radius: int = 14
    """The pixels by which corners are rounded."""
    font: str = "system-ui, Segoe UI, Roboto, sans-serif"
    """The families of the font, the first that the visitor's machine has counts; none is loaded."""
    logo: str | Path | bytes | None = None
    """A picture beside the title: a file, or its bytes; PNG, JPEG, GIF, WebP or SVG."""

    def findings(self) -> list[str]:
        wrong = _color_findings("accent", self.accent, _LIGHT)
        if self.accent_dark is not None:
            wrong += _color_findings("accent_dark", self.accent_dark, _DARK)
        if not 0 <= self.radius <= _MAX_RADIUS:
            wrong.append(f"theme: radius must be from 0 to {_MAX_RADIUS}")
        families = [family.strip() for family in self.font.split(",")]
        if len(families) > _MAX_FAMILIES or not all(map(_FAMILY.fullmatch, families)):
            wrong.append(f"theme: font must be up to {_MAX_FAMILIES} names of fonts with commas between them")
        logo = self.read_logo()
        return [*wrong, f"theme: {logo}"] if isinstance(logo, str) else wrong

    def read_logo(self) -> Logo | str | None:
        if self.logo is None:
            return None
        try:
            data = self.logo if isinstance(self.logo, bytes) else Path(self.logo).read_bytes()
        except OSError as error:
            return f"the logo {str(self.logo)!r} can't be read: {error.strerror}"
        kind = detect_kind("", data)
        if kind not in PICTURES and b"<svg" in data[:1_000]:
            kind = "image/svg+xml"
        if kind not in (*PICTURES, "image/svg+xml"):
            return "the logo must be a PNG, JPEG, GIF, WebP or SVG"
        return (
            Logo(data, kind)
            if len(data) <= MAX_LOGO_BYTES
            else f"the logo must have {format_size(MAX_LOGO_BYTES)} at most"
        )

    @property
    def on_accent(self) -> str:
        """Return the text color on the accent color."""
        return _text_on(self.accent)

    @property
    def dark(self) -> str:
        """Return the accent color of the dark page."""
        return self.accent_dark or _lighten(self.accent)

    def style_sheet(self) -> bytes:
        """Return the variables as a style sheet. Only valid for a theme without findings."""
        families = [family.strip() for family in self.font.split(",")]
        font = ", ".join(family if family in _GENERIC else f'"{family}"' for family in families)
        dark = f"--accent: {self.dark}; --on-accent: {_text_on(self.dark)};"
        return (
            f":root {{ --accent: {self.accent}; --on-accent: {self.on_accent}; --round: {self.radius}px; "
            f"--font: {font}; }}\n"
            f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
            f':root[data-theme="dark"] {{ {dark} }}\n'
        ).encode()


def contrast(one: str, other: str) -> float:
    """Return the WCAG contrast ratio of two colors, from 1 to 21."""
    lighter, darker = sorted((_luminance(_rgb(one)), _luminance(_rgb(other))), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _color_findings(name: str, color: str, grounds: tuple[str, ...]) -> list[str]:
    if _COLOR.fullmatch(color) is None:
        return [f"theme: {name} must be a colour such as '#2f5bd7', not {color[:40]!r}"]
    least = min(contrast(color, ground) for ground in grounds)
    if least >= _MIN_CONTRAST:
        return []
    direction = "darker" if grounds == _LIGHT else "lighter"
    return [
        f"theme: {name} {color} has a contrast of {least:.1f} to the page, and text needs {_MIN_CONTRAST}: {direction}"
    ]


def _text_on(color: str) -> str:
    # Of black and white, one can always be read.
    return max("#ffffff", "#000000", key=lambda text: contrast(color, text))


def _lighten(color: str) -> str:
    red, green, blue = _rgb(color)
    for step in range(_STEPS + 1):
        share = step / _STEPS
        mixed = "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in (red, green, blue))
        if min(contrast(mixed, ground) for ground in _DARK) >= _MIN_CONTRAST:
            return mixed
    return "#ffffff"


def _rgb(color: str) -> Rgb:
    digits = color[1:] if len(color) > 4 else "".join(digit * 2 for digit in color[1:])
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def _luminance(color: Rgb) -> float:
    parts = [part / 255 for part in color]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
