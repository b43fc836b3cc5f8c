"""Serves a host in the event loop of the test, and calls it over HTTP."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from frontdesk.host.host import AgentFrameworkHost
from frontdesk.server.uvicorn_server import Server
from frontdesk_testing.sse import ServerSentEvent, read_sse


class HostClient:
    """Calls a served host. `http` is the HTTP client, for other routes than invocations."""

    def __init__(self, base_url: str, http: httpx.AsyncClient, *, path: str = "/invocations") -> None:
        self.base_url = base_url
        self.http = http
        self.path = path

    async def invoke(self, message: Any, *, headers: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        """Send a message and return the answer. An error status is an `httpx.HTTPStatusError`."""
        response = await self.http.post(self.path, json={"message": message, **fields}, headers=headers)
        return (await _good(response)).json()

    async def stream(
        self, message: Any, *, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> AsyncGenerator[ServerSentEvent]:
        """Yield the events of an answer. Leave the loop early only within `contextlib.aclosing`."""
        body = {"message": message, "stream": True, **fields}
        async with self.http.stream("POST", self.path, json=body, headers=headers) as response:
            await _good(response)
            async for event in read_sse(response.aiter_bytes()):
                yield event


async def _good(response: httpx.Response) -> httpx.Response:
    if response.is_error:
        # The text of the answer says what went wrong; the exception alone would only name the status.
        text = (await response.aread()).decode(errors="replace")
        raise httpx.HTTPStatusError(
            f"{response.status_code} {response.url}: {text}", request=response.request, response=response
        )
    return response


@contextlib.asynccontextmanager
async def serving(
    host: AgentFrameworkHost,
    *,
    path: str = "/invocations",
    headers: Mapping[str, str] | None = None,
    raise_errors: bool = True,
) -> AsyncGenerator[HostClient]:
    """Start a host on a free port of the loopback address, and stop it again.

    It runs in the loop of the test, so that both can wait for the same events. What the host did not handle itself is
    raised here: an error of its start at once, every other one at the end (unless `raise_errors` is false).
    """
    async with serving_app(host.app, path=path, headers=headers, raise_errors=raise_errors) as client:
        yield client


@contextlib.asynccontextmanager
async def serving_app(
    app: ASGIApp,
    *,
    path: str = "/invocations",
    headers: Mapping[str, str] | None = None,
    raise_errors: bool = True,
) -> AsyncGenerator[HostClient]:
    """Serve any app in the same way, such as one that hosts are mounted in."""
    watched = _Watched(app)
    # Named as TCP, because asyncio sends small packets at once only on sockets that say so.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = _Server(
        uvicorn.Config(watched, lifespan="on", log_config=None, access_log=False, timeout_graceful_shutdown=5)
    )
    task = asyncio.create_task(server.run_until_stopped(listener))
    try:
        await server.settled.wait()
        if not server.started:
            await task
            raise watched.first() or RuntimeError("the host did not start")
        async with httpx.AsyncClient(base_url=base_url, headers=headers, timeout=30, trust_env=False) as http:
            yield HostClient(base_url, http, path=path)
    except BaseException as error:
        watched.note_on(error)
        raise
    finally:
        server.stopping.set()
        await task
        listener.close()
    if raise_errors and (first := watched.first()) is not None:
        raise first


class _Server(Server):
    """Uvicorn, with events where it has flags."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = asyncio.Event()
        self.stopping = asyncio.Event()

    async def run_until_stopped(self, listener: socket.socket) -> None:
        """Serve. Suppress `SystemExit`, which would end the loop of the test."""
        try:
            await self.serve(sockets=[listener])
        except SystemExit:
            pass
        finally:
            self.settled.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        # Signals belong to the test run.
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self.settled.set()
        await self.stopping.wait()


class _Watched:
    """Records the errors that would otherwise only reach the server's log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._errors: list[Exception] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            self._errors.append(error)
            raise

    def first(self) -> Exception | None:
        """Return the first error."""
        return self._errors[0] if self._errors else None

    def note_on(self, error: BaseException) -> None:
        """Add the host's errors as notes to the error of the test."""
        for other in self._errors:
            if other is not error:
                error.add_note(f"the host raised {other!r}")
