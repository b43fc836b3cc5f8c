"""Calls the connector of Bot Service. Our token is sent to its servers only, and is in no log and no error."""

import contextlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from frontdesk.activity.clouds import ServiceHosts
from frontdesk.activity.schema import Created, Problem, Reference, Refusal
from frontdesk.activity.tokens import BotTokens
from frontdesk.errors import (
    FileTooLargeError,
    PushError,
    PushNotEditableError,
    PushRefusedError,
    PushUnknownError,
)
from frontdesk.outbound.platform import UNREADABLE, PlatformHttp, PlatformResponse, push_error_from
from frontdesk.secret import Secret

MAX_RESPONSE_BYTES: Final = 256 * 1024
MAX_SERVERS: Final = 32
"""The number of servers to which connections are kept. All of them are servers of Bot Service."""
MAX_CODE_LENGTH = 64
TOO_LARGE = "too_large"
STREAM_CANCELED = "stream_canceled"
STREAM_TIMEOUT = "stream_timeout"
STREAM_NOT_ALLOWED = "stream_not_allowed"
_TOKEN_WAIT = 60.0
_CONFLICT_WAIT = 0.5
_FLOOD_WAIT = 2.0

# The texts are the only difference between three refusals of one code. Each pattern is looked for in lower case.
_STREAM_TEXTS = (
    ("cancel", STREAM_CANCELED),
    ("exceeded", STREAM_TIMEOUT),
    ("already completed", STREAM_TIMEOUT),
)


class ConnectorClient:
    """A client of the connector. All calls raise a `PushError` that determines how to continue."""

    def __init__(self, tokens: BotTokens, hosts: ServiceHosts, *, timeout: float = 15.0) -> None:
        self._tokens, self._hosts, self._timeout = tokens, hosts, timeout
        self._servers: OrderedDict[str, PlatformHttp] = OrderedDict()

    async def send(self, reference: Reference, activity: Mapping[str, Any], *, reply_to: str = "") -> str | None:
        """Send an activity into a conversation. Return its id; Teams does not name that of every activity."""
        path = f"v3/conversations/{_quote(reference.conversation)}/activities"
        if reply_to:
            path = f"{path}/{_quote(reply_to)}"
        return _read_created_id(await self._call("POST", reference, path, activity))

    async def update(self, reference: Reference, activity_id: str, activity: Mapping[str, Any]) -> None:
        path = f"v3/conversations/{_quote(reference.conversation)}/activities/{_quote(activity_id)}"
        await self._call("PUT", reference, path, {**activity, "id": activity_id}, changes=True)

    async def delete(self, reference: Reference, activity_id: str) -> None:
        path = f"v3/conversations/{_quote(reference.conversation)}/activities/{_quote(activity_id)}"
        await self._call("DELETE", reference, path, None, changes=True)

    async def create_direct(self, reference: Reference) -> str:
        """Create the direct chat with a person, or return the existing one."""
        body: dict[str, Any] = {
            "bot": {"id": reference.bot},
            "members": [{"id": reference.user}],
            "isGroup": False,
            "tenantId": reference.tenant,
            "channelData": {"tenant": {"id": reference.tenant}},
        }
        created = _read_created_id(await self._call("POST", reference, "v3/conversations", body))
        if not created:
            # Whether it exists is no matter: it is created once only, and is asked for again.
            raise PushError("The connector names no conversation.", code="no_conversation")
        return created

    async def download(self, url: str, *, max_bytes: int) -> bytes:
        """Return an attachment of Bot Service. The URL must be one of its servers and below `v3/attachments`."""
        path = urlsplit(self._hosts.check(url)).path
        if "/v3/attachments/" not in path:
            # Otherwise a person could have us read other data of the bot with its token.
            raise PushRefusedError("The file's URL is not that of an attachment.", code="host_refused")
        http = self._server_for(url, allow_private=self._hosts.loopback is not None)
        try:
            response = await self._call_with_token(http, "GET", url, b"", "", max_bytes=max_bytes)
        except PushUnknownError as error:
            if error.code == UNREADABLE:
                raise FileTooLargeError(max_bytes) from None
            raise PushError("The file can't be fetched at the moment.", code="unreachable") from None
        return _check(response).body

    async def _call(
        self,
        method: str,
        reference: Reference,
        path: str,
        body: Mapping[str, Any] | None,
        *,
        changes: bool = False,
    ) -> PlatformResponse:
        base = self._hosts.check(reference.url, emulator=reference.emulator)
        content = b"" if body is None else msgspec.json.encode(body)
        http = self._server_for(base, allow_private=reference.emulator or self._hosts.loopback is not None)
        response = await self._call_with_token(http, method, f"{base}{path}", content, reference.audience)
        return _check(response, changes=changes)

    def _server_for(self, url: str, *, allow_private: bool) -> PlatformHttp:
        """Return the client of the server of a URL that was verified. It calls no other server."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._servers:
            self._servers[origin] = PlatformHttp(
                origin, timeout=self._timeout, max_bytes=MAX_RESPONSE_BYTES, allow_private=allow_private
            )
        self._servers.move_to_end(origin)
        if len(self._servers) > MAX_SERVERS:
            # Its calls go on, and its idle connections are closed with it.
            self._servers.popitem(last=False)
        return self._servers[origin]

    async def _call_with_token(
        self, http: PlatformHttp, method: str, url: str, content: bytes, audience: str, *, max_bytes: int | None = None
    ) -> PlatformResponse:
        """Call with our token. One that is refused is renewed once."""
        stale: Secret | None = None
        for _ in range(2):
            token = await self._tokens.get(audience, stale=stale)
            headers = {"Authorization": f"Bearer {token.reveal()}"}
            if content:
                headers["Content-Type"] = "application/json; charset=utf-8"
            response = await http.request(method, url, content=content, headers=headers, max_bytes=max_bytes)
            if response.status != 401:
                return response
            stale = token
        raise PushError(
            "The connector refuses the token of the bot. Check app_id, credential and the type of the bot.",
            code="unauthorized",
            retry_after=_TOKEN_WAIT,
            everywhere=True,
        )

    async def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        for http in self._servers.values():
            await http.close()
        await self._tokens.close()


def _quote(text: str) -> str:
    # A dot alone would be another path to servers that resolve it.
    return quote(text, safe="").replace(".", "%2E") if text.strip(".") == "" else quote(text, safe="")


def _read_created_id(response: PlatformResponse) -> str | None:
    """Return the id of what was created. The final message of a stream is answered with an empty body."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(response.body, type=Created).id or None
    return None


def _check(response: PlatformResponse, *, changes: bool = False) -> PlatformResponse:
    """Return a response that is a success. Otherwise raise the error that determines how to continue. Pure."""
    if response.ok:
        return response
    problem = _problem(response.body)
    code = _code(problem, response.status)
    text = f"The connector answered {response.status}, {code}."
    status = response.status
    if status == 413:
        raise PushRefusedError(text, code=TOO_LARGE)
    if status == 412:
        raise PushError(text, code=code, retry_after=_CONFLICT_WAIT)
    if status == 405 or (changes and status == 404):
        raise PushNotEditableError(text, code=code)
    if status == 403 and "stream" in code.lower():
        raise PushRefusedError(text, code=_stream_code(problem))
    error = push_error_from(response, code=code)
    if status == 429 and error.retry_after is None:
        error.retry_after = _FLOOD_WAIT
    raise error


def _problem(body: bytes) -> Problem:
    try:
        return msgspec.json.decode(body, type=Refusal).error or Problem()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Problem()


def _code(problem: Problem, status: int) -> str:
    code = problem.code or ""
    plain = code.isascii() and code.replace("_", "").isalnum() and len(code) <= MAX_CODE_LENGTH
    return code if plain else f"status_{status}"


def _stream_code(problem: Problem) -> str:
    """Return whether a stream was stopped by its reader, took too long, or is not allowed in this conversation."""
    said = (problem.message or "").lower()
    return next((code for mark, code in _STREAM_TEXTS if mark in said), STREAM_NOT_ALLOWED)
