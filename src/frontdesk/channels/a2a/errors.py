"""The errors of A2A in both bindings: JSON-RPC objects and `google.rpc.Status`. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from frontdesk.errors import (
    ConflictError,
    InvalidRequestError,
    MethodNotAllowedError,
    NotFoundError,
    RequestError,
    UnsupportedMediaError,
)

DOMAIN = "a2a-protocol.org"
OWN_DOMAIN = "frontdesk"
"""The domain of reasons that A2A does not define."""
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_MAX_METADATA_LENGTH = 256


class Kind(NamedTuple):
    """An error of the protocol in its representations."""

    rpc: int
    http: int
    status: str
    """The name of the code of `google.rpc.Status`."""
    reason: str
    domain: str = DOMAIN


TASK_NOT_FOUND = Kind(-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND")
TASK_NOT_CANCELABLE = Kind(-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE")
PUSH_NOT_SUPPORTED = Kind(-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED")
UNSUPPORTED_OPERATION = Kind(-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION")
CONTENT_TYPE_NOT_SUPPORTED = Kind(-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
EXTENSION_SUPPORT_REQUIRED = Kind(-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED")
VERSION_NOT_SUPPORTED = Kind(-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")
PARSE_ERROR = Kind(-32700, 400, "INVALID_ARGUMENT", "INVALID_REQUEST")
INVALID_REQUEST = Kind(-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST")
METHOD_NOT_FOUND = Kind(-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND")
INVALID_PARAMS = Kind(-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS")
INTERNAL = Kind(-32603, 500, "INTERNAL", "INTERNAL_ERROR")
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    422: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}
_RPC = {401: -32050, 403: -32051, 429: -32052, 503: -32053}
"""The codes of refusals for which A2A has none, in its range for errors of servers."""


class ProtocolError(RequestError):
    """An error that the protocol defines."""

    def __init__(
        self, kind: Kind, message: str, *, param: str | None = None, metadata: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, code=kind.reason.lower(), param=param)
        self.kind, self.status, self.metadata = kind, kind.http, metadata or {}


def task_not_found() -> ProtocolError:
    """Return the error for a task that is unknown, expired or another caller's."""
    message = "Task not found: its id is wrong, it has expired, or it belongs to another caller."
    return ProtocolError(TASK_NOT_FOUND, message)


def invalid(message: str, param: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, message, param=param)


def classify(error: RequestError) -> Kind:
    """Return the kind of an error. The HTTP status of an error of the host is kept."""
    if isinstance(error, ProtocolError):
        return error.kind
    if isinstance(error, UnsupportedMediaError):
        return CONTENT_TYPE_NOT_SUPPORTED._replace(http=error.status)
    if isinstance(error, NotFoundError):
        return METHOD_NOT_FOUND if error.code == "unknown_url" else TASK_NOT_FOUND
    if isinstance(error, MethodNotAllowedError):
        return METHOD_NOT_FOUND._replace(http=error.status, status=_STATUSES[405])
    if isinstance(error, InvalidRequestError):
        return PARSE_ERROR if error.code == "invalid_json" else INVALID_PARAMS
    if isinstance(error, ConflictError):
        return UNSUPPORTED_OPERATION._replace(http=error.status, status=_STATUSES[409])
    status = _STATUSES.get(error.status, "INTERNAL")
    rpc = _RPC.get(error.status, INVALID_REQUEST.rpc if error.status in (408, 413) else INTERNAL.rpc)
    return Kind(rpc, error.status, status, error.code.upper(), OWN_DOMAIN)


def is_reported_in_body(error: RequestError) -> bool:
    """Return True for an error of a call that was understood, which JSON-RPC reports with the HTTP status 200."""
    known = (ProtocolError, InvalidRequestError, NotFoundError, ConflictError)
    return isinstance(error, known) and error.code not in ("invalid_json", "unknown_url")


def _details(error: RequestError, kind: Kind) -> list[dict[str, Any]]:
    metadata = {name: value[:_MAX_METADATA_LENGTH] for name, value in getattr(error, "metadata", {}).items()}
    if not isinstance(error, ProtocolError):
        metadata["code"] = error.code
    if error.run_id is not None:
        metadata["runId"] = error.run_id
    details: list[dict[str, Any]] = [
        {"@type": _ERROR_INFO, "reason": kind.reason, "domain": kind.domain, "metadata": metadata}
    ]
    if error.param is not None:
        details.append(
            {"@type": _BAD_REQUEST, "fieldViolations": [{"field": error.param, "description": error.message}]}
        )
    return details


def rpc_error(call_id: bytes, error: RequestError) -> bytes:
    """Return the body of a JSON-RPC response with an error. `call_id` is the JSON of the id of the call."""
    kind = classify(error)
    body = {"code": kind.rpc, "message": error.message, "data": _details(error, kind)}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (call_id, msgspec.json.encode(body))


def http_error(error: RequestError) -> bytes:
    """Return the body of an HTTP response with an error."""
    kind = classify(error)
    status = {"code": kind.http, "status": kind.status, "message": error.message, "details": _details(error, kind)}
    return msgspec.json.encode({"error": status})
