"""An answer leaves as uvicorn would have sent it, by the short way or by the long one."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from frontdesk import ServerLimits
from frontdesk.auth.verifier import HttpVerifier
from frontdesk.errors import RequestError
from frontdesk.http.endpoint import HttpCall, HttpEndpoint
from frontdesk.server.uvicorn_server import Server
from tests.scenarios.desk import DEADLINE, until

Script = Sequence[Any]
START, BODY = "http.response.start", "http.response.body"
LAST = b"GET /last HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"


def head(*headers: tuple[bytes, bytes], status: int = 200) -> Any:
    return {"type": START, "status": status, "headers": list(headers)}


def body(text: bytes, *, more: bool = False) -> Any:
    return {"type": BODY, "body": text, "more_body": more}


def length(text: bytes) -> tuple[bytes, bytes]:
    return (b"content-length", b"%d" % len(text))


SCRIPTS: dict[str, Script] = {
    "plain": [head(length(b"hello")), body(b"hello")],
    "nothing": [head((b"content-length", b"0"), status=204), {"type": BODY}],
    "in pieces": [head(length(b"hello")), body(b"he", more=True), body(b"llo")],
    "without a length": [head((b"content-type", b"text/plain")), body(b"hello")],
    "a stream": [head(), body(b"a", more=True), body(b"b", more=True), body(b"")],
    "chunked by name": [head((b"transfer-encoding", b"chunked")), body(b"hello")],
    "close": [head(length(b"hello"), (b"connection", b"close")), body(b"hello")],
    "too long": [head(length(b"hello")), body(b"hello, and more")],
    "too short": [head(length(b"hello")), body(b"he")],
    "no number": [head((b"content-length", b"many")), body(b"hello")],
    "a length of nothing before another": [head((b"content-length", b""), (b"content-length", b"5")), body(b"hello")],
    "a line end in a value": [head(length(b"hello"), (b"x", b"a\r\nset-cookie: b")), body(b"hello")],
    "a line end in a name": [head(length(b"hello"), (b"x\r\ny", b"a")), body(b"hello")],
    "a colon in a name": [head(length(b"hello"), (b"x:", b"a")), body(b"hello")],
    "capitals": [head(length(b"hello"), (b"X-Thing", b"a")), body(b"hello")],
    "two lengths": [head(length(b"hello"), length(b"hell")), body(b"hello")],
    "a length of another name": [head((b"x-content-length", b"5")), body(b"hello")],
    "a length and chunked": [head(length(b"hello"), (b"transfer-encoding", b"chunked")), body(b"hello")],
    "empty pieces": [head(), body(b"", more=True), body(b"a", more=True), body(b"", more=True), body(b"b")],
    "a head in a stream": [head(), body(b"a", more=True), head(), body(b"b")],
    "more after a stream": [head(), body(b"a", more=True), body(b""), body(b"b", more=True)],
    "body first": [body(b"hello")],
    "more after the end": [head(length(b"hello")), body(b"hello"), body(b"more")],
    "an error before": [RuntimeError("before")],
    "an error after the body": [head(length(b"hello")), body(b"hello"), RuntimeError("after")],
    "an error in the midst": [head(), body(b"he", more=True), RuntimeError("in the midst")],
}


@asynccontextmanager
async def serve_script(script: Script, *, bounded: bool) -> AsyncIterator[int]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        said = await receive()
        if scope["path"] == "/last":
            script_now: Script = [head(length(b"last")), body(b"last")]
        else:
            script_now = script
            assert said == {"type": "http.request", "body": b"question", "more_body": False}
        for message in script_now:
            if isinstance(message, Exception):
                raise message
            await send(message)

    async with serve_app(app, bounded=bounded) as port:
        yield port


@asynccontextmanager
async def serve_app(app: ASGIApp, *, bounded: bool, root_path: str = "") -> AsyncIterator[int]:
    config = uvicorn.Config(
        app, port=0, log_config=None, lifespan="off", access_log=False, http="httptools", root_path=root_path
    )
    server = Server(config, ServerLimits() if bounded else None)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await serving


async def send_twice(script: Script, *, bounded: bool, method: bytes = b"POST", version: bytes = b"1.1") -> bytes:
    """Return all that a client gets that asks twice on a connection."""
    ask = b"%b / HTTP/%b\r\nhost: h\r\ncontent-length: 8\r\n\r\nquestion" % (method, version)
    async with serve_script(script, bounded=bounded) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ask + LAST)
        async with asyncio.timeout(DEADLINE):
            said = await reader.read()
        writer.close()
    return re.sub(rb"date: [^\r]*\r\n", b"", said)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_an_answer_is_sent_as_uvicorn_sends_it(name: str) -> None:
    said = await send_twice(SCRIPTS[name], bounded=True)
    assert said == await send_twice(SCRIPTS[name], bounded=False)


@pytest.mark.parametrize(("method", "version"), [(b"HEAD", b"1.1"), (b"POST", b"1.0")])
async def test_other_requests_are_answered_as_uvicorn_answers_them(method: bytes, version: bytes) -> None:
    script = [head(length(b"hello")), body(b"" if method == b"HEAD" else b"hello")]
    said = await send_twice(script, bounded=True, method=method, version=version)
    assert said == await send_twice(script, bounded=False, method=method, version=version)


@pytest.mark.parametrize("rest", [[], [RuntimeError("between")]], ids=["returns", "raises"])
async def test_an_app_that_ends_between_head_and_body_is_answered_with_an_error(rest: Script) -> None:
    said = await send_twice([head(length(b"hello")), *rest], bounded=True)
    assert said.startswith(b"HTTP/1.1 500 ")
    assert b"Internal Server Error" in said


async def test_head_and_body_leave_in_one_write() -> None:
    async with serve_script(SCRIPTS["plain"], bounded=True) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 8\r\n\r\nquestion")
        async with asyncio.timeout(DEADLINE):
            assert (await reader.read(65536)).endswith(b"\r\n\r\nhello")
        writer.close()


async def read_scope(asked: bytes, *, bounded: bool, root_path: str = "") -> Scope:
    """Return what the app is told of a request."""
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append({**scope, "server": None, "extensions": None, "body": await receive()})
        await send(head(length(b"")))
        await send(body(b""))

    async with serve_app(app, bounded=bounded, root_path=root_path) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(asked)
        async with asyncio.timeout(DEADLINE):
            await reader.readuntil(b"200 OK")
        writer.close()
    # The port of the client's end is another one each time.
    return {**scopes[0], "client": scopes[0]["client"][0], "state": None}


@pytest.mark.parametrize(
    ("line", "headers"),
    [
        (b"POST /a?b=c&d HTTP/1.1", b"Host: h\r\nX-Thing: a\r\nx-thing: b\r\n"),
        (b"POST /a%20b/%C3%A4?q=%20 HTTP/1.1", b"host: h\r\n"),
        (b"POST http://other/a HTTP/1.1", b"host: h\r\n"),
        (b"POST /a HTTP/1.0", b"host: h\r\n"),
        (b"POST /a HTTP/1.1", b"host: h\r\nX-Forwarded-For: 1.2.3.4\r\nx-forwarded-proto: https\r\n"),
        (b"POST /a HTTP/1.1", b"host: h\r\nx-forwarded-host: other\r\n"),
        (b"POST /a HTTP/1.1", b"host: h\r\nupgrade: h2c\r\n"),
        (b"POST /%s HTTP/1.1" % (b"a" * 300), b"host: h\r\n"),
    ],
    ids=["query", "escapes", "absolute", "old", "forwarded", "forwarded otherwise", "upgrade", "long"],
)
@pytest.mark.parametrize("root_path", ["", "/below"])
async def test_an_app_is_told_of_a_request_as_uvicorn_tells_it(line: bytes, headers: bytes, root_path: str) -> None:
    asked = b"%b\r\n%bcontent-length: 8\r\n\r\nquestion" % (line, headers)
    told = await read_scope(asked, bounded=True, root_path=root_path)
    assert told == await read_scope(asked, bounded=False, root_path=root_path)


async def test_a_client_that_leaves_is_noticed_without_a_task_of_its_own() -> None:
    calls, tasks, cancelled = list[HttpCall](), list[int](), list[str]()

    async def wait(call: HttpCall) -> None:
        call.start_watching()
        calls.append(call)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(call.scope["path"])
            raise

    async def refuse(call: HttpCall, error: RequestError) -> None: ...

    endpoint = HttpEndpoint(HttpVerifier("door", None), refuse, GET=wait)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await endpoint(scope, receive, send)

    server = Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    before = len(asyncio.all_tasks())
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /first HTTP/1.1\r\nhost: localhost\r\n\r\n")
    async with asyncio.timeout(DEADLINE):
        await until(lambda: bool(calls))
        await until(lambda: vars(calls[0])["_notify"] is not None)
        tasks.append(len(asyncio.all_tasks()) - before)
        writer.close()
        await until(lambda: bool(cancelled))
    assert (tasks, cancelled) == ([1], ["/first"])
    server.should_exit = True
    await running
