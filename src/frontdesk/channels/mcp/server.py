"""The SDK's server behind the channel: handlers of the protocol's methods, the transports of both eras, and sessions.

Each session of the older era belongs to the caller that opened it, and their number is limited.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import redirect_stdout
from importlib import metadata
from typing import Any, TypeVar

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    ClientCapabilities,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import Message, Receive, Scope, Send

from frontdesk.asgi.messages import Who
from frontdesk.channels.mcp.calls import BoundTool, Client, ToolCalls, elicitation, responses_in
from frontdesk.channels.mcp.config import BODY, CALLER, MCPConfig
from frontdesk.channels.mcp.progress import Progress
from frontdesk.channels.mcp.render import tool_result
from frontdesk.channels.mcp.tasks import TASKS, TaskParams, TaskUpdateParams, build_missing_tasks_error, task
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import (
    InvalidRequestError,
    NotFoundError,
    RequestError,
    TooManyRequestsError,
    UnavailableError,
)
from frontdesk.http.bodies import HttpPayload
from frontdesk.http.detached_runs import CancellableWork
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.identity import Caller

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]

VERSION_HEADER = b"mcp-protocol-version"
_STATUS_CODES = {400: INVALID_PARAMS, 404: INVALID_PARAMS, 422: INVALID_PARAMS, 405: INVALID_REQUEST}
_SERVER_ERROR = -32000
SESSION_HEADER = b"mcp-session-id"
_RETRY_SECONDS = 5.0


class Session:
    """An open session: its transport, its owner and the task that serves it."""

    def __init__(self, session_id: str, who: Who, idle_seconds: float) -> None:
        self.id = session_id
        self.who = who
        self.transport = StreamableHTTPServerTransport(mcp_session_id=session_id, idle_timeout=idle_seconds)
        self.task: asyncio.Task[None] | None = None
        self.is_ready = asyncio.Event()


class Sessions:
    """The open sessions of one channel in this process."""

    def __init__(
        self,
        server: Server[Any],
        new_id: Callable[[str], str],
        *,
        max_open: int,
        max_open_per_caller: int,
        idle_seconds: float,
    ) -> None:
        self._server = server
        self._new_id = new_id
        self._max_open, self._max_open_per_caller, self._idle_seconds = max_open, max_open_per_caller, idle_seconds
        self._open: dict[str, Session] = {}
        self._counts: Counter[Who] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    async def handle(self, scope: Scope, receive: Receive, send: Send, *, who: Who, opens: bool) -> None:
        """Answer a request of the older era. `opens` is true for the request that opens a session."""
        given = next((value for name, value in scope["headers"] if name == SESSION_HEADER), None)
        if given is not None:
            session = self._open.get(given.decode("latin-1"))
            # The session of another caller is not told from one that does not exist.
            if session is None or session.who != who:
                raise NotFoundError("Session not found. Initialize a new one.", code="session_not_found")
            await session.transport.handle_request(scope, receive, send)
            if session.transport.is_terminated:
                await self._close(session)
            return
        if not opens:
            raise InvalidRequestError("The header Mcp-Session-Id is missing. Send `initialize` first.")
        await self._begin(scope, receive, send, who)

    async def _begin(self, scope: Scope, receive: Receive, send: Send, who: Who) -> None:
        if len(self._open) >= self._max_open:
            raise UnavailableError("Too many open sessions.", retry_after=_RETRY_SECONDS)
        if self._counts[who] >= self._max_open_per_caller:
            raise TooManyRequestsError("You have too many open sessions.", retry_after=_RETRY_SECONDS)
        session = Session(self._new_id("mcps"), who, self._idle_seconds)
        self._open[session.id] = session
        self._counts[who] += 1
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            session.task = spawn_clean(self._serve(session))
            await session.is_ready.wait()
            await session.transport.handle_request(scope, receive, watch)
        finally:
            if not 200 <= status < 300:
                await self._close(session)

    async def _serve(self, session: Session) -> None:
        try:
            async with session.transport.connect() as (read_stream, write_stream):
                session.is_ready.set()
                with session.transport.idle_scope or anyio.CancelScope():
                    await serve_loop(self._server, read_stream, write_stream, lifespan_state={}, session_id=session.id)
        finally:
            session.is_ready.set()
            self._forget(session)

    def _forget(self, session: Session) -> None:
        if self._open.pop(session.id, None) is not None:
            self._counts[session.who] -= 1
            if not self._counts[session.who]:
                del self._counts[session.who]

    async def _close(self, session: Session) -> None:
        self._forget(session)
        if not session.transport.is_terminated:
            with anyio.CancelScope(shield=True):
                await session.transport.terminate()

    async def stop(self) -> None:
        """End all sessions."""
        tasks = [session.task for session in self._open.values()]
        await cancel_and_wait(*tasks, within=5.0)


class McpServer:
    """Answers the methods of the protocol for one channel."""

    def __init__(
        self,
        name: str,
        context: ChannelContext,
        config: MCPConfig,
        tools: Mapping[str, BoundTool],
        outputs: Mapping[str, Any],
        *,
        stateless: bool,
        local: Caller,
    ) -> None:
        """`local` is the caller over stdio, where requests have no credentials."""
        self._context, self._config, self._local = context, config, local
        self._calls = ToolCalls(name, context, config, tools)
        self._tools = [_tool(bound, outputs) for bound in tools.values()]
        self._work = CancellableWork(MCPError)
        target: TargetInfo = context.target
        self.sdk: Server[Any] = Server(
            target.name,
            version=metadata.version("frontdesk"),
            instructions=target.description or None,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            get_tool_input_schema=lambda tool: tools[tool].arguments.schema if tool in tools else None,
        )
        # Runs have spans of the host.
        self.sdk.middleware.clear()
        if config.tasks:
            self.sdk.extensions[TASKS] = {}
            self.sdk.add_request_handler("tasks/get", TaskParams, self._get_task)
            self.sdk.add_request_handler("tasks/update", TaskUpdateParams, self._update_task)
            self.sdk.add_request_handler("tasks/cancel", TaskParams, self._cancel_task)
        self.stateless = stateless
        self.sessions: Sessions | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._live: asyncio.Task[None] | None = None
        self._end = asyncio.Event()

    async def start(self) -> None:
        """Start the transports. A manager of the SDK can be started once."""
        config = self._config
        self._end = asyncio.Event()
        self._manager = StreamableHTTPSessionManager(
            self.sdk, stateless=True, max_request_body_size=config.max_body_bytes
        )
        if not self.stateless:
            self.sessions = Sessions(
                self.sdk,
                self._context.new_id,
                max_open=config.max_sessions,
                max_open_per_caller=config.max_sessions_per_caller,
                idle_seconds=config.session_idle_seconds,
            )
        ready = asyncio.Event()
        self._live = spawn_clean(self._run_manager(self._manager, ready))
        await ready.wait()

    async def _run_manager(self, manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
        # A scope of the SDK must be left in the task that has entered it.
        try:
            async with manager.run():
                ready.set()
                await self._end.wait()
        finally:
            ready.set()

    async def stop(self) -> None:
        if self.sessions is not None:
            await self.sessions.stop()
        self._end.set()
        if self._live is not None:
            await self._live
        await self._work.stop()
        self._manager = self.sessions = self._live = None

    async def serve_stdio(self) -> None:
        """Answer the messages of standard input until it ends. Meanwhile `print` writes to standard error."""
        # A buffered text would be written when the standard output is restored, between two messages.
        async with stdio_server() as (read_stream, write_stream):
            with redirect_stdout(sys.stderr):
                await self.sdk.run(read_stream, write_stream, self.sdk.create_initialization_options())

    async def handle(self, scope: Scope, receive: Receive, send: Send, *, method: str | None) -> None:
        """Answer an HTTP request. `method` is the method of the JSON-RPC message, if there is one."""
        manager = self._manager
        if manager is None:
            raise RuntimeError("the MCP channel is not started")
        version = next((value for name, value in scope["headers"] if name == VERSION_HEADER), None)
        is_modern = version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS
        if is_modern or self.sessions is None:
            return await manager.handle_request(scope, receive, send)
        caller: Caller = scope[CALLER]
        await self.sessions.handle(scope, receive, send, who=caller.identity.key, opens=method == "initialize")

    async def _list_tools(self, ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=self._tools)

    async def _call_tool(self, ctx: Context, params: CallToolRequestParams) -> Any:
        client = self._client(ctx)
        return await self._guard(self._work.run(self._calls.call(client, params)))

    async def _get_task(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        client = self._task_client(ctx)
        return await self._guard(self._work.run(self._task(client, params.task_id)))

    async def _task(self, client: Client, task_id: str) -> dict[str, Any]:
        calls = self._calls
        chain = await calls.find_chain(client.caller, task_id, "Unknown task.")
        if chain.status in ("queued", "running"):
            return task(chain)
        outcome = await calls.read(client.caller, chain.newest)
        questions = await calls.questions(client.caller, chain, outcome) if chain.status == "input_required" else []
        kept = await calls.get_kept_answers(chain) if questions else {}
        mine = [one for one in questions if one.is_mine and one.id not in kept]
        asks = {one.id: elicitation(one) for one in mine} if client.can_be_asked else {}
        people = dict.fromkeys(name for one in questions for name in one.waits_for)
        return task(chain, result=tool_result(outcome), asks=asks, waits_for=tuple(people))

    async def _update_task(self, ctx: Context, params: TaskUpdateParams) -> dict[str, Any]:
        client = self._task_client(ctx)

        async def update() -> None:
            chain = await self._calls.find_chain(client.caller, params.task_id, "Unknown task.")
            await self._calls.answer_task(client, chain, responses_in(params.input_responses))

        await self._guard(self._work.run(update()))
        return {"resultType": "complete"}

    async def _cancel_task(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        client = self._task_client(ctx)

        async def cancel() -> None:
            chain = await self._calls.find_chain(client.caller, params.task_id, "Unknown task.")
            await self._context.runs.cancel_chain(client.caller, chain.root.run_id)

        await self._guard(self._work.run(cancel()))
        return {"resultType": "complete"}

    def _task_client(self, ctx: Context) -> Client:
        client = self._client(ctx)
        if not client.is_modern:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        if not client.has_tasks:
            raise build_missing_tasks_error(f"{ctx.method} requires the tasks extension.")
        return client

    def _client(self, ctx: Context) -> Client:
        """Return the client of a request. The caller is in the request: a handler may work in another one's task."""
        session, request = ctx.session, ctx.request
        scope: Scope = {} if request is None else request.scope
        caller: Caller = self._local if request is None else scope[CALLER]
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        able = session.client_capabilities or ClientCapabilities()
        shows_forms = able.elicitation is not None and (
            able.elicitation.form is not None or able.elicitation.url is None
        )
        return Client(
            caller=caller,
            session=session,
            request_id=ctx.request_id,
            is_modern=is_modern,
            can_be_asked=shows_forms and (is_modern or session.can_send_request),
            has_tasks=self._config.tasks and is_modern and TASKS in (able.extensions or {}),
            progress=Progress(session, is_wanted="progress_token" in (ctx.meta or {})),
            payload=HttpPayload(scope[BODY], scope) if scope.get(BODY) is not None else None,
        )

    async def _guard(self, work: Awaitable[T]) -> T:
        """Return the result of a handler. Errors leave with their code and their text for callers."""
        try:
            return await work
        except RequestError as error:
            raise MCPError(get_code(error), error.message, error_data(error)) from None


def get_code(error: RequestError) -> int:
    """Return the JSON-RPC code of an error."""
    return _STATUS_CODES.get(error.status, INTERNAL_ERROR if error.status == 500 else _SERVER_ERROR)


def error_data(error: RequestError) -> dict[str, Any]:
    data: dict[str, Any] = {"code": error.code, "status": error.status}
    if error.param is not None:
        data["param"] = error.param
    if error.retry_after is not None:
        data["retryAfter"] = error.retry_after
    if error.run_id is not None:
        data["runId"] = error.run_id
    return data


def _tool(bound: BoundTool, outputs: Mapping[str, Any]) -> Tool:
    tool = bound.tool
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(bound.arguments.schema),
        output_schema=dict(outputs),
        annotations=ToolAnnotations(open_world_hint=True),
    )
