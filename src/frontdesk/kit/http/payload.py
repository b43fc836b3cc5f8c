"""The payload that a hook sees, with the HTTP request that has brought it."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
from starlette.datastructures import URL, Headers, QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.types import Scope

from frontdesk.kit.aio.large import run_sized

_object = msgspec.json.Decoder(dict[str, Any])


class HttpPayload(dict[str, Any]):
    """The JSON body of a request or of a message on a WebSocket; `request` has all else that HTTP says."""

    def __init__(self, body: Mapping[str, Any], scope: Scope) -> None:
        super().__init__(body)
        self._scope = scope

    @cached_property
    def request(self) -> HTTPConnection:
        """Return the request as Starlette knows it; its body has been read."""
        return Request(self._scope) if self._scope["type"] == "http" else HTTPConnection(self._scope)

    @property
    def headers(self) -> Headers:
        """Return the headers."""
        return self.request.headers

    @property
    def url(self) -> URL:
        """Return the address that was called."""
        return self.request.url

    @property
    def query_params(self) -> QueryParams:
        """Return the parameters of the query."""
        return self.request.query_params


async def read_payload(raw: bytes, scope: Scope) -> HttpPayload:
    """Read a body that was found to be a JSON object."""
    return HttpPayload(await run_sized(len(raw), _object.decode, raw), scope)
