"""One path of an HTTP channel: finds the caller, then the method, and lets every error leave in the channel's shape."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send

from frontdesk.data.identity import Caller
from frontdesk.errors import (
    InternalError,
    MethodNotAllowedError,
    RequestError,
    UnavailableError,
    UnsupportedMediaError,
)
from frontdesk.kit.auth import HttpVerifier
from frontdesk.kit.http import ClientGoneError, DisconnectWatch, headers_of, present_task, read_body
from frontdesk.kit.names import is_plain_id
from frontdesk.kit.reminders import Reminders
from frontdesk.loggers import http as log

_PATIENCE = 0.05
"""How long a request may take before somebody looks whether its client is still there."""


class HttpCall:
    """One HTTP request on its way through a channel."""

    __slots__ = ("_patience", "begun", "caller", "headers", "receive", "scope", "send", "watch")

    caller: Caller

    def __init__(self, scope: Scope, receive: Receive, send: Send, patience: Reminders) -> None:
        self._patience = patience
        self.scope = scope
        self.receive = receive
        self.send = send
        self.headers = headers_of(scope)
        self.begun = False
        """Whether an answer is on its way, so that an error can't be one any more."""
        self.watch: DisconnectWatch | None = None

    async def json_body(self, *, limit: int, deadline: Reminders) -> bytes:
        """The body; from then on the client is watched, since all that it can still do is leave."""
        kind = self.headers.get(b"content-type", b"application/json")
        if kind != b"application/json":
            kind = kind.partition(b";")[0].strip().lower()
            if kind != b"application/json" and not kind.endswith(b"+json"):
                raise UnsupportedMediaError
        task = present_task()
        raw = await read_body(self.receive, self.headers, task, limit=limit, deadline=deadline)
        self.watch = DisconnectWatch(self.receive, task, self._patience)
        return raw

    def watched(self) -> None:
        """From here on the client of a request without a body is watched too: it may leave a long answer."""
        if self.watch is None:
            self.watch = DisconnectWatch(self.receive, present_task(), self._patience)

    @property
    def request_id(self) -> bytes | None:
        """The caller's own id for the request, if it is safe to repeat."""
        given = self.headers.get(b"x-request-id")
        return given if given is not None and is_plain_id(given.decode("latin-1")) else None


Handler = Callable[[HttpCall], Awaitable[None]]
Refuse = Callable[[HttpCall, RequestError], Awaitable[None]]


class HttpEndpoint:
    """An ASGI app for one path."""

    __slots__ = ("_methods", "_patience", "_refuse", "_verifier")

    def __init__(self, verifier: HttpVerifier, refuse: Refuse, **methods: Handler) -> None:
        self._verifier = verifier
        self._refuse = refuse
        self._methods = methods
        self._patience = Reminders(_PATIENCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = HttpCall(scope, receive, send, self._patience)
        try:
            handler = self._methods.get(scope["method"])
            if handler is None:
                raise MethodNotAllowedError(allow=tuple(self._methods))
            call.caller = await self._verifier.verify(scope, call.headers)
            await handler(call)
        except ClientGoneError:
            return
        except RequestError as error:
            await self._failed(call, error)
        except asyncio.CancelledError:
            if call.watch is None or not call.watch.forgive():
                # The server is stopping, and the caller is still there to be told.
                await self._failed(call, UnavailableError("The server is stopping.", retry_after=1))
                raise
        except Exception as error:
            # The last stop: whatever nobody foresaw still leaves in the channel's shape, and the log has the rest.
            log.error("a request to %s failed", scope["path"], exc_info=error)
            await self._failed(call, InternalError())
        finally:
            if call.watch is not None:
                call.watch.stop()

    async def _failed(self, call: HttpCall, error: RequestError) -> None:
        if call.begun:
            log.error("an answer of %s broke off", call.scope["path"], exc_info=error)
            return
        await self._refuse(call, error)
