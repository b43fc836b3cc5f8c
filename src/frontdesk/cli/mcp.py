"""`frontdesk mcp`: serves the tools of a host over stdio, or forwards stdio to a running host."""

import asyncio
import json
import sys
import threading
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import redirect_stdout
from typing import Any, cast

import httpx

from frontdesk.channels.mcp import MCPChannel
from frontdesk.cli.load import load_host
from frontdesk.cli.serve import new_loop, set_up_logs
from frontdesk.cli.terminal import CommandError, list_findings
from frontdesk.concurrency.tasks import notify_from_threads, spawn_within, start_thread
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host import AgentFrameworkHost
from frontdesk.host.config import variable

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The largest message that is forwarded."""
MAX_OPEN = 100
"""The number of requests under way at once. More wait."""
CONNECT_SECONDS = 10.0
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_ERROR, _PARSE_ERROR = -32000, -32700
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")
_UNREACHABLE = "The host can't be reached at this URL. Start it with `frontdesk serve`."


def run(arguments: Namespace) -> int:
    if (arguments.reference is None) == (arguments.url is None):
        raise CommandError("give a host (module:host) or --url URL, and not both")
    if arguments.url is not None:
        return _forward(arguments)
    if arguments.key_env is not None:
        raise CommandError("--key-env is for --url: over stdio the host needs no key")
    try:
        # What a module prints is no message of the protocol.
        with redirect_stdout(sys.stderr):
            host = load_host(arguments.reference, arguments.state_dir)
            channel = find_channel(host, arguments.channel)
        set_up_logs(arguments.log_level)
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(_serve(host, channel))
    except ChannelConfigurationError as error:
        raise CommandError(list_findings(str(arguments.reference), error.findings)) from None


def _forward(arguments: Namespace) -> int:
    key = None
    if arguments.key_env is not None:
        key = variable(arguments.key_env)
        if not key:
            raise CommandError(f"--key-env: the environment variable {arguments.key_env} is not set")
    set_up_logs(arguments.log_level)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(forward_stdio(arguments.url, key))


def find_channel(host: AgentFrameworkHost, name: str | None) -> MCPChannel:
    """Return the MCP channel of a host, by its name if there are several."""
    found = [channel for channel in host.channels if isinstance(channel, MCPChannel)]
    if name is not None:
        found = [channel for channel in found if channel.name == name]
    if not found:
        raise CommandError("the host has no such MCPChannel. Add MCPChannel() to its channels")
    if len(found) > 1:
        names = ", ".join(channel.name for channel in found)
        raise CommandError(f"the host has several MCP channels: choose one of {names} with --channel")
    return found[0]


async def _serve(host: AgentFrameworkHost, channel: MCPChannel) -> int:
    try:
        async with host.lifespan():
            await channel.server.serve_stdio()
    except ChannelConfigurationError:
        raise
    except Exception as error:
        raise CommandError("the host did not start or did not end cleanly. See the log above for the reason") from error
    return 0


async def forward_stdio(url: str, key: str | None) -> int:
    """Forward until standard input ends. Returns the exit code of the command."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    # A call may take as long as it takes, and its client can cancel it.
    timeout = httpx.Timeout(CONNECT_SECONDS, read=None, pool=None)
    local = httpx.URL(url).host in _THIS_MACHINE
    limits = httpx.Limits(max_connections=MAX_OPEN + 1)
    async with httpx.AsyncClient(headers=headers, timeout=timeout, limits=limits, trust_env=not local) as client:
        forwarder = Forwarder(url, client)
        async for line in read_lines():
            await forwarder.accept(line)
        await forwarder.end()
    return 0


async def read_lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input. A line that is too long is cut, and is then no valid message."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    put = notify_from_threads(lines.put_nowait)
    slots = threading.Semaphore(MAX_OPEN)

    def read() -> None:
        while True:
            slots.acquire()
            line = sys.stdin.buffer.readline(MAX_LINE_BYTES)
            put(line)
            if not line:
                return

    # A thread of its own, because reading can't be cancelled.
    start_thread("frontdesk-stdin", read)
    while line := await lines.get():
        slots.release()
        yield line


class Forwarder:
    """One connection of a client over stdio, and its session with the host."""

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        self._url, self._client = url, client
        self._session: str | None = None
        self._version: str | None = None
        self._open: dict[str, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_OPEN)

    async def accept(self, line: bytes) -> None:
        """Forward a message. Requests are answered in tasks of their own, because each may take long."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return write(error_message(None, _PARSE_ERROR, "The line is not valid JSON."))
        if not isinstance(message, dict):
            return write(error_message(None, _PARSE_ERROR, "The line is not a JSON-RPC message."))
        request = cast("dict[str, Any]", message)
        await self._cancel(request)
        await self._slots.acquire()
        task = spawn_within(self._forward(request))
        self._others.add(task)
        task.add_done_callback(self._finish)
        if "id" in request and "method" in request:
            name = json.dumps(request["id"])
            self._open[name] = task
            task.add_done_callback(lambda ended: self._forget(name, ended))
        if request.get("method") in ("initialize", "notifications/initialized"):
            # What follows belongs to the session that this opens.
            await asyncio.wait([task])

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._slots.release()
        self._others.discard(task)

    def _forget(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._open.get(name) is task:
            del self._open[name]

    async def _cancel(self, message: Mapping[str, Any]) -> None:
        """End the request that a notification cancels. In the newer era the host sees only the end of the request."""
        if message.get("method") != "notifications/cancelled" or self._session is not None:
            return
        params: Any = message.get("params") or {}
        task = self._open.get(json.dumps(params.get("requestId")))
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _forward(self, message: dict[str, Any]) -> None:
        try:
            async with self._client.stream(
                "POST", self._url, content=json.dumps(message).encode(), headers=self._headers(message)
            ) as response:
                await self._answer(message, response)
        except (httpx.HTTPError, httpx.InvalidURL):
            self._fail(message, _UNREACHABLE)

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        headers: dict[str, str] = {}
        params: Any = message.get("params")
        values: Mapping[str, Any] = cast("Mapping[str, Any]", params) if isinstance(params, dict) else {}
        meta: Any = values.get("_meta")
        version = cast("Mapping[str, Any]", meta).get(_VERSION_KEY) if isinstance(meta, dict) else None
        method = message.get("method")
        if isinstance(version, str) and isinstance(method, str):
            headers |= {"mcp-protocol-version": version, "mcp-method": method}
            named = "taskId" if method in _TASK_METHODS else _NAMES.get(method, "")
            if isinstance(values.get(named), str):
                headers["mcp-name"] = values[named]
        elif self._version is not None and method != "initialize":
            headers["mcp-protocol-version"] = self._version
        if self._session is not None:
            headers["mcp-session-id"] = self._session
        return headers

    async def _answer(self, message: Mapping[str, Any], response: httpx.Response) -> None:
        kind = response.headers.get("content-type", "")
        if message.get("method") == "initialize" and response.is_success:
            self._session = response.headers.get("mcp-session-id")
        if kind.startswith("text/event-stream"):
            answered = False
            async for data in read_data(response):
                answered = self._write(message, data) or answered
            if not answered:
                self._fail(message, "The host ended the response before its result.")
            return
        body = await response.aread()
        if not body.strip():
            if response.is_error:
                self._fail(message, f"The host answered with status {response.status_code}.")
            return
        if not kind.startswith("application/json") or not self._write(message, body):
            self._fail(message, f"The host answered with status {response.status_code}, and not in JSON-RPC.")

    def _write(self, message: Mapping[str, Any], data: bytes | str) -> bool:
        """Write a message of the host. Return True if it is the answer to the request."""
        try:
            out = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(out, dict) or "jsonrpc" not in out:
            return False
        answer = cast("dict[str, Any]", out)
        is_answer = "result" in answer or "error" in answer
        if is_answer and "id" in message:
            # An error that the host found before it read the message has no id.
            answer["id"] = message["id"] if answer.get("id") is None else answer["id"]
        if message.get("method") == "initialize" and isinstance(answer.get("result"), dict):
            self._version = answer["result"].get("protocolVersion")
        if "id" in message or not is_answer:
            write(answer)
        return is_answer

    def _fail(self, message: Mapping[str, Any], text: str) -> None:
        if "id" in message and "method" in message:
            write(error_message(message["id"], _SERVER_ERROR, text))

    async def end(self) -> None:
        """Wait for the answers under way, then end the session."""
        if self._others:
            await asyncio.wait(self._others)
        if self._session is not None:
            try:
                await self._client.delete(self._url, headers=self._headers({}), timeout=CONNECT_SECONDS)
            except httpx.HTTPError:
                # The session ends by itself after a while.
                return


async def read_data(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the data of each event of a stream."""
    lines: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def error_message(message_id: Any, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": text}}


def write(message: Mapping[str, Any]) -> None:
    """Write one message to standard output, as one line."""
    sys.stdout.buffer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()
