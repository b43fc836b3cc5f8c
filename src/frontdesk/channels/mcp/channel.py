"""`MCPChannel`: its routes, its access checks and its errors. The rest is loaded when the host is built."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from frontdesk.asgi.messages import RawHeaders, error_headers, send_json
from frontdesk.channels.mcp.config import BODY, CALLER, MCPConfig, MCPSettings, MCPTool
from frontdesk.channels.mcp.schema import output_schema, tool_arguments
from frontdesk.errors import ChannelConfigurationError, InvalidRequestError, RequestError
from frontdesk.errors.base import install_hint
from frontdesk.http.bodies import check_shape
from frontdesk.http.channel import HttpChannel, takes_settings
from frontdesk.http.endpoint import HttpCall
from frontdesk.interfaces.auth import OneAuth, ShowsIssuers
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.base import FrozenStruct
from frontdesk.models.identity import ANONYMOUS, Caller, ChannelIdentity

if TYPE_CHECKING:
    from frontdesk.channels.mcp.server import McpServer

_PARSE_ERROR, _INVALID_REQUEST, _HEADER_MISMATCH, _INTERNAL_ERROR, _SERVER_ERROR = (
    -32700,
    -32600,
    -32020,
    -32603,
    -32000,
)
WELL_KNOWN = "/oauth-protected-resource"
_CHALLENGE = b"www-authenticate"
_NOT_MESSAGE = "The body must be one JSON-RPC message."
_TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")


class HeaderMismatchError(InvalidRequestError):
    """A header does not match the body."""

    code = "header_mismatch"


class MCPChannel(HttpChannel):
    """The target as tools of the Model Context Protocol, at `POST /mcp`."""

    run_prefix = "mcp"

    @takes_settings(MCPConfig)
    def __init__(self, *, name: str = "mcp", path: str = "/mcp", **settings: Unpack[MCPSettings]) -> None:
        self._config = config = MCPConfig(**settings)
        super().__init__(config, name=name, path=path)
        self._issuers = find_issuers(self.auth)
        self._server: McpServer | None = None

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._server = self._build(context)
        contribution = super().contribute(context)
        known: list[Route] = []
        if self._issuers is not None:
            known.append(Route(f"{WELL_KNOWN}{self.path}", endpoint=self._describe_resource))
        return ChannelContribution(
            routes=contribution.routes,
            well_known=known,
            on_serving=[self._server.start],
            on_shutdown=[self._server.stop],
        )

    def _build(self, context: ChannelContext) -> "McpServer":
        try:
            from frontdesk.channels.mcp.calls import BoundTool
            from frontdesk.channels.mcp.server import McpServer
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "jsonschema"):
                raise
            raise ChannelConfigurationError([f"MCPChannel needs its extra: {install_hint('mcp')}"]) from None
        tools = list_tools(self._config, context.target)
        wrong = [
            f"channel {self.name!r}: tool {tool.name!r}: the host has no target {tool.target!r}"
            for tool in tools
            if tool.target not in (None, context.target.name)
        ]
        if wrong:
            raise ChannelConfigurationError(wrong)
        bound = {tool.name: BoundTool(tool, tool_arguments(context.target, tool.input_schema)) for tool in tools}
        stateless = context.shares_store if self._config.stateless is None else self._config.stateless
        return McpServer(
            self.name,
            context,
            self._config,
            bound,
            output_schema(context.target),
            stateless=stateless,
            local=self.local_caller,
        )

    @property
    def server(self) -> "McpServer":
        """The server of the SDK, for transports other than HTTP. Set when the host is built."""
        if self._server is None:
            raise RuntimeError("the host of this MCPChannel is not built")
        return self._server

    @cached_property
    def local_caller(self) -> Caller:
        """The caller over stdio: the person whose program has started the process."""
        return Caller(identity=ChannelIdentity(channel=self.name, native_id=ANONYMOUS), anonymous=True)

    def warnings(self) -> list[str]:
        public_url = getattr(getattr(self, "context", None), "public_url", None)
        if self._issuers is None or not isinstance(public_url, str):
            return []
        warning = audience_warning(self._issuers, f"{public_url}{self.path}")
        return [] if warning is None else [warning]

    def routes(self) -> list[Route]:
        # Without sessions there is no stream to open and nothing to end.
        sessions = {} if self.server.stateless else {"GET": self._handle, "DELETE": self._handle}
        endpoint = self.endpoint(runs=["POST"], POST=self.post, **sessions)
        return [Route("/", endpoint=endpoint), *self.unknown_paths("")]

    async def post(self, call: HttpCall) -> None:
        """Answer a JSON-RPC message."""
        envelope, raw = await self.read_body(call, decode)
        try:
            # Also before a call, whose refusal would otherwise have the status 200 of an answered message.
            await self.context.allow(call.caller)
            check_task_header(envelope, call)
            shows_body = self.run_hook is not None
            scope = {**call.scope, CALLER: call.caller, BODY: _object(raw) if shows_body else None}
            scope["headers"] = normalize_headers(call.scope)
            await self.server.handle(scope, replay(raw, call.receive), note_begin(call), method=envelope.method)
        except RequestError as error:
            if call.begun:
                raise
            await self._send_error(call, error, envelope.id)

    async def _handle(self, call: HttpCall) -> None:
        await self.context.allow(call.caller)
        scope = {**call.scope, CALLER: call.caller}
        await self.server.handle(scope, call.receive, note_begin(call), method=None)

    async def _describe_resource(self, request: Request) -> Response:
        """Return the metadata of the resource. It is public: clients without a token read it to get one."""
        issuers = self._issuers
        if issuers is None:
            return Response(status_code=404)
        resource = f"{base_url(self.context.public_url, request.scope)}{self.path}"
        body = msgspec.json.encode(metadata(issuers, resource, self.context.target.name))
        return Response(body, media_type="application/json", headers={"access-control-allow-origin": "*"})

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        await self._send_error(call, error, None)

    async def _send_error(self, call: HttpCall, error: RequestError, message_id: str | int | None) -> None:
        headers = [*error_headers(error), (b"x-request-id", call.answer_id)]
        if self._issuers is not None:
            url = f"{base_url(self.context.public_url, call.scope)}/.well-known{WELL_KNOWN}{self.path}"
            headers = with_metadata(headers, url, self._issuers.scopes)
        await send_json(call.send, error.status, error_body(error, message_id), headers)


def list_tools(config: MCPConfig, target: TargetInfo) -> list[MCPTool]:
    """Return the tools of the channel: those of the operator, or one for the target."""
    if config.tools is not None:
        return list(config.tools)
    name = "".join(char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in target.name)[:64]
    description = target.description or f"Sends a message to {target.name} and returns the answer."
    return [MCPTool(name=name or "ask", title=target.name, description=description)]


class Envelope(FrozenStruct, frozen=True, kw_only=True):
    """The parts of a message that are needed before the SDK reads it."""

    method: str | None = None
    id: str | int | None = None
    task_id: str | None = None


class _Params(msgspec.Struct):
    task_id: Any = msgspec.field(default=None, name="taskId")


class _Body(msgspec.Struct):
    method: Any = None
    id: Any = None
    params: msgspec.Raw = msgspec.Raw(b"")


_bodies = msgspec.json.Decoder(_Body)
_params = msgspec.json.Decoder(_Params)


def decode(raw: bytes, max_values: int) -> Envelope:
    """Read a message within the limits of size and depth."""
    check_shape(raw, max_values)
    try:
        body = _bodies.decode(raw)
        method = body.method if isinstance(body.method, str) else None
        message_id = body.id if isinstance(body.id, (str, int)) else None
        task_id = _params.decode(body.params).task_id if method in _TASK_METHODS and body.params else None
        return Envelope(method=method, id=message_id, task_id=task_id if isinstance(task_id, str) else None)
    except msgspec.ValidationError:
        raise InvalidRequestError(_NOT_MESSAGE) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The body is not valid JSON: {error}.", code="invalid_json") from None


def check_task_header(envelope: Envelope, call: HttpCall) -> None:
    """Reject a request about a task whose header `Mcp-Name` does not name it, as routers rely on it."""
    if envelope.task_id is None or b"mcp-method" not in call.headers:
        return
    if call.headers.get(b"mcp-name", b"").strip() != envelope.task_id.encode("utf-8", "replace"):
        raise HeaderMismatchError("The header Mcp-Name must be the id of the task.")


def _object(raw: bytes) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError):
        return {}


def normalize_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers for the SDK: without blanks around values, and with an `Accept`, whose absence means all."""
    headers = [(name, value.strip()) for name, value in scope["headers"]]
    return headers if any(name == b"accept" for name, _ in headers) else [*headers, (b"accept", b"*/*")]


def replay(raw: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields a body that has been read."""
    is_read = False

    async def again() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": raw, "more_body": False}

    return again


def note_begin(call: HttpCall) -> Send:
    """Return a `send` that notes the beginning of the response."""

    async def send(message: Message) -> None:
        call.begun = True
        await call.send(message)

    return send


def error_body(error: RequestError, message_id: str | int | None = None) -> bytes:
    """Return an error as a JSON-RPC message. The id is that of the request, if it could be read."""
    if isinstance(error, HeaderMismatchError):
        code = _HEADER_MISMATCH
    elif error.code == "invalid_json":
        code = _PARSE_ERROR
    elif error.status in (400, 404, 405, 413, 415):
        code = _INVALID_REQUEST
    else:
        code = _INTERNAL_ERROR if error.status == 500 else _SERVER_ERROR
    data: dict[str, Any] = {"code": error.code, "status": error.status}
    if error.param is not None:
        data["param"] = error.param
    if error.retry_after is not None:
        data["retryAfter"] = error.retry_after
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": error.message, "data": data}}
    )


def find_issuers(auth: OneAuth | None) -> ShowsIssuers | None:
    """Return the auth if it accepts tokens of OAuth issuers."""
    return auth if isinstance(auth, ShowsIssuers) and auth.authorization_servers else None


def base_url(public_url: str | None, scope: Scope) -> str:
    """Return the URL of the host for others. Without a public one, the URL of the request."""
    if public_url is not None:
        return public_url
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return f"{scope['scheme']}://{host}{scope.get('root_path', '')}"


def metadata(auth: ShowsIssuers, resource: str, name: str) -> dict[str, Any]:
    """Return the metadata of the protected resource."""
    document: dict[str, Any] = {
        "resource": resource,
        "authorization_servers": list(auth.authorization_servers),
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
    if auth.scopes:
        document["scopes_supported"] = list(auth.scopes)
    return document


def with_metadata(headers: RawHeaders, url: str, scopes: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an error. Its challenge names the metadata, and the scopes that are needed."""
    more = f'resource_metadata="{url}"'
    if scopes:
        more += f', scope="{" ".join(scopes)}"'
    return [(name, _join(value, more) if name == _CHALLENGE else value) for name, value in headers]


def _join(challenge: bytes, more: str) -> bytes:
    separator = b" " if challenge == b"Bearer" else b", "
    return challenge + separator + more.encode("latin-1", "replace")


def audience_warning(auth: ShowsIssuers, resource: str) -> str | None:
    """Return the warning if clients that follow RFC 8707 get tokens that are rejected."""
    if resource in auth.audiences or f"{resource}/" in auth.audiences:
        return None
    return (
        f"auth: no audience of BearerAuth is {resource!r}. MCP clients request tokens for this URL (RFC 8707). Add it "
        "to audience=, unless the authorization server maps it to one of its own audiences"
    )
