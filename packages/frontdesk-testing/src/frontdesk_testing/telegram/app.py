"""The Bot API over HTTP."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from frontdesk_testing.telegram.api import BotApi, canonical
from frontdesk_testing.telegram.bodies import read_parameters
from frontdesk_testing.telegram.errors import ApiError
from frontdesk_testing.telegram.faults import Fault, Faults

ABORT = "frontdesk.abort"
"""The extension of the scope that closes a connection at once."""
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")
_NO_FAULT = Fault("")


class DroppedError(Exception):
    """A connection that is closed without a response."""


class BotApp:
    """Serves the methods at `/bot<token>/<method>`, and files at `/file/bot<token>/<path>`."""

    def __init__(self, api: BotApi, faults: Faults) -> None:
        self._api = api
        self._faults = faults

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        methods = ["GET", "POST"]
        return [
            Route("/bot{token}/{method}", _ApiEndpoint(self.call), methods=methods),
            Route("/bot{token}/test/{method}", _ApiEndpoint(self.call), methods=methods),
            Route("/file/bot{token}/{path:path}", _ApiEndpoint(self.file), methods=methods),
            Route("/{path:path}", _ApiEndpoint(_nowhere), methods=methods),
        ]

    async def call(self, request: Request) -> Response:
        """Answer a call of a bot."""
        token, method = request.path_params["token"], request.path_params["method"]
        bot = self._api.world.bots.get(token)
        if bot is None:
            raise _stranger(token)
        content_type = request.headers.get("content-type", "")
        given, uploads = read_parameters(request.url.query, content_type, await request.body())
        fault = self._faults.take(canonical(method)) or _NO_FAULT
        if fault.hold is not None:
            fault.hold.reached.set()
            await fault.hold.released.wait()
        if fault.drop_before:
            raise DroppedError
        if fault.error is not None:
            self._api.refuse(bot, method, given, uploads, fault.error)
            raise fault.error
        record = await self._api.call(bot, method, given, uploads)
        if fault.drop_after:
            raise DroppedError
        if record.error is not None:
            raise record.error
        body: dict[str, Any] = {"ok": True, "result": record.result}
        return _json(
            200, {**body, "description": _describe_result(record.method)} if _describe_result(record.method) else body
        )

    async def file(self, request: Request) -> Response:
        """Return the content of a file."""
        token, path = request.path_params["token"], request.path_params["path"]
        if token not in self._api.world.bots:
            raise _stranger(token)
        file = self._api.world.files.find_linked(path, self._api.world.clock.now())
        if file is None:
            raise ApiError(404, "Not Found")
        return Response(file.upload.content, media_type="application/octet-stream")


def _stranger(token: str) -> ApiError:
    return ApiError(401, "Unauthorized") if _TOKEN.fullmatch(token) else ApiError(404, "Not Found")


def _describe_result(method: str) -> str:
    return {"setWebhook": "Webhook was set", "deleteWebhook": "Webhook was deleted"}.get(method, "")


async def _nowhere(request: Request) -> Response:
    raise ApiError(404, "Not Found")


def _json(status: int, body: Any) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")


class _ApiEndpoint:
    """An endpoint whose errors are those of the Bot API."""

    def __init__(self, endpoint: Callable[[Request], Any]) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            response = await self._endpoint(request)
        except ApiError as error:
            response = _json(error.code, error.as_json())
        except ClientDisconnect:
            # A client that was ended, or has waited long enough.
            return
        except DroppedError:
            scope["extensions"][ABORT]["close"]()
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await response(scope, receive, send)
