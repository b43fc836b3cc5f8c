"""Conventions of Foundry's hosted agents: ids, settings, headers and error sources.

An id is a prefix, an underscore, 18 characters for the partition, and 32 characters for the object. All objects in a
chain of responses have the same partition. Older ids have 48 characters after the underscore. Their last 16 characters
are the partition.
"""

import hashlib
import re
import string
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, Self
from urllib.parse import parse_qs

from starlette.types import Message, Scope, Send

from frontdesk.identifiers import is_plain_id
from frontdesk.ids import RandomIds, new_alphanumerics, new_secret

_PARTITION_DIGITS: Final = 16
_SUFFIX: Final = "00"
_ENTROPY_CHARACTERS: Final = 32
_ALPHABET: Final = string.digits + string.ascii_letters
_BODY = re.compile(rf"[0-9A-Za-z]{{{_PARTITION_DIGITS + len(_SUFFIX)}}}[0-9A-Za-z]{{{_ENTROPY_CHARACTERS}}}")
_OLDER_BODY = re.compile(r"[0-9A-Za-z]{48}")
_SERVICE_PREFIX: Final = "caresp"
_RESPONSE_PREFIXES = (_SERVICE_PREFIX, "resp")

ITEM_PREFIXES: Final = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "computer_call": "cu",
    "computer_call_output": "cuo",
    "file_search_call": "fs",
    "web_search_call": "ws",
    "image_generation_call": "ig",
    "code_interpreter_call": "ci",
    "shell_call": "lsh",
    "shell_call_output": "lsho",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
}
"""The prefixes of the ids of items, by the types of items that are written."""


def foundry_response_id(previous: str | None = None) -> str:
    """Create a response id, in the partition of the response that it continues, if any."""
    return f"{_SERVICE_PREFIX}_{get_partition(previous) or _new_partition()}{new_alphanumerics(_ENTROPY_CHARACTERS)}"


def item_id(kind: str, beside: str, of: str | None = None) -> str:
    """Create an item id in the partition of another id. With `of`, the result is deterministic."""
    entropy = new_alphanumerics(_ENTROPY_CHARACTERS) if of is None else _derive(of)
    return f"{ITEM_PREFIXES[kind]}_{get_partition(beside) or _new_partition()}{entropy}"


def is_response_id(value: str | None) -> bool:
    """Return True if the service accepts the text as a response id."""
    prefix, _, _ = (value or "").partition("_")
    return prefix in _RESPONSE_PREFIXES and get_partition(value) is not None


def is_service_id(value: str | None) -> bool:
    """Return True if the service can have created this response id."""
    return (value or "").startswith(f"{_SERVICE_PREFIX}_") and get_partition(value) is not None


def get_partition(value: str | None) -> str | None:
    """Return the partition of an id, or None if it is not in the format of the service."""
    _, _, body = (value or "").partition("_")
    if _BODY.fullmatch(body):
        return body[:-_ENTROPY_CHARACTERS]
    return body[-_PARTITION_DIGITS:] + _SUFFIX if _OLDER_BODY.fullmatch(body) else None


def _new_partition() -> str:
    return new_secret()[:_PARTITION_DIGITS] + _SUFFIX


def _derive(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


HOSTED: Final = "FOUNDRY_HOSTING_ENVIRONMENT"
SESSION: Final = "FOUNDRY_AGENT_SESSION_ID"
_MODELS = ("MODEL_DEPLOYMENT_NAME", "AZURE_AI_MODEL_DEPLOYMENT_NAME")


@dataclass(frozen=True)
class FoundrySettings:
    """The names of the agent, its sandbox and its model, as far as known."""

    name: str | None = None
    version: str | None = None
    session_id: str | None = None
    """The sandbox in which the process runs, which is no conversation: users may share it."""
    model: str | None = None

    @classmethod
    def of(cls, variable: Callable[[str], str | None]) -> Self:
        models = (variable(name) for name in _MODELS)
        return cls(
            name=variable("FOUNDRY_AGENT_NAME"),
            version=variable("FOUNDRY_AGENT_VERSION"),
            session_id=variable(SESSION),
            model=next((model for model in models if model), None),
        )

    @property
    def agent_reference(self) -> dict[str, Any] | None:
        """Return the reference to the agent in responses, or None without an agent name."""
        if self.name is None:
            return None
        version = {} if self.version is None else {"version": self.version}
        return {"type": "agent_reference", "name": self.name, **version}


SESSION_HEADER = b"x-agent-session-id"
SERVER_HEADER = b"x-platform-server"
ERROR_HEADER = b"x-platform-error-source"
_REQUEST_HEADER = b"x-request-id"
_QUERY = "agent_session_id"
_MAX_QUERY_LENGTH = 4_096
_ids = RandomIds()


class FoundryAnswers:
    """Adds the Foundry headers to the responses of one host."""

    def __init__(self, session_id: str | None) -> None:
        """`session_id` is the sandbox of the process, for requests that name none."""
        self._session_id = session_id if session_id is not None and is_plain_id(session_id) else None
        running = f"frontdesk/{version('frontdesk')} (python/{sys.version_info.major}.{sys.version_info.minor})"
        self._server = running.encode()

    def add_headers(self, scope: Scope, send: Send) -> Send:
        """Return a `send` that adds the missing headers to the response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *self._list_missing(scope, message)]}
            await send(message)

        return send_with_headers

    def _list_missing(self, scope: Scope, message: Message) -> list[tuple[bytes, bytes]]:
        there = {name.lower() for name, _ in message.get("headers", ())}
        headers = [(SERVER_HEADER, self._server), (_REQUEST_HEADER, _request_id(scope))]
        session_id = _find_named_session(scope) or self._session_id
        if session_id is not None:
            headers.append((SESSION_HEADER, session_id.encode()))
        source = error_source(message["status"])
        if source is not None:
            headers.append((ERROR_HEADER, source))
        return [(name, value) for name, value in headers if name not in there]


def error_source(status: int) -> bytes | None:
    """Return the party responsible for an error response: the caller, the platform or the agent's author."""
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


def _find_named_session(scope: Scope) -> str | None:
    query: bytes = scope.get("query_string", b"")
    if _QUERY.encode() not in query or len(query) > _MAX_QUERY_LENGTH:
        return None
    named = parse_qs(query.decode("latin-1")).get(_QUERY, [""])[-1]
    return named if is_plain_id(named) else None
