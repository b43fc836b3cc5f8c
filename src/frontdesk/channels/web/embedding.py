"""Embedding the page in other sites: the origins that may, and the script that makes a bubble there."""

from collections.abc import Sequence

import msgspec

from frontdesk.channels.web.pages import EMBED, PAGE_HEADERS, POLICY, assets
from frontdesk.channels.web.theme import WebTheme

_NOBODY = b"frame-ancestors 'none'"


def frame_headers(origins: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of the page in a frame: the same policy, but for the pages that may hold the frame."""
    policy = POLICY.replace(_NOBODY, b"frame-ancestors " + " ".join(origins).encode())
    kept = [
        (name, value) for name, value in PAGE_HEADERS if name not in (b"content-security-policy", b"x-frame-options")
    ]
    return [(b"content-security-policy", policy), *kept]


def embed_script(label: str, theme: WebTheme) -> bytes:
    """Return the script that other sites load, with what it has to know of the page."""
    about = msgspec.json.encode(
        {"label": label, "accent": theme.accent, "onAccent": theme.on_accent, "radius": f"{theme.radius}px"}
    )
    return assets().files[EMBED].body.rstrip() + b"(" + about + b");\n"
