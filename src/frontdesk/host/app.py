"""The Starlette app: the routes of all channels, the host's own routes, and readiness."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from frontdesk.asgi.messages import CONNECTION, JSON, NO_RETRY, DirectApp, error_headers, send_json
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.errors import ChannelConfigurationError, FrontdeskError, RequestError, UnavailableError
from frontdesk.foundry.conventions import FoundryAnswers
from frontdesk.host.validation.channels import HOST_PATHS
from frontdesk.http.endpoint import HttpEndpoint
from frontdesk.http.server import call_before_cancel
from frontdesk.http.sockets import POLICY
from frontdesk.interfaces.channel import Channel, ChannelContribution
from frontdesk.interfaces.host import ContributesToHost, HostContribution
from frontdesk.interfaces.linker import IdentityLinker, SupportsLinkRoutes, SupportsLinkShutdown, SupportsLinkStartup
from frontdesk.loggers import host as log

_TIMEOUT_SECONDS = 2.0
"""The seconds within which a store that is up has answered."""
_MAX_AGE = 1.0
"""The seconds for which the answer of the store counts: anybody may ask whether the host is ready."""
_ERROR = UnavailableError("This host was not started.", code="not_started")
# For clients of every channel: those of the OpenAI APIs read the last two.
_FIELDS = {"code": _ERROR.code, "message": _ERROR.message, "type": "server_error", "param": None}
_BODY = msgspec.json.encode({"error": _FIELDS})
_ADVICE = (
    "a request came in, but this host was never started: an app that it is mounted in does not start it by itself; "
    "pass lifespan=host.lifespan to that app, or enter host.lifespan() in a lifespan of your own"
)


class Readiness:
    """The state of a host, from before its start to after its end."""

    def __init__(
        self, ask_store: Callable[[], Awaitable[object]], check_writable: Callable[[], None] | None = None
    ) -> None:
        """The callbacks raise an error while the store is unavailable or not writable."""
        self._ask_store, self._check_writable = ask_store, check_writable
        self.was_started = False
        self.is_serving = False
        """Whether start-up is done, and shut-down has not begun."""
        self._is_running = False
        self._was_told = False
        self._asked: tuple[float, asyncio.Task[bool]] | None = None

    @contextmanager
    def run(self) -> Generator[None]:
        """Count the host as started for the duration of the block. Not reentrant."""
        if self._is_running:
            raise FrontdeskError(
                "This host is already running. Start it only once, through its own app or the enclosing app."
            )
        self.was_started = self._is_running = True
        self._asked = None
        try:
            yield
        finally:
            self._is_running = self.is_serving = False

    async def is_ready(self) -> bool:
        """Return True if the host is serving and its store is available and writable."""
        return self.is_serving and self._is_writable() and await self._reaches_store()

    def _is_writable(self) -> bool:
        # Asked each time: the store knows it without a query.
        try:
            if self._check_writable is not None:
                self._check_writable()
        except FrontdeskError:
            return False
        return True

    async def _reaches_store(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._asked is None or (self._asked[1].done() and now - self._asked[0] >= _MAX_AGE):
            self._asked = (now, spawn_clean(self._ask()))
        return await asyncio.shield(self._asked[1])

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await self._ask_store()
        except (FrontdeskError, OSError, TimeoutError) as error:
            log.warning("host not ready, the store does not respond: %r", error)
            return False
        return True

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to a host that was never started."""
        if not self._was_told:
            self._was_told = True
            log.error(_ADVICE)
        if scope["type"] == "http":
            return await send_json(send, 503, _BODY, [NO_RETRY])
        await receive()
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            return await send({"type": "websocket.close", "code": 1013, "reason": "not_started"})
        headers = [JSON, (b"content-length", str(len(_BODY)).encode())]
        await send({"type": "websocket.http.response.start", "status": 503, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": _BODY})


Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]
_LIVE = ("/healthz", "/liveness")
_READY = ("/readyz", "/readiness")
_HEALTH = (*_LIVE, *_READY)


def build_app(
    contributions: Sequence[tuple[Channel, ChannelContribution]],
    *,
    others: Sequence[HostContribution] = (),
    middleware: Sequence[Middleware],
    lifespan: Lifespan,
    readiness: Readiness,
    channels_ready: Callable[[], Mapping[str, bool]] = dict,
    answers: FoundryAnswers | None = None,
    before_cancel: Callable[[], Awaitable[None]] | None = None,
) -> Starlette:
    """Build the ASGI app. `answers` adds the headers of the hosting platform.

    `before_cancel` is awaited before a stopping server cancels requests.
    """
    routes: list[BaseRoute] = []
    for channel, contribution in contributions:
        routes.extend(_place(channel.path, route, contribution.middleware) for route in contribution.routes)
        routes.extend(_place(WELL_KNOWN, route, contribution.middleware) for route in contribution.well_known)
    for other in others:
        routes.extend(_place(other.path, route, ()) for route in other.routes)
    routes += [Route(path, endpoint=_Health(_lives)) for path in _LIVE]
    routes += [Route(path, endpoint=_Health(readiness.is_ready, channels_ready)) for path in _READY]
    # A route for any path comes after the routes for certain paths.
    routes.sort(key=_takes_any_path)
    return HostApp(routes, middleware, lifespan, readiness, answers, before_cancel)


WELL_KNOWN = "/.well-known"


def well_known_findings(contributions: Sequence[tuple[Channel, ChannelContribution]]) -> list[str]:
    """Return the findings for routes below `/.well-known/`, one line each."""
    taken: dict[str, str] = {}
    wrong: list[str] = []
    for channel, contribution in contributions:
        for route in contribution.well_known:
            path = getattr(route, "path", "")
            if not isinstance(route, Route) or not path.strip("/"):
                wrong.append(f"{channel.name}: well_known must have Starlette routes with a path, got {route!r}")
            elif path in taken:
                wrong.append(f"{channel.name}: {WELL_KNOWN}{path} is also a route of the channel {taken[path]!r}")
            else:
                taken[path] = channel.name
    return wrong


Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


class HostApp(DirectApp, Starlette):
    """Starlette with a shortcut for fixed paths.

    Most requests go to a fixed path, and its endpoint converts every error to a response itself. Starlette's routing
    and error layers would cost a fifth of the request time and add nothing. With middleware, every request takes the
    usual way.
    """

    def __init__(
        self,
        routes: list[BaseRoute],
        middleware: Sequence[Middleware],
        lifespan: Lifespan,
        readiness: Readiness,
        answers: FoundryAnswers | None = None,
        before_cancel: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`before_cancel` is awaited before a stopping server cancels requests."""
        handlers: dict[Any, Any] = {RequestError: _show_error}
        super().__init__(routes=routes, middleware=list(middleware), exception_handlers=handlers, lifespan=lifespan)
        self._readiness = readiness
        self._answers = answers
        self._before_cancel = before_cancel
        self.router.redirect_slashes = False
        self.router.default = _not_found
        self._without_slash = [
            route
            for route in routes
            if isinstance(route, (Route, WebSocketRoute)) and not _takes_any_path(route) and route.path[-1:] != "/"
        ]
        # Routes of other kinds need the error layers.
        ours = [
            route for route in routes if isinstance(route, Route) and isinstance(route.app, (HttpEndpoint, _Health))
        ]
        fixed = [route for route in ours if not route.param_convertors and route.methods is None]
        # Of two channels that serve a path alike, the first answers, as it does without the shortcut.
        self._fixed: dict[str, Answer] = {
            route.path: route.app.answer if isinstance(route.app, HttpEndpoint) else route.app.__call__
            for route in reversed(fixed)
        }

    def answer(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Return the awaitable that answers a request, without a coroutine in between."""
        if scope["type"] == "http":
            if CONNECTION not in (scope.get("extensions") or ()) and _has_unread_body(scope):
                send = _close_after(send)
            if self._answers is not None:
                send = self._answers.add_headers(scope, send)
        if not self._readiness.was_started and scope["type"] != "lifespan" and not scope["path"].endswith(_HEALTH):
            # What it would accept, nobody would ever do.
            return self._readiness.refuse(scope, receive, send)
        if scope["type"] == "lifespan" and self._before_cancel is not None:
            call_before_cancel(scope, self._before_cancel)
        if scope["type"] != "lifespan" and scope["path"].endswith("/"):
            self._remove_slash(scope)
        # Checked each time, because middleware can still be added to the app after it was built.
        if scope["type"] == "http" and not self.user_middleware and not scope.get("root_path"):
            endpoint = self._fixed.get(scope["path"])
            if endpoint is not None:
                scope["app"] = self
                return endpoint(scope, receive, send)
        return Starlette.__call__(self, scope, receive, send)

    def _remove_slash(self, scope: Scope) -> None:
        """Remove a slash at the end of the path, which clients with a base URL add, if a route has the path without."""
        path = scope["path"]
        if any(route.matches(scope)[0] is not Match.NONE for route in self.routes if not _takes_any_path(route)):
            return
        scope["path"] = path[:-1]
        if all(route.matches(scope)[0] is Match.NONE for route in self._without_slash):
            scope["path"] = path


def _has_unread_body(scope: Scope) -> bool:
    """Return True if a server may have read the request body as the next request, because of an upgrade header.

    Uvicorn with httptools does so. The server of this host does not.
    """
    names = {name.lower() for name, _ in scope["headers"]}
    return b"upgrade" in names and not names.isdisjoint((b"content-length", b"transfer-encoding"))


def _close_after(send: Send) -> Send:
    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return send_and_close


def _takes_any_path(route: BaseRoute) -> bool:
    return isinstance(route, Route) and route.path.endswith(":path}")


def _place(path: str, route: BaseRoute, middleware: Sequence[Middleware]) -> BaseRoute:
    """Return a channel's route under the channel's path. Flat, because each mounting level costs every request."""
    if isinstance(route, Route):
        methods = None if route.methods is None else list(route.methods)
        app = (
            route.endpoint
            if not middleware and not _is_function(route.endpoint)
            else _Raw(_wrap(route.app, middleware))
        )
        return Route(_join(path, route.path), endpoint=app, methods=methods, name=route.name)
    if isinstance(route, WebSocketRoute):
        app = _Raw(_wrap(route.app, middleware))
        return WebSocketRoute(_join(path, route.path), endpoint=app, name=route.name)
    return Mount(path, routes=[route], middleware=list(middleware))


def _is_function(endpoint: Any) -> bool:
    return inspect.isroutine(endpoint) or inspect.isclass(endpoint)


def _join(path: str, route: str) -> str:
    return path if path and route == "/" else path + route


def _wrap(app: ASGIApp, middleware: Sequence[Middleware]) -> ASGIApp:
    for cls, arguments, keywords in reversed(list(middleware)):
        app = cls(app, *arguments, **keywords)
    return app


class _Raw:
    """An ASGI app that Starlette accepts unchanged as an endpoint."""

    __slots__ = ("_app",)

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


class _Health:
    def __init__(self, check: Callable[[], Awaitable[bool]], channels: Callable[[], Mapping[str, bool]] = dict) -> None:
        self._check = check
        self._channels = channels

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        well, channels = await self._check(), self._channels()
        body: dict[str, Any] = {"status": "ok" if well else "unavailable"}
        if channels:
            # Anybody can ask, so that it does not say why.
            body["channels"] = {name: "ok" if ready else "unavailable" for name, ready in channels.items()}
        await send_json(send, 200 if well else 503, msgspec.json.encode(body))


async def _lives() -> bool:
    return True


async def _show_error(connection: Request | WebSocket, error: RequestError) -> Response | None:
    """Convert an error that a channel's own route has not handled to a response."""
    if isinstance(connection, WebSocket):
        await connection.close(POLICY, error.code)
        return None
    fields = {"code": error.code, "message": error.message, "param": error.param, "id": error.run_id}
    body = {"error": {name: value for name, value in fields.items() if value is not None}}
    response = Response(msgspec.json.encode(body), error.status, media_type="application/json")
    response.raw_headers.extend(error_headers(error))
    return response


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000, "reason": ""})
        return
    error = {"code": "not_found", "message": "No route for this path."}
    await send_json(send, 404, msgspec.json.encode({"error": error}))


Step = tuple[str, Callable[[], Awaitable[None]]]


async def run_all(stage: str, steps: Sequence[Step]) -> None:
    """Run every step, even if others fail."""
    first: Exception | None = None
    for name, step in steps:
        try:
            await step()
        except Exception as error:
            if isinstance(error, FrontdeskError):
                # Its message says what is wrong; a traceback would not help.
                log.error("callback failed: callback=%s owner=%s: %s", stage, name, error)
            else:
                log.error("callback failed: callback=%s owner=%s", stage, name, exc_info=error)
            first = first or error
    if first is not None:
        raise first


_LINKER = "linker"


def list_contributions(
    linker: IdentityLinker | None, given: Sequence[HostContribution], channels: Mapping[str, Channel]
) -> tuple[HostContribution, ...]:
    """Return the contributions of the linker and of the user. Raises if any is invalid."""
    every = (*([] if linker is None else [_of_linker(linker)]), *given)
    findings = host_contribution_findings(every, channels)
    if findings:
        raise ChannelConfigurationError(findings)
    return every


def host_contribution_findings(given: Sequence[Any], channels: Mapping[str, Channel]) -> list[str]:
    wrong = [f"{each!r} is not a HostContribution" for each in given if not isinstance(each, HostContribution)]
    taken: dict[str, str] = dict.fromkeys(HOST_PATHS, "the host")
    taken |= {channel.path: f"the channel {name!r}" for name, channel in channels.items()}
    for each in given:
        if not isinstance(each, HostContribution):
            continue
        wrong += [f"{each.name}: {finding}" for finding in each.findings]
        if not each.routes:
            continue
        if not each.path.startswith("/") or each.path.endswith("/"):
            wrong.append(f"{each.name}: its path {each.path!r} must begin with a slash and not end with one")
        elif each.path in taken:
            wrong.append(f"{each.name}: its path {each.path!r} is also that of {taken[each.path]}")
        taken.setdefault(each.path, each.name)
    return wrong


def _of_linker(linker: IdentityLinker) -> HostContribution:
    """Return a linker's contribution, from `ContributesToHost` or from the separate abilities of linkers."""
    if isinstance(linker, ContributesToHost):
        return linker.contribute_to_host()
    serves = isinstance(linker, SupportsLinkRoutes)
    return HostContribution(
        name=_LINKER,
        path=linker.path if serves else "",
        routes=tuple(linker.routes()) if serves else (),
        on_startup=(linker.on_startup,) if isinstance(linker, SupportsLinkStartup) else (),
        on_shutdown=(linker.on_shutdown,) if isinstance(linker, SupportsLinkShutdown) else (),
    )
