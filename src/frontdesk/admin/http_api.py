"""The HTTP API of operators, lists, rows and actions as JSON, and the Unix socket on which a host serves it.

The API does not authenticate callers. The file mode of the socket allows only the user of the host to connect.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.server import ServerState

from frontdesk.admin.service import AdminService
from frontdesk.admin.socket_file import MAX_BODY_BYTES, bind, file_identity
from frontdesk.asgi.messages import read_rest, require_identity
from frontdesk.concurrency.tasks import cancel_and_wait
from frontdesk.errors import BodyTimeoutError, FrontdeskError, InvalidRequestError, RequestError
from frontdesk.http.bodies import decode_as
from frontdesk.http.server_limits import ServerLimits
from frontdesk.loggers import host as log
from frontdesk.server.http_protocol import BoundedHttpProtocol, ConnectionGate
from frontdesk.server.unread import UnreadWatch

MAX_CONNECTIONS = 16
BODY_SECONDS = IDLE_SECONDS = 60.0
_STOP_SECONDS = 5.0
"""The time for open requests when the host stops."""
_NOT_HTTP = "This host has an HTTP admin API. Use the frontdesk command of the host's version."
Given = dict[str, Any]
_object = msgspec.json.Decoder(Given)


class _RowId(PathConvertor):
    regex = "(?s:.*)"


register_url_convertor("row_id", _RowId())


def _body(request: Request, body: Given) -> Given:
    return body


def _page(request: Request, body: Given) -> Given:
    given = _with_limit(dict(request.query_params))
    after, limit = given.pop("after", None), given.pop("limit", None)
    paging = {"after": after} if limit is None else {"after": after, "limit": limit}
    return {**paging, "kind": request.path_params["kind"], "filters": given}


def _row(request: Request, body: Given) -> Given:
    query, path = dict(request.query_params), request.path_params
    name = {key: query.pop(key) for key in ("channel", "person") if key in query}
    flags = {key: query.pop(key, "") == "true" for key in ("content", "export")}
    return {**body, **query, **flags, **path, "name": {**name, "id": path["id"]}}


def _principals(request: Request, body: Given) -> Given:
    return {**body, **_with_limit(dict(request.query_params)), "action": request.path_params.get("action", "list")}


def _with_limit(query: Given) -> Given:
    limit = query.get("limit")
    if limit is None:
        return query
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10):
        raise InvalidRequestError(f"limit must be a number, got {limit!r}.", param="limit")
    return {**query, "limit": int(limit)}


_ROUTES: tuple[tuple[str, str, str, Callable[[Request, Given], Given]], ...] = (
    ("GET", "/state", "state", _body),
    ("GET", "/deliveries/counts", "counts", _body),
    ("GET", "/principals", "principals", _principals),
    ("POST", "/principals/{action}", "principals", _principals),
    ("POST", "/messages", "deliver", _body),
    ("POST", "/runs", "run", _body),
    ("GET", "/{kind}", "page", _page),
    ("GET", "/{kind}/{id:row_id}", "show", _row),
    ("POST", "/{kind}/{id:row_id}/{action}", "act", _row),
)
"""Method, path, call of the service, and the function that reads the arguments of the call."""


def build_app(service: AdminService) -> Starlette:
    def route(method: str, path: str, call: str, read: Callable[[Request, Given], Given]) -> Route:
        async def answer(request: Request) -> Response:
            body = await _read_body(request) if method == "POST" else {}
            return _json(await service.call(call, read(request, body)))

        return Route(path, answer, methods=[method])

    return Starlette(
        routes=[route(*each) for each in _ROUTES],
        exception_handlers={FrontdeskError: _refuse, HTTPException: _refuse},
    )


async def _read_body(request: Request) -> Given:
    require_identity(dict(request.scope["headers"]))
    try:
        async with asyncio.timeout(BODY_SECONDS):
            raw = await read_rest(request.receive, await request.receive(), MAX_BODY_BYTES)
    except TimeoutError:
        raise BodyTimeoutError from None
    return decode_as(_object, raw)


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestError):
        return _json(error_body(error.code, error.message), error.status)
    if isinstance(error, HTTPException):
        message = f"{request.method} {request.url.path}: {error.detail}."
        return _json(error_body("invalid_request", message), error.status_code)
    return _json(error_body("error", str(error)), RequestError.status)


def error_body(code: str, message: str) -> Mapping[str, Any]:
    return {"error": {"code": code, "message": message}}


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


class AdminProtocol(BoundedHttpProtocol):
    """A connection of an operator. Its errors have the shape of the API."""

    def __init__(self, gate: ConnectionGate, **options: Any) -> None:
        super().__init__(gate, **options)
        # The access log is that of callers.
        self.access_log = False

    def data_received(self, data: bytes) -> None:
        # A frontdesk command of an earlier version sends lines of JSON, and can read only a line of JSON.
        if self.headers is None and data.startswith(b"{"):  # pyright: ignore[reportUnnecessaryComparison]
            self.transport.write(msgspec.json.encode(error_body("http_required", _NOT_HTTP)) + b"\n")
            self.transport.close()
            return
        super().data_received(data)

    def refusal(self, status: HTTPStatus, text: str) -> tuple[bytes, bytes]:
        full = status is HTTPStatus.SERVICE_UNAVAILABLE
        busy = ("too_many_requests", "Too many concurrent operator requests.")
        code, message = busy if full else ("invalid_request", text)
        return b"application/json", msgspec.json.encode(error_body(code, message))


class AdminSocket:
    """Serves the admin socket. Its file mode allows only the user of the host to open it."""

    def __init__(self, path: Path, service: AdminService) -> None:
        self.path = path
        self._config = uvicorn.Config(
            build_app(service), log_config=None, lifespan="off", ws="none", proxy_headers=False
        )
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._made: tuple[int, int] | None = None

    async def start(self) -> None:
        """Start listening. Replace the socket of a dead process, and raise if another process is listening."""
        limits = ServerLimits(head_seconds=IDLE_SECONDS, max_connections=MAX_CONNECTIONS)
        gate = ConnectionGate(limits, MAX_CONNECTIONS, IDLE_SECONDS)
        self._unread = UnreadWatch(self._state.connections, limits.send_seconds)
        loop = asyncio.get_running_loop()

        def connect() -> AdminProtocol:
            options: dict[str, Any] = {"config": self._config, "server_state": self._state, "app_state": {}}
            return AdminProtocol(gate, **options, _loop=loop)

        listener = bind(self.path)
        self._made = file_identity(self.path)
        self._server = await loop.create_unix_server(connect, sock=listener)
        self._unread.start()
        log.info("admin socket listening: path=%s", self.path)

    async def stop(self) -> None:
        """Close the socket, and its connections once they are answered. Remove the file unless another process has
        replaced it."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            _, late = await asyncio.wait(set(self._state.tasks), timeout=_STOP_SECONDS)
            await cancel_and_wait(*late)
        for connection in list(self._state.connections):
            connection.transport.abort()
        self._unread.stop()
        with suppress(OSError):
            if file_identity(self.path) == self._made:
                self.path.unlink()
