"""Serves the page and its files, to visitors who have no cookie yet too."""

from starlette.types import Scope

from frontdesk.channels.web.pages import PAGE_HEADERS, assets, shell
from frontdesk.channels.web.verify import Visitors, VisitorVerifier
from frontdesk.data.identity import ANONYMOUS, Caller, ChannelIdentity
from frontdesk.errors import NotFoundError
from frontdesk.kit.auth.verifier import HttpVerifier
from frontdesk.kit.http.asgi import Headers, below
from frontdesk.kit.http.endpoint import HttpCall


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

    def __init__(self, path: str, title: str, visitors: Visitors) -> None:
        self._path, self._title = path, title
        self._visitors = visitors

    async def page(self, call: HttpCall) -> None:
        """Answer with the page, and make its reader a visitor."""
        headers = list(PAGE_HEADERS)
        if await self._visitors.visitor(call.scope, call.headers) is None:
            headers.append((b"set-cookie", await self._visitors.new_cookie(call.scope, call.headers)))
        body = shell(self._title, below(call.scope, self._path).decode())
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
