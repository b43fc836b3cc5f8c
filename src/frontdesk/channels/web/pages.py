"""The page and its assets: no inline scripts, no other origins, and a matching content security policy."""

import gzip
import hashlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from starlette.types import Scope

from frontdesk.asgi.messages import Headers, below
from frontdesk.auth.verifier import HttpVerifier
from frontdesk.channels.web.config import WebChatConfig
from frontdesk.channels.web.theme import Logo, WebTheme
from frontdesk.channels.web.verify import Visitors, VisitorVerifier
from frontdesk.errors import NotFoundError
from frontdesk.http.endpoint import HttpCall
from frontdesk.models.identity import ANONYMOUS, Caller, ChannelIdentity

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_IMPORT = re.compile(r'import\s*\{([^{}]*)\}\s*from\s*"(\.[^"]+)";')
_DECLARED = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_LISTED = re.compile(r"(?<=[;}])export\s*\{([^{}]*)\};?\s*\Z")
_LATER = re.compile(r'\bimport\("\./([^"]+)"\)')
_LEFT = re.compile(r"^(?:import|export)\b.*|\bimport\s*[{*\"'(].*", re.MULTILINE)
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*\n?", re.MULTILINE)
_NAMED = re.compile(r"([\w$]+)(?:\s+as\s+([\w$]+))?")


class _Module(NamedTuple):
    imports: dict[str, list[tuple[str, str]]]
    """The names that it imports of each other module: theirs, and its own."""
    exports: list[tuple[str, str]]
    """The names that it exports: its own, and that for others."""
    body: str


class Joined(NamedTuple):
    """The text of a joined module, and the paths of its dynamic imports."""

    text: str
    later: frozenset[str]


def join_modules(files: Mapping[str, str], first: str) -> Joined:
    """Join `first` and all its static imports into one module. `files` maps paths to texts.

    An `import("./...")` loads its module when it is called, by a path relative to the joined module.
    """
    read: dict[str, _Module] = {}
    _load(first, files, read, ())
    numbers = {name: number for number, name in enumerate(read)}
    text = "".join(_as_function(name, module, numbers) for name, module in read.items())
    later = frozenset(_LATER.findall(text))
    if missing := later - files.keys():
        raise ValueError(f"{', '.join(sorted(missing))} is imported dynamically and does not exist")
    return Joined(text, later)


def _load(name: str, files: Mapping[str, str], read: dict[str, _Module], users: tuple[str, ...]) -> None:
    """Read the imports of a module recursively, then the module itself."""
    if name in users:
        raise ValueError(f"{name} has a circular import through {users[-1]}")
    if name in read:
        return
    if name not in files:
        raise ValueError(
            f"{name} is imported by {users[-1]}, and does not exist" if users else f"{name} does not exist"
        )
    module = _parse(name, files[name])
    for other in module.imports:
        _load(other, files, read, (*users, name))
    for other, names in module.imports.items():
        if missing := {theirs for theirs, _ in names} - {known for _, known in read[other].exports}:
            raise ValueError(f"{name} imports {', '.join(sorted(missing))}, which {other} does not export")
    read[name] = module


def _parse(name: str, text: str) -> _Module:
    imports: dict[str, list[tuple[str, str]]] = {}
    text = _SOURCE_MAP.sub("", text)
    start = _first_statement(text, 0)
    while (found := _IMPORT.match(text, start)) is not None:
        imports[posixpath.normpath(posixpath.join(posixpath.dirname(name), found[2]))] = _pairs(name, found[1])
        # Comments stay where they are: some hold a licence.
        text = text[:start] + text[found.end() :]
        start = _first_statement(text, start)
    exports = [(found[1], found[1]) for found in _DECLARED.finditer(text)]
    if (listed := _LISTED.search(text)) is not None:
        exports += _pairs(name, listed[1])
    body = _LISTED.sub("", _DECLARED.sub("", text))
    if (left := _LEFT.search(_LATER.sub("", body))) is not None:
        raise ValueError(f"{name}: {left[0][:80]!r} is an import or export that can't be joined")
    return _Module(imports, exports, body)


def _first_statement(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return start if found is None else found.end()


def _pairs(name: str, names: str) -> list[tuple[str, str]]:
    """Return the names of an import or export list, each with its `as` name."""
    pairs: list[tuple[str, str]] = []
    for given in filter(None, (given.strip() for given in names.split(","))):
        found = _NAMED.fullmatch(given)
        if found is None:
            raise ValueError(f"{name}: {given!r} is not a valid name")
        pairs.append((found[1], found[2] or found[1]))
    return pairs


def _as_function(name: str, module: _Module, numbers: Mapping[str, int]) -> str:
    head = f"// {name}\nconst module{numbers[name]} = (() => {{\n"
    for other, names in module.imports.items():
        head += f"const {{ {', '.join(f'{theirs}: {own}' for theirs, own in names)} }} = module{numbers[other]};\n"
    returned = ", ".join(f"{known}: {own}" for own, known in module.exports)
    return f"{head}{module.body.strip()}\nreturn {{ {returned} }};\n}})();\n"


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
    body: bytes
    zipped: bytes
    kind: bytes

    def headers(self, *, zipped: bool) -> list[tuple[bytes, bytes]]:
        """Return the response headers. The file is immutable under its path."""
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
    """All files of the page by name, and a hash of them that is part of their path."""

    files: Mapping[str, Asset]
    version: str


@cache
def assets() -> Assets:
    """Read the files of the page, once per process."""
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
    return f"chat.{language}.js"


def _scripts(known: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the page script of each language, joined with its static imports."""
    modules = {name: body.decode() for name, body in known.items() if name.endswith(".js")}
    scripts: dict[str, bytes] = {}
    for language in LANGUAGES:
        catalogue = known[f"{language}.json"].decode()
        joined = join_modules({**modules, _CATALOGUE: f"export const catalogue = {catalogue};"}, "chat.js")
        scripts[script_name(language)] = joined.text.encode()
        scripts |= {name: known[name] for name in joined.later}
    return scripts


def shell(title: str, base: str, theme: str, language: str) -> bytes:
    """Return the page without data. `base` is the path of the channel as seen by browsers.

    `theme` is the name of the style sheet loaded after the page's own, and `language` one of `LANGUAGES`.
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


_NOBODY = b"frame-ancestors 'none'"


def frame_headers(origins: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of the framed page: the same policy, except for the allowed frame ancestors."""
    policy = POLICY.replace(_NOBODY, b"frame-ancestors " + " ".join(origins).encode())
    kept = [
        (name, value) for name, value in PAGE_HEADERS if name not in (b"content-security-policy", b"x-frame-options")
    ]
    return [(b"content-security-policy", policy), *kept]


def embed_script(label: str, theme: WebTheme) -> bytes:
    """Return the script that other sites load, with the settings of the page."""
    about = msgspec.json.encode(
        {"label": label, "accent": theme.accent, "onAccent": theme.on_accent, "radius": f"{theme.radius}px"}
    )
    return assets().files[EMBED].body.rstrip() + b"(" + about + b");\n"


class OpenVerifier(HttpVerifier):
    """Accepts every potential visitor, with or without a cookie."""

    def __init__(self, channel: str, visitors: VisitorVerifier) -> None:
        super().__init__(channel, None)
        self._visitors = visitors
        self._nobody = Caller(identity=ChannelIdentity(channel=channel, native_id=ANONYMOUS), anonymous=True)

    async def verify(self, scope: Scope, headers: Headers) -> Caller:
        self._visitors.require_mount(scope, headers)
        return self._nobody


class Site:
    def __init__(self, path: str, config: WebChatConfig, visitors: Visitors) -> None:
        self._path, self._config = path, config
        self._visitors = visitors
        logo, sheet = config.look.theme.read_logo(), config.look.theme.style_sheet()
        self._logo = logo if isinstance(logo, Logo) else None
        self._sheet = sheet
        self._sheet_name = f"{hashlib.sha256(sheet).hexdigest()[:_DIGITS]}.css"

    def logo_path(self, call: HttpCall) -> str | None:
        return None if self._logo is None else f"{below(call.scope, self._path).decode()}/theme/{self._logo.name}"

    async def theme(self, call: HttpCall) -> None:
        """Send the style sheet or the logo of the theme."""
        name: str = call.scope["path_params"]["file"]
        if name == self._sheet_name:
            return await _send_lasting(call, self._sheet, b"text/css; charset=utf-8")
        if self._logo is None or name != self._logo.name:
            raise NotFoundError("File not found. Load the page again.")
        await _send_lasting(call, self._logo.data, self._logo.media_type.encode())

    async def page(self, call: HttpCall) -> None:
        """Send the page and set the visitor cookie."""
        await self._send_page(call, PAGE_HEADERS, embedded=False)

    async def frame(self, call: HttpCall) -> None:
        self._require_embedding()
        await self._send_page(call, frame_headers(self._config.look.embed_origins), embedded=True)

    async def embed(self, call: HttpCall) -> None:
        self._require_embedding()
        body = embed_script(self._config.title, self._config.look.theme)
        headers = [*SCRIPT_HEADERS, (b"content-length", str(len(body)).encode())]
        await call.send({"type": "http.response.start", "status": 200, "headers": headers})
        await call.send({"type": "http.response.body", "body": body})

    def _require_embedding(self) -> None:
        if not self._config.look.embed_origins:
            raise NotFoundError("Embedding is disabled. Add the site to embed_origins.")

    async def _send_page(self, call: HttpCall, usual: Sequence[tuple[bytes, bytes]], *, embedded: bool) -> None:
        headers = list(usual)
        if await self._visitors.visitor(call.scope, call.headers) is None:
            cookie = await self._visitors.new_cookie(call.scope, call.headers, embedded=embedded)
            headers.append((b"set-cookie", cookie))
        body = shell(self._config.title, below(call.scope, self._path).decode(), self._sheet_name, _language(call))
        headers.append((b"content-length", str(len(body)).encode()))
        await call.send({"type": "http.response.start", "status": 200, "headers": headers})
        await call.send({"type": "http.response.body", "body": body})

    async def file(self, call: HttpCall) -> None:
        known, asked = assets(), call.scope["path_params"]
        file = known.files.get(asked["name"]) if asked["version"] == known.version else None
        if file is None:
            raise NotFoundError("File not found. Load the page again.")
        zipped = b"gzip" in call.headers.get(b"accept-encoding", b"")
        await call.send({"type": "http.response.start", "status": 200, "headers": file.headers(zipped=zipped)})
        await call.send({"type": "http.response.body", "body": file.zipped if zipped else file.body})


def _language(call: HttpCall) -> str:
    """Return the preferred supported language, by the order in `Accept-Language`."""
    named = call.headers.get(b"accept-language", b"").decode("latin-1").lower().split(",")
    tags = [tag.partition(";")[0].strip().partition("-")[0] for tag in named]
    return next((tag for tag in tags if tag in LANGUAGES), LANGUAGES[0])


async def _send_lasting(call: HttpCall, body: bytes, kind: bytes) -> None:
    """Send a file of the theme, which is immutable under its name."""
    headers = [*THEME_HEADERS, (b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await call.send({"type": "http.response.start", "status": 200, "headers": headers})
    await call.send({"type": "http.response.body", "body": body})
