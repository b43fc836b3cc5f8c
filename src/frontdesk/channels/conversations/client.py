"""Writes answers on the wire."""

from typing import Any

import msgspec

from frontdesk.channels.conversations.render import error_body
from frontdesk.errors import RequestError
from frontdesk.kit.http.asgi import error_headers, send_json
from frontdesk.kit.http.endpoint import HttpCall


class ResponseWriter:
    """Writes the response to one caller."""

    __slots__ = ("_call",)

    def __init__(self, call: HttpCall) -> None:
        self._call = call

    async def json(self, body: Any) -> None:
        """Send what was asked for."""
        raw = msgspec.json.encode(body)
        self._call.begun = True
        await send_json(self._call.send, 200, raw, self._headers())

    async def error(self, error: RequestError) -> None:
        """Send what went wrong."""
        await send_json(self._call.send, error.status, error_body(error), [*error_headers(error), *self._headers()])

    def _headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"x-request-id", self._call.answer_id)]
