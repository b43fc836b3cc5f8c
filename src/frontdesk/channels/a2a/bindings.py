"""The two bindings: how JSON-RPC and HTTP+JSON carry results, events and errors."""

from collections.abc import Sequence
from typing import Any

from frontdesk.asgi.messages import JSON, NO_RETRY, error_headers
from frontdesk.channels.a2a.artifacts import encode
from frontdesk.channels.a2a.errors import classify, http_error, is_reported_in_body, rpc_error
from frontdesk.channels.a2a.schema import FAILED, AnswerOut, TaskOut
from frontdesk.channels.a2a.stream import Framing
from frontdesk.errors import RequestError
from frontdesk.http.endpoint import HttpCall

_A2A_JSON = (b"content-type", b"application/a2a+json")
EXTENSIONS = b"a2a-extensions"
RawHeader = tuple[bytes, bytes]


class Reply(Framing):
    """The answer to one call, in the form of its binding."""

    content_type: RawHeader = JSON

    def __init__(self, call: HttpCall) -> None:
        self._call = call
        self._headers: list[RawHeader] = []

    def activate(self, extensions: Sequence[str]) -> None:
        """Name the extensions that are used."""
        if extensions:
            self._headers.append((EXTENSIONS, ", ".join(extensions).encode("latin-1")))

    @property
    def headers(self) -> Sequence[RawHeader]:
        return self._headers

    async def send(self, out: Any) -> None:
        await self.send_bytes(encode(out), [NO_RETRY] if _has_failed(out) else [])

    async def send_bytes(self, result: bytes, more: Sequence[RawHeader] = ()) -> None:
        """Send a result in its JSON form."""
        await self._send(200, self.wrap(result), [*self._headers, *more])

    async def send_error(self, error: RequestError) -> None:
        await self._send(self.status(error), self.error_body(error), error_headers(error), content_type=JSON)

    async def _send(
        self, status: int, body: bytes, headers: Sequence[RawHeader], content_type: RawHeader | None = None
    ) -> None:
        self._call.begun = True
        length = (b"content-length", str(len(body)).encode())
        head = [content_type or self.content_type, length, *headers]
        await self._call.send({"type": "http.response.start", "status": status, "headers": head})
        await self._call.send({"type": "http.response.body", "body": body})

    def wrap(self, result: bytes) -> bytes:
        raise NotImplementedError

    def status(self, error: RequestError) -> int:
        raise NotImplementedError

    def error_body(self, error: RequestError) -> bytes:
        raise NotImplementedError


class RpcReply(Reply):
    """The answer to a JSON-RPC call."""

    def __init__(self, call: HttpCall, call_id: bytes = b"null") -> None:
        """`call_id` is the JSON of the id of the call."""
        super().__init__(call)
        self.call_id = call_id
        self.is_understood = False
        """Whether the call was read, so that errors of the protocol have the HTTP status 200."""

    def wrap(self, result: bytes) -> bytes:
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (self.call_id, result)

    def frame(self, payload: bytes) -> bytes:
        return b'data: {"jsonrpc":"2.0","id":%b,"result":%b}\n\n' % (self.call_id, payload)

    def error(self, error: RequestError) -> bytes:
        return b"data: %b\n\n" % rpc_error(self.call_id, error)

    def status(self, error: RequestError) -> int:
        return 200 if self.is_understood and is_reported_in_body(error) else classify(error).http

    def error_body(self, error: RequestError) -> bytes:
        return rpc_error(self.call_id, error)


class HttpReply(Reply):
    """The answer to a request of the HTTP+JSON binding."""

    content_type = _A2A_JSON

    def wrap(self, result: bytes) -> bytes:
        return result

    def frame(self, payload: bytes) -> bytes:
        return b"data: %b\n\n" % payload

    def error(self, error: RequestError) -> bytes:
        return b"event: error\ndata: %b\n\n" % http_error(error)

    def status(self, error: RequestError) -> int:
        return classify(error).http

    def error_body(self, error: RequestError) -> bytes:
        return http_error(error)


def _has_failed(out: Any) -> bool:
    """Return True if the target has failed. Clients that repeat failed requests must not repeat this one."""
    task = out.task if isinstance(out, AnswerOut) else out
    return isinstance(task, TaskOut) and task.status.state == FAILED
