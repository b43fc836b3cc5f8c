"""One path of an HTTP channel: finds the caller, then the method, and lets every error leave in the channel's shape."""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any

from starlette.types import Receive, Scope, Send

from frontdesk.data.identity import Caller
from frontdesk.errors import (
    BodyTimeoutError,
    InternalError,
    MethodNotAllowedError,
    RequestError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedMediaError,
)
from frontdesk.ids import RandomIds
from frontdesk.kit.current import cancelled_run
from frontdesk.kit.http import ClientGoneError, headers_of, read_body
from frontdesk.kit.limits import Limiter
from frontdesk.kit.names import is_plain_id
from frontdesk.kit.patience import Patience, Waiting
from frontdesk.kit.tasks import present_task, spawn_clean
from frontdesk.kit.verifier import HttpVerifier
from frontdesk.loggers import http as log

_PATIENCE = 0.05
"""How long a request may take before somebody looks whether its client is still there."""


Release = Callable[[], None]
_ids = RandomIds()


class HttpCall(Waiting):
    """One HTTP request on its way through a channel."""

    caller: Caller
    begun = False
    """Whether an answer is on its way, so that an error can't be one any more."""
    release: Release | None = None
    """Says that the answer is no longer being made."""
    _late = False
    _gone = False
    _watcher: "asyncio.Task[None] | None" = None

    def __init__(self, scope: Scope, receive: Receive, send: Send, clients: "Clients") -> None:
        self._clients = clients
        self.scope = scope
        self.receive = receive
        self.send = send
        self.headers = headers_of(scope)

    def hand_on(self) -> "Release | None":
        """What says that the answer is no longer being made, for somebody who makes it for longer than the request."""
        release, self.release = self.release, None
        return release

    async def json_body(self, *, limit: int, deadline: "BodyDeadline") -> bytes:
        """The body; from then on the client is watched, since all that it can still do is leave."""
        kind = self.headers.get(b"content-type", b"application/json")
        if kind != b"application/json":
            kind = kind.partition(b";")[0].strip().lower()
            if kind != b"application/json" and not kind.endswith(b"+json"):
                raise UnsupportedMediaError
        task = present_task()
        deadline.add(self, task)
        try:
            raw = await read_body(self.receive, self.headers, limit=limit)
        except asyncio.CancelledError:
            if not self._late:
                raise
            task.uncancel()
            raise BodyTimeoutError from None
        finally:
            deadline.drop(self)
        self._clients.add(self, task)
        return raw

    def run_late(self) -> None:
        """Its body has taken too long."""
        if self.task is not None:
            self._late = True
            self.task.cancel()

    def watched(self) -> None:
        """From here on the client of a request without a body is watched too: it may leave a long answer."""
        if self.task is None:
            self._clients.add(self, present_task())

    def watch(self) -> None:
        """From here on the request is cancelled when its client leaves."""
        if self.task is not None:
            self._watcher = spawn_clean(self._watch(self.task))

    async def _watch(self, task: "asyncio.Task[Any]") -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        task.cancel()

    def forgive(self) -> bool:
        """Whether the request was cancelled because its client has left; then the cancellation is taken back."""
        if self._gone and self.task is not None:
            self.task.uncancel()
        return self._gone

    def end(self) -> None:
        """It is over."""
        self._clients.drop(self)
        if self.release is not None:
            self.release()
        if self._watcher is not None and not self._gone:
            self._watcher.cancel()
        # The two would keep each other alive until the garbage collector comes.
        self.task = None

    @property
    def request_id(self) -> bytes | None:
        """The caller's own id for the request, if it is safe to repeat."""
        given = self.headers.get(b"x-request-id")
        return given if given is not None and is_plain_id(given.decode("latin-1")) else None

    @property
    def answer_id(self) -> bytes:
        """By what the caller can ask about the request: its own id for it, or a new one."""
        return self.request_id or _ids.new("req").encode()


class BodyDeadline(Patience[HttpCall]):
    """How long the bodies of a channel's requests may take."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds, HttpCall.run_late)


class Clients(Patience[HttpCall]):
    """The clients of an endpoint's requests: to watch one costs a task, so that it begins after a while."""

    def __init__(self) -> None:
        super().__init__(_PATIENCE, HttpCall.watch)


class _SignedCall(HttpCall):
    """A request whose credentials cover its body, by the hash in a header."""

    def __init__(self, body_header: bytes, scope: Scope, receive: Receive, send: Send, clients: Clients) -> None:
        super().__init__(scope, receive, send, clients)
        self._body_header = body_header

    async def json_body(self, *, limit: int, deadline: BodyDeadline) -> bytes:
        raw = await super().json_body(limit=limit, deadline=deadline)
        # Whoever came in with other credentials need not send it; if it is there, it must be right.
        promised = self.headers.get(self._body_header)
        if promised is not None and not hmac.compare_digest(promised, hashlib.sha256(raw).hexdigest().encode()):
            raise UnauthenticatedError("The body is not the one that was signed.", code="body_altered")
        return raw


Handler = Callable[[HttpCall], Awaitable[None]]
Refuse = Callable[[HttpCall, RequestError], Awaitable[None]]


class HttpEndpoint:
    """An ASGI app for one path."""

    __slots__ = ("_clients", "_limiter", "_make", "_methods", "_refuse", "_runs", "_verifier")

    def __init__(
        self,
        verifier: HttpVerifier,
        refuse: Refuse,
        *,
        limiter: Limiter | None = None,
        runs: Collection[str] = (),
        **methods: Handler,
    ) -> None:
        """`runs` are the methods that make an answer, of which there may be so many at once."""
        self._verifier = verifier
        self._refuse = refuse
        self._limiter = limiter
        self._runs = frozenset(runs)
        self._make = HttpCall if verifier.body_header is None else partial(_SignedCall, verifier.body_header)
        self._methods = methods
        self._clients = Clients()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._make(scope, receive, send, self._clients)
        try:
            handler = self._methods.get(scope["method"])
            if handler is None:
                raise MethodNotAllowedError(allow=tuple(self._methods))
            call.caller = await self._verifier.verify(scope, call.headers)
            if (limiter := self._limiter) is not None:
                if limiter.counts:
                    limiter.take(call.caller)
                if scope["method"] in self._runs:
                    call.release = limiter.begin(call.caller)
            await handler(call)
        except ClientGoneError:
            return
        except RequestError as error:
            await self._failed(call, error)
        except asyncio.CancelledError:
            if not call.forgive():
                # The server is stopping, and the caller is still there to be told.
                stopping = UnavailableError("The server is stopping.", retry_after=1)
                stopping.run = cancelled_run.get()
                await self._failed(call, stopping)
                raise
        except Exception as error:
            # The last stop: whatever nobody foresaw still leaves in the channel's shape, and the log has the rest.
            log.error("a request to %r failed", scope["path"], exc_info=error)
            await self._failed(call, InternalError())
        finally:
            call.end()

    async def _failed(self, call: HttpCall, error: RequestError) -> None:
        if call.begun:
            log.error("an answer of %r broke off", call.scope["path"], exc_info=error)
            return
        await self._refuse(call, error)
