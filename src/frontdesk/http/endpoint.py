"""One path of an HTTP channel: checks method and caller, and renders errors in the channel's format."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send

from frontdesk.asgi.messages import (
    CONNECTION,
    MAX_SMALL_JSON_BYTES,
    MAX_SMALL_VALUES_BYTES,
    BodyHold,
    ClientGoneError,
    Headers,
    Who,
    check_length,
    read_rest,
    refused_preflights,
    require_identity,
    require_single,
    whole_in,
)
from frontdesk.auth.verifier import Allow, HttpVerifier
from frontdesk.concurrency.current import cancelled_run, incoming_trace, set_caller, set_memory
from frontdesk.concurrency.offload import run_sized
from frontdesk.concurrency.tasks import current_task, spawn_clean
from frontdesk.concurrency.timeouts import Timed, TimeoutWheel
from frontdesk.errors import (
    BodyTimeoutError,
    ForbiddenError,
    InternalError,
    MethodNotAllowedError,
    RequestError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedMediaError,
)
from frontdesk.http.limits import Counter, Limiter
from frontdesk.identifiers import is_plain_id
from frontdesk.ids import RandomIds
from frontdesk.json_size import estimate_memory
from frontdesk.loggers import http as log
from frontdesk.models.identity import Caller

_WATCH_AFTER_SECONDS = 0.05
"""The seconds after which a request's client is watched, to see whether it is still there."""
_TRACE = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_DIGITS = 5
"""The number of digits in the length of a large body."""
_UNKNOWN_LENGTH = b" " * _DIGITS

Release = Callable[[], None]
_ids = RandomIds()


class Connection(Protocol):
    """A connection, if the server supports the extension `frontdesk.connection`."""

    def count_received(self) -> int:
        """Return a number that changes whenever the client has received something."""
        ...

    def abort(self) -> None:
        """Close the connection immediately, without sending pending data."""
        ...


def get_connection(scope: Scope) -> Connection | None:
    """Return the connection of a request if its server supports the extension."""
    extensions: Mapping[str, Any] = scope.get("extensions") or {}
    return extensions.get(CONNECTION)


class HttpCall(Timed):
    """One HTTP request to a channel."""

    caller: Caller

    def __init__(self, scope: Scope, receive: Receive, send: Send, clients: "Clients") -> None:
        self._clients = clients
        self.scope = scope
        self.receive = receive
        self.send = send
        # As `collect_headers` does, which would be one more call for each request.
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.begun = False
        """Whether an answer is on its way, so that an error can't be one any more."""
        self.counter: Counter | None = None
        """The counter that counts the request until it ends."""
        self.held: BodyHold | None = None
        """The bytes that count for its body until it ends, if it is large."""
        self.limiter: Limiter | None = None
        """The limits of its channel."""
        self.who: Who = ("", "")
        """The key of the caller's identity, under which the request is counted."""
        self.task = None
        self._late = False
        self._slow: BodyDeadline | None = None
        """The deadline of its body, once the body was seen not to come at once."""
        self._reading: BodyDeadline | None = None
        """The deadline of its body, while it is read."""
        self._gone = False
        self._watcher: asyncio.Task[None] | None = None
        self._notify: Callable[[Callable[[], None] | None], None] | None = None
        """Sets what the server calls when the client has left."""

    def detach(self) -> "Release | None":
        """Return the release callback for code that outlives the request. Call it when the answer is complete."""
        counter, self.counter = self.counter, None
        held, self.held = self.held, None
        if counter is None or held is None:
            return None if counter is None else partial(counter.end, self.who)
        return partial(_release, counter, held, self.who)

    def json_body(self, *, limit: int, deadline: "BodyDeadline") -> Coroutine[Any, Any, bytes]:
        """Return the body. From then on the client is watched, since it can only disconnect."""
        kind = self.headers.get(b"content-type", b"application/json")
        if kind != b"application/json":
            kind = kind.partition(b";")[0].strip().lower()
            if kind != b"application/json" and not kind.endswith(b"+json"):
                raise UnsupportedMediaError
        return self.whole_body(limit=limit, deadline=deadline)

    async def whole_body(self, *, limit: int, deadline: "BodyDeadline") -> bytes:
        """Return the body of any content type. The client is watched as in `json_body`."""
        if b"content-encoding" in self.headers:
            require_identity(self.headers)
        task = current_task()
        # Most bodies are here already: a deadline is set only for one that has to be waited for.
        self._reading = deadline
        self._clients.add(self, task)
        try:
            held = check_length(self.headers, limit, self.held)
            message = await self.receive()
            raw = whole_in(message, limit)
            if raw is None:
                raw = await read_rest(self.receive, message, limit, held)
        except asyncio.CancelledError:
            if not self._late:
                raise
            task.uncancel()
            raise BodyTimeoutError from None
        finally:
            self._reading = None
            if self._slow is not None:
                self._slow.drop(self)
        if self._slow is not None:
            self._clients.add(self, task)
        if len(raw) > MAX_SMALL_JSON_BYTES and self.limiter is not None:
            await self._hold_values(self.limiter, raw)
        return raw

    async def _hold_values(self, limiter: Limiter, raw: bytes) -> None:
        """Charge the values of a body to its caller before it is parsed."""
        size = await run_sized(len(raw), estimate_memory, raw) - len(raw)
        if self.held is None:
            if size <= MAX_SMALL_VALUES_BYTES:
                return
            self.held = limiter.hold(self.caller)
        self.held.add(size)

    def charge(self, size: int) -> Callable[[], None]:
        """Charge memory that the request uses besides its body. Return a function that releases it."""
        if self.limiter is None:
            return _nothing
        # A request that has been handed on holds nothing here any more.
        return (self.held or self.limiter.hold(self.caller)).charge(size)

    def run_late(self) -> None:
        """Cancel the request because reading its body has timed out."""
        if self.task is not None:
            self._late = True
            self.task.cancel()

    def start_watching(self) -> None:
        """Watch the client of a request without a body: it may disconnect during a long answer."""
        if self.task is None:
            self._clients.add(self, current_task())

    def watch(self) -> None:
        """From here on, cancel the request when its client disconnects or the body times out."""
        if self.task is None:
            return
        if self._reading is not None:
            self._slow = self._reading
            self._slow.add(self, self.task)
            return
        # Our own server calls back, without a task for each request; middleware may have its own `receive`.
        self._notify = getattr(getattr(self.receive, "__self__", None), "notify_when_gone", None)
        if self._notify is None:
            self._watcher = spawn_clean(self._watch(self.task))
        else:
            self._notify(self._note_gone)

    def _note_gone(self) -> None:
        if self.task is not None:
            self._go(self.task)

    async def _watch(self, task: "asyncio.Task[Any]") -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self._go(task)

    def _go(self, task: "asyncio.Task[Any]") -> None:
        # Once: each cancellation has to be undone by an `uncancel`.
        if not self._gone:
            self._gone = True
            task.cancel()

    def count_received(self) -> int:
        """Return a number that changes when the client has received something. Constant if the server does not report
        it."""
        connection = get_connection(self.scope)
        return 0 if connection is None else connection.count_received()

    def leave(self) -> None:
        """Treat a client that does not read as disconnected, because pending data could never be sent."""
        log.info("client read nothing, treating it as disconnected: path=%r", self.scope["path"])
        connection = get_connection(self.scope)
        if connection is not None:
            connection.abort()
        if self.task is not None:
            self._go(self.task)

    def uncancel_if_gone(self) -> bool:
        """Undo the cancellation if it was caused by a disconnected client. Return True in that case."""
        if self._gone and self.task is not None:
            self.task.uncancel()
        return self._gone

    def end(self) -> None:
        self._clients.drop(self)
        if self.counter is not None:
            self.counter.end(self.who)
        if self.held is not None:
            self.held.release()
        if self._notify is not None:
            self._notify(None)
        if self._watcher is not None:
            self._watcher.cancel()
        # The two would keep each other alive until the garbage collector runs.
        self.task = None

    @property
    def request_id(self) -> bytes | None:
        """Return the caller's own request id if it is safe to echo."""
        given = self.headers.get(b"x-request-id")
        return given if given is not None and is_plain_id(given.decode("latin-1")) else None

    @property
    def answer_id(self) -> bytes:
        """Return the id to query the request by: the caller's own id, or a new one."""
        return self.request_id or _ids.new("req").encode()


class BodyDeadline(TimeoutWheel[HttpCall]):
    """The time limit for reading the bodies of a channel's requests."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds, HttpCall.run_late)


class Clients(TimeoutWheel[HttpCall]):
    """The clients of an endpoint's requests. Watching one costs a task, so it starts after a delay."""

    def __init__(self) -> None:
        super().__init__(_WATCH_AFTER_SECONDS, HttpCall.watch)


class _SignedCall(HttpCall):
    """A request whose credentials sign its body through a hash in a header."""

    def __init__(self, body_header: bytes, scope: Scope, receive: Receive, send: Send, clients: Clients) -> None:
        super().__init__(scope, receive, send, clients)
        self._body_header = body_header

    async def json_body(self, *, limit: int, deadline: BodyDeadline) -> bytes:
        raw = await super().json_body(limit=limit, deadline=deadline)
        # A caller with other credentials need not send it; if it is there, it must be right.
        promised = self.headers.get(self._body_header)
        if promised is not None and not hmac.compare_digest(promised, hashlib.sha256(raw).hexdigest().encode()):
            raise UnauthenticatedError("The body does not match the signed hash.", code="body_altered")
        return raw


Handler = Callable[[HttpCall], Awaitable[None]]
Refuse = Callable[[HttpCall, RequestError], Awaitable[None]]


class HttpEndpoint:
    """An ASGI app for one path."""

    __slots__ = ("_allow", "_clients", "_limiter", "_make", "_methods", "_refuse", "_runs", "_verifier", "answer")

    def __init__(
        self,
        verifier: HttpVerifier,
        refuse: Refuse,
        *,
        limiter: Limiter | None = None,
        runs: Collection[str] = (),
        allow: Allow | None = None,
        **methods: Handler,
    ) -> None:
        """`runs` are the methods that run the target. Their concurrency is limited.

        `allow` rejects callers without access. It is called here only before a large body is read.
        """
        self._verifier = verifier
        self._refuse = refuse
        self._limiter = limiter
        self._runs = frozenset(runs)
        self._allow = allow
        self._make = HttpCall if verifier.body_header is None else partial(_SignedCall, verifier.body_header)
        self._methods = methods
        self._clients = Clients()
        self.answer = self._serve if verifier.cors is None else self.__call__
        """The same as the endpoint, in one call less."""

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request. Cross-origin requests are checked if the channel lists allowed origins."""
        cors = self._verifier.cors
        if cors is None:
            return self._serve(scope, receive, send)
        return cors.serve(self._serve, self._methods, scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._make(scope, receive, send, self._clients)
        try:
            method = scope["method"]
            handler = self._methods.get(method)
            if handler is None:
                # A preflight of a page that may not call should learn that, and not that its method is wrong.
                self._check_origin(scope, call.headers)
                raise MethodNotAllowedError(allow=tuple(self._methods))
            if len(call.headers) != len(scope["headers"]):
                require_single(scope)
            call.caller = caller = await self._verifier.verify(scope, call.headers)
            identity = caller.identity
            call.who = who = (identity.channel, identity.native_id)
            set_caller(who)
            if caller.isolation is not None:
                incoming_trace.set(_trace(call.headers))
            if (limiter := self._limiter) is not None:
                if limiter.counts:
                    limiter.take(caller)
                counter = limiter.answers if method in self._runs else limiter.others
                counter.begin(who)
                call.counter, call.limiter = counter, limiter
            if method == "POST":
                set_memory(call)
            if method == "GET":
                call.start_watching()
            elif self._allow is not None and not (
                len(call.headers.get(b"content-length", _UNKNOWN_LENGTH)) < _DIGITS or _is_small(call.headers)
            ):
                # Megabytes are not parsed for a caller who may not come in.
                await self._allow(caller)
                if limiter is not None:
                    call.held = limiter.hold(caller)
            await handler(call)
        except ClientGoneError:
            return
        except RequestError as error:
            await self._send_failure(call, error)
        except asyncio.CancelledError:
            if not call.uncancel_if_gone():
                # The server is stopping, and the caller is still there to be answered.
                await self._send_stopping(call)
                raise
        except Exception as error:
            # The last handler: an unforeseen error is still answered in the channel's shape, and the log has the rest.
            log.error("request failed: path=%r", scope["path"], exc_info=error)
            await self._send_failure(call, InternalError())
        finally:
            call.end()

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Reject other origins. Log a warning for preflights: a browser shows only that the fetch failed."""
        is_preflight = scope["method"] == "OPTIONS" and b"access-control-request-method" in headers
        try:
            self._verifier.check_origin(headers, log_refusal=not is_preflight)
        except ForbiddenError:
            if is_preflight:
                refused_preflights.warn(headers.get(b"origin", b""), scope["path"])
            raise

    async def _send_stopping(self, call: HttpCall) -> None:
        error = UnavailableError("The server is stopping.", retry_after=1)
        error.run = cancelled_run.get()
        await self._send_failure(call, error)

    async def _send_failure(self, call: HttpCall, error: RequestError) -> None:
        if call.begun:
            log.error("response aborted: path=%r", call.scope["path"], exc_info=error)
            return
        await self._refuse(call, error)


def _nothing() -> None:
    pass


def _release(counter: Counter, held: BodyHold, who: Who) -> None:
    counter.end(who)
    held.release()


def _trace(headers: Headers) -> str | None:
    """Return the trace of a request. It is accepted only from callers authenticated by a trusted platform."""
    given = headers.get(b"traceparent")
    return None if given is None or not _TRACE.fullmatch(given) else given.decode("ascii")


def _is_small(headers: Headers) -> bool:
    length = headers.get(b"content-length")
    # The number itself is checked where the body is read: here its digits are enough.
    return b"transfer-encoding" not in headers if length is None else len(length) < _DIGITS
