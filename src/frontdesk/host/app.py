"""The Starlette app: every channel's routes, and the host's own."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from frontdesk.abc.channel import Channel, ChannelContribution
from frontdesk.abc.host import HostContribution
from frontdesk.errors import RequestError
from frontdesk.host.readiness import Readiness
from frontdesk.kit.foundry.answers import FoundryAnswers
from frontdesk.kit.http.asgi import error_headers, send_json
from frontdesk.kit.http.endpoint import HttpEndpoint
from frontdesk.kit.http.sockets import POLICY

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
) -> Starlette:
    """Build the app for any ASGI server; `answers` adds the headers of the platform that it runs on."""
    routes: list[BaseRoute] = []
    for channel, contribution in contributions:
        routes.extend(_placed(channel.path, route, contribution.middleware) for route in contribution.routes)
    for other in others:
        routes.extend(_placed(other.path, route, ()) for route in other.routes)
    routes += [Route(path, endpoint=_Health(_lives)) for path in _LIVE]
    routes += [Route(path, endpoint=_Health(readiness.is_ready, channels_ready)) for path in _READY]
    # A route for any path comes after the routes for certain paths.
    routes.sort(key=_takes_any_path)
    return HostApp(routes, middleware, lifespan, readiness, answers)


class HostApp(Starlette):
    """Starlette, with a shortcut to the fixed paths.

    Most requests go to a fixed path, and its endpoint turns every error into an answer itself: Starlette's routing and
    error layers would cost it a fifth of its time and add nothing. With middleware, every request takes the usual way.
    """

    def __init__(
        self,
        routes: list[BaseRoute],
        middleware: Sequence[Middleware],
        lifespan: Lifespan,
        readiness: Readiness,
        answers: FoundryAnswers | None = None,
    ) -> None:
        handlers: dict[Any, Any] = {RequestError: _show_error}
        super().__init__(routes=routes, middleware=list(middleware), exception_handlers=handlers, lifespan=lifespan)
        self._readiness = readiness
        self._answers = answers
        self.router.redirect_slashes = False
        self.router.default = _not_found
        # Routes of other kinds need the error layers.
        ours = [
            route for route in routes if isinstance(route, Route) and isinstance(route.app, (HttpEndpoint, _Health))
        ]
        fixed = [route for route in ours if not route.param_convertors and route.methods is None]
        # Of two channels that serve a path alike, the first answers, as it does without the shortcut.
        self._fixed: dict[str, ASGIApp] = {route.path: route.app.__call__ for route in reversed(fixed)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._answers is not None and scope["type"] == "http":
            send = self._answers.adding(scope, send)
        if not self._readiness.was_started and scope["type"] != "lifespan" and not scope["path"].endswith(_HEALTH):
            # What it would accept, nobody would ever do.
            return await self._readiness.refuse(scope, receive, send)
        # Checked each time, because middleware can still be added to the app after it was built.
        if scope["type"] == "http" and not self.user_middleware and not scope.get("root_path"):
            endpoint = self._fixed.get(scope["path"])
            if endpoint is not None:
                scope["app"] = self
                return await endpoint(scope, receive, send)
        await super().__call__(scope, receive, send)


def _takes_any_path(route: BaseRoute) -> bool:
    return isinstance(route, Route) and route.path.endswith(":path}")


def _placed(path: str, route: BaseRoute, middleware: Sequence[Middleware]) -> BaseRoute:
    """Return a channel's route under the channel's path; flat, because each level of mounting costs every request."""
    if isinstance(route, Route):
        methods = None if route.methods is None else list(route.methods)
        app = (
            route.endpoint
            if not middleware and not _is_function(route.endpoint)
            else _Raw(_wrapped(route.app, middleware))
        )
        return Route(_joined(path, route.path), endpoint=app, methods=methods, name=route.name)
    if isinstance(route, WebSocketRoute):
        app = _Raw(_wrapped(route.app, middleware))
        return WebSocketRoute(_joined(path, route.path), endpoint=app, name=route.name)
    return Mount(path, routes=[route], middleware=list(middleware))


def _is_function(endpoint: Any) -> bool:
    return inspect.isroutine(endpoint) or inspect.isclass(endpoint)


def _joined(path: str, route: str) -> str:
    return path if path and route == "/" else path + route


def _wrapped(app: ASGIApp, middleware: Sequence[Middleware]) -> ASGIApp:
    for cls, arguments, keywords in reversed(list(middleware)):
        app = cls(app, *arguments, **keywords)
    return app


class _Raw:
    """An ASGI app that Starlette takes as an endpoint as it is."""

    __slots__ = ("_app",)

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


class _Health:
    """Answers whether the host is healthy or ready."""

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
    """Answer with an error that a channel's own route has left to the host."""
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
    error = {"code": "not_found", "message": "Nothing is served at this path."}
    await send_json(send, 404, msgspec.json.encode({"error": error}))
