"""The headers that Foundry expects of every answer of a hosted agent."""

import sys
from importlib.metadata import version
from urllib.parse import parse_qs

from starlette.types import Message, Scope, Send

from frontdesk.ids import RandomIds
from frontdesk.kit.names import is_plain_id

SESSION_HEADER = b"x-agent-session-id"
SERVER_HEADER = b"x-platform-server"
ERROR_HEADER = b"x-platform-error-source"
_REQUEST_HEADER = b"x-request-id"
_QUERY = "agent_session_id"
_LONGEST_QUERY = 4_096
_ids = RandomIds()


class FoundryAnswers:
    """Adds the headers to the answers of one host."""

    def __init__(self, session_id: str | None) -> None:
        """Take the sandbox that the process runs in, for requests that name none."""
        self._session_id = session_id if session_id is not None and is_plain_id(session_id) else None
        running = f"frontdesk/{version('frontdesk')} (python/{sys.version_info.major}.{sys.version_info.minor})"
        self._server = running.encode()

    def adding(self, scope: Scope, send: Send) -> Send:
        """Return what sends the answer to a request with the headers that it has not got yet."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *self._missing(scope, message)]}
            await send(message)

        return send_with_headers

    def _missing(self, scope: Scope, message: Message) -> list[tuple[bytes, bytes]]:
        there = {name.lower() for name, _ in message.get("headers", ())}
        headers = [(SERVER_HEADER, self._server), (_REQUEST_HEADER, _request_id(scope))]
        session_id = _named_session(scope) or self._session_id
        if session_id is not None:
            headers.append((SESSION_HEADER, session_id.encode()))
        source = error_source(message["status"])
        if source is not None:
            headers.append((ERROR_HEADER, source))
        return [(name, value) for name, value in headers if name not in there]


def error_source(status: int) -> bytes | None:
    """Return who is to look at an answer that is an error: the caller, the platform, or whoever wrote the agent."""
    if status < 400:
        return None
    if status < 500:
        return b"user"
    return b"platform" if status == 503 else b"upstream"


def _request_id(scope: Scope) -> bytes:
    given = next((value for name, value in scope.get("headers", ()) if name == _REQUEST_HEADER), None)
    if given is not None and is_plain_id(given.decode("latin-1")):
        return given
    return _ids.new("req").encode()


def _named_session(scope: Scope) -> str | None:
    query: bytes = scope.get("query_string", b"")
    if _QUERY.encode() not in query or len(query) > _LONGEST_QUERY:
        return None
    named = parse_qs(query.decode("latin-1")).get(_QUERY, [""])[-1]
    return named if is_plain_id(named) else None
