"""`OAuthIdentityLinker`: links accounts by sign-in at a provider, across all channels."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from frontdesk.asgi.messages import whole_seconds
from frontdesk.auth.oidc import ProviderHttp, need, provider_url
from frontdesk.clock import Clock, SystemClock
from frontdesk.errors import ChannelConfigurationError, LinkRefusedError, RequestError
from frontdesk.interfaces.linker import LinkerContext, ReadsClaims, SupportsLinkReturn, SupportsLinkRoutes
from frontdesk.linkers.oauth.ceremony import (
    HEADERS,
    Ceremony,
    Page,
    Proved,
    StoppedError,
    build_done_page,
    build_leaving_page,
    confirm_page,
    cookie_name,
    message_page,
    start_page,
)
from frontdesk.linkers.oauth.provider import CodeClient, Provider, get_subject
from frontdesk.loggers import access as log
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkChallenge, LinkRecord
from frontdesk.secret import Secret

MAX_QUERY_LENGTH: Final = 8192
_MAX_PARAMETERS = 20
_PAGE = re.compile(r"/(?![/\\])[\w\-./~%]{0,500}", re.ASCII)
"""The path of a page of this host, and no address of another."""

Handler = Callable[[Request], Awaitable[Page]]


class OAuthIdentityLinker(SupportsLinkRoutes, SupportsLinkReturn, ReadsClaims):
    """Links identities by sign-in at a provider: `Entra`, `Google`, `GitHub` or any `Oidc` issuer.

    `public_url` is the URL of this host for browsers, by default that of `AgentFrameworkHost(public_url=)`. Register
    that URL + `path` + `/callback` at the provider as the redirect URI. Without `client_secret` the host is a public
    client.
    """

    gives_claims = True

    def __init__(
        self,
        provider: Provider,
        *,
        client_id: str,
        client_secret: Secret | str | None = None,
        public_url: str | None = None,
        path: str = "/link",
        expires_in: float = 600.0,
        max_attempts_per_identity: int = 10,
        name: str = "oauth",
        http: ProviderHttp | None = None,
        clock: Clock | None = None,
    ) -> None:
        need("OAuthIdentityLinker")
        self.name = name
        self.path = _check_path(path)
        if not client_id or not 30 <= expires_in <= 3600 or max_attempts_per_identity < 1:
            raise ValueError(
                "OAuthIdentityLinker: client_id must not be empty, expires_in must be from 30 to 3600 seconds, and "
                "max_attempts_per_identity at least 1"
            )
        self._own_url = None if public_url is None else _check_url(public_url)
        self._base = (self._own_url or "") + path
        self._secure = self._base.startswith("https:")
        self._expires_in, self._most = expires_in, max_attempts_per_identity
        self._provider = provider
        http = http or ProviderHttp()
        provider.use(client_id=client_id, http=http, clock=clock or SystemClock())
        secret = None if client_secret is None else Secret(client_secret)
        self._build_client = partial(CodeClient, provider, client_id, secret, http=http)

    def use(self, host: LinkerContext) -> None:
        url = self._own_url or host.public_url
        if url is None:
            raise ChannelConfigurationError(
                ["OAuthIdentityLinker: set public_url here or on AgentFrameworkHost; people sign in at that URL"]
            )
        try:
            # The URL of a host may be one that providers do not accept.
            self._base = _check_url(url) + self.path
        except ValueError as error:
            raise ChannelConfigurationError([str(error)]) from error
        self._secure = self._base.startswith("https:")
        self._client = self._build_client(redirect_uri=f"{self._base}/callback")
        self._host = host
        self._ceremony = Ceremony(host, self._provider, self._client, self.name)

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        return await self._begin(identity, "")

    async def begin_from(self, identity: ChannelIdentity, return_to: str) -> LinkChallenge:
        if _PAGE.fullmatch(return_to) is None:
            raise ValueError("return_to must be a path on this host")
        return await self._begin(identity, return_to)

    async def _begin(self, identity: ChannelIdentity, return_to: str) -> LinkChallenge:
        grant, text = await self._ceremony.begin(identity, self._expires_in, self._most, return_to)
        minutes = max(1, round(self._expires_in / 60))
        return LinkChallenge(
            challenge_id=grant.grant_id,
            identity=identity,
            instructions=self._host.say(identity, "link.open", provider=self._provider.title, minutes=minutes),
            url=f"{self._base}/start/{text}",
            expires_at=grant.expires_at,
        )

    async def complete(self, identity: ChannelIdentity, proof: str) -> LinkRecord | LinkChallenge | None:
        raise LinkRefusedError("Codes are not used here. Ask for a link and open it in your browser.")

    async def resolve(self, identity: ChannelIdentity) -> LinkRecord | None:
        return await self._host.find_link(identity)

    async def unlink(self, identity: ChannelIdentity) -> None:
        await self._host.part(identity, here=identity)

    def get_subject(self, claims: Mapping[str, Any]) -> str | None:
        return get_subject(self._provider, claims)

    def routes(self) -> Sequence[BaseRoute]:
        return [
            _route("/start/{text}", GET=self._show_start, POST=self._start),
            _route("/callback", GET=self._callback),
            _route("/confirm/{text}", GET=self._show_confirm, POST=self._confirm),
            _route("/cancel/{text}", POST=self._cancel),
        ]

    async def _show_start(self, request: Request) -> Page:
        text = request.path_params["text"]
        grant = await self._ceremony.get_begun(text)
        return start_page(grant.identity, self._provider.title, f"{self._base}/start/{text}")

    async def _start(self, request: Request) -> Page:
        self._from_our_page(request)
        leaving = await self._ceremony.ask(request.path_params["text"])
        cookie = self._cookie(cookie_name(leaving.state), leaving.mark, leaving.expires_at - self._host.now())
        page = build_leaving_page(self._provider.title, leaving.url)
        return Page(page.body, headers={"Set-Cookie": cookie})

    async def _callback(self, request: Request) -> Page:
        text, _ = await self._ceremony.prove(_parameters(request), _cookies(request))
        # Redirect to a URL that holds neither the code nor the state.
        return Page("", 303, {"Location": f"{self._base}/confirm/{text}"})

    async def _show_confirm(self, request: Request) -> Page:
        text = request.path_params["text"]
        proved = await self._ceremony.get_proved(text, _cookies(request))
        return confirm_page(
            proved.grant.identity,
            self._provider.title,
            proved.label,
            link=f"{self._base}/confirm/{text}",
            cancel=f"{self._base}/cancel/{text}",
        )

    async def _confirm(self, request: Request) -> Page:
        self._from_our_page(request)
        proved = await self._ceremony.get_proved(request.path_params["text"], _cookies(request))
        await self._ceremony.link(proved)
        return self._build_end_page(proved, build_done_page(proved.grant.identity, self._provider.title))

    async def _cancel(self, request: Request) -> Page:
        self._from_our_page(request)
        proved = await self._ceremony.get_proved(request.path_params["text"], _cookies(request))
        await self._ceremony.give_up(proved)
        return self._build_end_page(
            proved, message_page("Nothing was linked", "The accounts were not linked. You can close this page.")
        )

    def _build_end_page(self, proved: Proved, page: Page) -> Page:
        cookie = {"Set-Cookie": self._cookie(str(proved.grant.data["cookie"]), "", 0)}
        if not proved.return_to:
            return Page(page.body, headers=cookie)
        return Page("", 303, {**cookie, "Location": proved.return_to})

    def _from_our_page(self, request: Request) -> None:
        # Our pages send no referrer, so browsers send the origin "null"; `Sec-Fetch-Site` still says whose page it was.
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin", "null")
        parts = urlsplit(self._base)
        if site != "same-origin" or origin not in ("null", f"{parts.scheme}://{parts.netloc}"):
            raise StoppedError(403, "Invalid origin", "Press the button on the sign-in page.")

    def _cookie(self, name: str, value: str, seconds: float) -> str:
        secure = "; Secure" if self._secure else ""
        path = urlsplit(self._base).path
        return f"{name}={value}; Path={path}; Max-Age={max(0, round(seconds))}; HttpOnly; SameSite=Lax{secure}"


def _route(path: str, **methods: Handler) -> Route:
    async def endpoint(request: Request) -> Response:
        handler = methods.get(request.method)
        if handler is None:
            # A HEAD request, as for a preview, must not use a link up.
            return Response(status_code=405, headers={**HEADERS, "Allow": ", ".join(methods)})
        try:
            page = await handler(request)
        except StoppedError as error:
            page = message_page(error.title, error.text, error.status)
        except RequestError as error:
            page = _refusal(error)
        finally:
            _redact(request)
        return HTMLResponse(page.body, page.status, headers={**HEADERS, **page.headers})

    return Route(path, endpoint, methods=list(methods))


def _refusal(error: RequestError) -> Page:
    """Return the page of an error. The reason why a token was rejected is only logged."""
    log.info("link refused: %s (%s)", error.code, error.message)
    if error.status == 401:
        return message_page("Sign-in failed", "Your identity could not be verified. Ask for a new link.", 403)
    page = message_page("Sign-in failed", error.message, error.status)
    if error.retry_after is None:
        return page
    return Page(page.body, page.status, {"Retry-After": whole_seconds(error.retry_after)})


def _redact(request: Request) -> None:
    """Remove codes and states from the scope, which the server writes to its access log after the response."""
    scope = request.scope
    if scope.get("path_params", {}).get("text"):
        scope["path"] = scope["path"].rpartition("/")[0] + "/..."
    scope["query_string"] = b""


def _parameters(request: Request) -> dict[str, str]:
    query = request.scope["query_string"]
    try:
        if len(query) > MAX_QUERY_LENGTH:
            raise ValueError
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        pairs = []
    parameters = dict(pairs)
    if not parameters or len(parameters) != len(pairs):
        raise StoppedError(400, "Invalid link", "The link is incomplete, or was not created by this host.")
    return parameters


def _cookies(request: Request) -> dict[bytes, bytes]:
    cookies: dict[bytes, bytes] = {}
    for name, value in request.scope["headers"]:
        if name == b"cookie":
            for pair in value.split(b";"):
                key, _, text = pair.strip().partition(b"=")
                cookies.setdefault(key, text)
    return cookies


def _check_path(path: str) -> str:
    if not path.startswith("/") or path.endswith("/") or "{" in path:
        raise ValueError(f"OAuthIdentityLinker: path {path!r} must begin with a slash and not end with one")
    return path


def _check_url(url: str) -> str:
    parts = urlsplit(provider_url(url, "OAuthIdentityLinker: public_url"))
    if parts.query:
        raise ValueError("OAuthIdentityLinker: public_url must not have a query")
    return url.rstrip("/")
