"""Serves the page and its files, to visitors who have no cookie yet too."""

import hashlib
from collections.abc import Sequence

from starlette.types import Scope

from frontdesk.channels.web.config import WebChatConfig
from frontdesk.channels.web.embedding import embed_script, frame_headers
from frontdesk.channels.web.pages import LANGUAGES, PAGE_HEADERS, SCRIPT_HEADERS, THEME_HEADERS, assets, shell
from frontdesk.channels.web.theme import Logo
from frontdesk.channels.web.verify import Visitors, VisitorVerifier
from frontdesk.data.identity import ANONYMOUS, Caller, ChannelIdentity
from frontdesk.errors import NotFoundError
from frontdesk.kit.auth.verifier import HttpVerifier
from frontdesk.kit.http.asgi import Headers, below
from frontdesk.kit.http.endpoint import HttpCall

_DIGITS = 16


class OpenVerifier(HttpVerifier):
    """Lets in everybody who may be a visitor, with a cookie or without one."""

    def __init__(self, channel: str, visitors: VisitorVerifier) -> None:
        super().__init__(channel, None)
        self._visitors = visitors
        self._nobody = Caller(identity=ChannelIdentity(channel=channel, native_id=ANONYMOUS), anonymous=True)

    async def verify(self, scope: Scope, headers: Headers) -> Caller:
        self._visitors.need_place(scope, headers)
        return self._nobody


class Site:
    """The page, and the files that it loads."""

    def __init__(self, path: str, config: WebChatConfig, visitors: Visitors) -> None:
        self._path, self._config = path, config
        self._visitors = visitors
        logo, sheet = config.look.theme.read_logo(), config.look.theme.style_sheet()
        self._logo = logo if isinstance(logo, Logo) else None
        self._sheet = sheet
        self._sheet_name = f"{hashlib.sha256(sheet).hexdigest()[:_DIGITS]}.css"

    def logo_path(self, call: HttpCall) -> str | None:
        """Return the path of the logo, if there is one."""
        return None if self._logo is None else f"{below(call.scope, self._path).decode()}/theme/{self._logo.name}"

    async def theme(self, call: HttpCall) -> None:
        """Answer with the style sheet of the theme, or with the logo."""
        name: str = call.scope["path_params"]["file"]
        if name == self._sheet_name:
            return await _send_lasting(call, self._sheet, b"text/css; charset=utf-8")
        if self._logo is None or name != self._logo.name:
            raise NotFoundError("There is no such file; load the page again.")
        await _send_lasting(call, self._logo.data, self._logo.media_type.encode())

    async def page(self, call: HttpCall) -> None:
        """Answer with the page, and make its reader a visitor."""
        await self._send_page(call, PAGE_HEADERS, embedded=False)

    async def frame(self, call: HttpCall) -> None:
        """Answer with the page for a frame in one of the sites that may embed it."""
        self._need_embedding()
        await self._send_page(call, frame_headers(self._config.look.embed_origins), embedded=True)

    async def embed(self, call: HttpCall) -> None:
        """Answer with the script that makes a bubble on another site."""
        self._need_embedding()
        body = embed_script(self._config.title, self._config.look.theme)
        headers = [*SCRIPT_HEADERS, (b"content-length", str(len(body)).encode())]
        await call.send({"type": "http.response.start", "status": 200, "headers": headers})
        await call.send({"type": "http.response.body", "body": body})

    def _need_embedding(self) -> None:
        if not self._config.look.embed_origins:
            raise NotFoundError("This page can't be embedded: no other site is in its embed_origins.")

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
        """Answer with a file of the page."""
        known, asked = assets(), call.scope["path_params"]
        file = known.files.get(asked["name"]) if asked["version"] == known.version else None
        if file is None:
            raise NotFoundError("There is no such file; load the page again.")
        zipped = b"gzip" in call.headers.get(b"accept-encoding", b"")
        await call.send({"type": "http.response.start", "status": 200, "headers": file.headers(zipped=zipped)})
        await call.send({"type": "http.response.body", "body": file.zipped if zipped else file.body})


def _language(call: HttpCall) -> str:
    """Return the language of the page that its reader likes best, by the order in which a browser names them."""
    named = call.headers.get(b"accept-language", b"").decode("latin-1").lower().split(",")
    tags = [tag.partition(";")[0].strip().partition("-")[0] for tag in named]
    return next((tag for tag in tags if tag in LANGUAGES), LANGUAGES[0])


async def _send_lasting(call: HttpCall, body: bytes, kind: bytes) -> None:
    """Send a file of the theme, which never changes under its name."""
    headers = [*THEME_HEADERS, (b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await call.send({"type": "http.response.start", "status": 200, "headers": headers})
    await call.send({"type": "http.response.body", "body": body})
