"""The page itself, and the files that it loads: no inline script, no other site, and a policy that says so."""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from frontdesk.channels.web.modules import join_modules

STATIC: Final = Path(__file__).parent / "static"
_KINDS: Final[Mapping[str, bytes]] = {
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".json": b"application/json",
    ".svg": b"image/svg+xml",
}
_DIGITS = 16
LANGUAGES: Final = ("en", "de")
"""The languages of the page, as the catalogues in `static/` have them."""
EMBED: Final = "embed.js"
"""The script that other sites load."""
_CATALOGUE: Final = "catalogue.js"
_MARKDOWN: Final = "vendor/marked/marked.esm.js"
_FIRST_READ: Final = "api/me?open=main"

POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types lit-html"
)
_EVERYWHERE: Final = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
PAGE_HEADERS: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY),
    (b"cache-control", b"no-store"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    *_EVERYWHERE,
)
THEME_HEADERS: Final = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    # A picture of the operator's can be an SVG: opened by itself, it runs nothing.
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox"),
    (b"cross-origin-resource-policy", b"same-origin"),
    *_EVERYWHERE,
)
"""The headers of the files of a theme."""
SCRIPT_HEADERS: Final = (
    (b"content-type", _KINDS[".js"]),
    (b"cache-control", b"public, max-age=300"),
    # Pages of other sites load it, and it holds nothing of anybody's.
    (b"cross-origin-resource-policy", b"cross-origin"),
    *_EVERYWHERE,
)
"""The headers of the script that other sites load."""
DATA_HEADERS: Final = ((b"cache-control", b"no-store"), *_EVERYWHERE)
"""The headers of every answer with data of a visitor."""


class Asset(NamedTuple):
    """A file of the page, as it is sent."""

    body: bytes
    zipped: bytes
    kind: bytes

    def headers(self, *, zipped: bool) -> list[tuple[bytes, bytes]]:
        """Return the headers with which it is sent: it never changes under its path."""
        body = self.zipped if zipped else self.body
        return [
            (b"content-type", self.kind),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"public, max-age=31536000, immutable"),
            (b"vary", b"accept-encoding"),
            (b"cross-origin-resource-policy", b"same-origin"),
            *([(b"content-encoding", b"gzip")] if zipped else []),
            *_EVERYWHERE,
        ]


class Assets(NamedTuple):
    """All files of the page by their names, and a hash of all of them that is part of their path."""

    files: Mapping[str, Asset]
    version: str


@cache
def assets() -> Assets:
    """Read the files of the page, once in a process."""
    paths = (path for path in STATIC.rglob("*") if path.suffix in _KINDS)
    known = {path.relative_to(STATIC).as_posix(): path.read_bytes() for path in paths}
    served = {name: body for name, body in known.items() if not name.endswith((".js", ".json"))}
    served |= {EMBED: known[EMBED], **_scripts(known)}
    whole = hashlib.sha256()
    for name, body in sorted(served.items()):
        whole.update(f"{name}\n{len(body)}\n".encode() + body)
    files = {
        name: Asset(body, gzip.compress(body, 9, mtime=0), _KINDS[Path(name).suffix]) for name, body in served.items()
    }
    return Assets(files, whole.hexdigest()[:_DIGITS])


def script_name(language: str) -> str:
    """Return the name of the page's script in a language."""
    return f"chat.{language}.js"


def _scripts(known: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the script of the page in each language, in one piece with all that it imports at once."""
    modules = {name: body.decode() for name, body in known.items() if name.endswith(".js")}
    scripts: dict[str, bytes] = {}
    for language in LANGUAGES:
        catalogue = known[f"{language}.json"].decode()
        joined = join_modules({**modules, _CATALOGUE: f"export const catalogue = {catalogue};"}, "chat.js")
        scripts[script_name(language)] = joined.text.encode()
        scripts |= {name: known[name] for name in joined.later}
    return scripts


def shell(title: str, base: str, theme: str, language: str) -> bytes:
    """Return the page without any data; `base` is the path of the channel, as a browser has to ask for it.

    `theme` is the name of the style sheet behind the page's own, and `language` one of `LANGUAGES`.
    """
    files, path = f"{base}/static/{assets().version}", escape(base)
    # What the script reads first is asked for beside it: each round trip costs a phone a tenth of a second.
    ahead = (
        f'<link rel="preload" as="fetch" crossorigin href="{path}/{_FIRST_READ}">'
        f'<link rel="modulepreload" href="{escape(files)}/{_MARKDOWN}">'
    )
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1,interactive-widget=resizes-content">'
        '<meta name="color-scheme" content="light dark">'
        f'<title>{escape(title)}</title><link rel="icon" href="{escape(files)}/icon.svg">'
        f'<link rel="stylesheet" href="{escape(files)}/chat.css">'
        f'<link rel="stylesheet" href="{path}/theme/{theme}">'
        f'<script type="module" src="{escape(files)}/{script_name(language)}"></script>{ahead}</head>'
        f'<body data-base="{path}" data-files="{escape(files)}"><div id="app"></div>'
        "<noscript>This page needs JavaScript.</noscript></body></html>"
    ).encode()
