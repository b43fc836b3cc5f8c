"""The WebSocket of the Responses API: sequential responses on one connection."""

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.asgi.messages import BodyHold, count_charged, error_headers
from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.parse import client_tools, decode
from frontdesk.channels.responses.render import Renderer, error_body, error_out, get_status
from frontdesk.channels.responses.request_builder import Intake
from frontdesk.channels.responses.schema import CreateBody, SocketError, SocketEvent
from frontdesk.channels.responses.writer import Script, build_failed_events, build_failed_run, build_queued_events
from frontdesk.concurrency.current import set_memory
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import (
    BodyTooLargeError,
    InternalError,
    InvalidRequestError,
    NotFoundError,
    RequestError,
    TooManyRequestsError,
)
from frontdesk.framework.client_outputs import build_answered, in_given_order
from frontdesk.framework.contents import as_messages
from frontdesk.framework.types import is_response
from frontdesk.http.bodies import HttpPayload, decode_as, read_payload
from frontdesk.http.channel import HttpChannel
from frontdesk.http.detached_runs import DetachedRuns, Ended
from frontdesk.http.run_ids import set_run_id
from frontdesk.http.sockets import BYE, POLICY, TOO_LARGE, Lanes, Socket, SocketEndpoint
from frontdesk.http.sse import encode_data, pump
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.channel import SettleAnswers
from frontdesk.models.request import ChannelRequest, ClientOutput
from frontdesk.models.result import HostedStreamResult
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import encode
from frontdesk.openai.tools import merge

MAX_STORED = 16


@dataclass(frozen=True)
class Kept:
    previous: str | None
    """The stored response at which it begins."""
    outputs: tuple[ClientOutput, ...]
    """The outputs of the client's functions for that one."""
    messages: tuple[Message, ...]
    """All that was said since then."""
    waiting: frozenset[str]
    """The calls of the client's functions that it has ended with."""
    size: int
    tools: tuple[dict[str, Any], ...] = ()
    """The tools of the client's that came as items, and that go on being offered."""

    @classmethod
    def of(cls, request: ChannelRequest, run: RunRecord, size: int) -> "Kept":
        """Create the entry of a run. `request` is the continued request, and `size` is its approximate size in
        bytes."""
        said = as_messages(request.input) or []
        answer: Sequence[Message] = run.result.messages if is_response(run.result) else ()
        calls = {_id(content) for message in answer for content in message.contents if content.type == "function_call"}
        results = {
            _id(content) for message in answer for content in message.contents if content.type == "function_result"
        }
        return cls(
            previous=request.previous_run_id,
            outputs=request.client_outputs,
            messages=(*said, *answer),
            waiting=frozenset(calls - results),
            size=size,
            tools=tuple(request.details.get("additional_tools") or ()),
        )

    def build_continued(self, request: ChannelRequest, *, hears: bool) -> ChannelRequest:
        """Return a request that repeats everything before the new input. `hears` means that the target accepts
        messages."""
        if request.approvals:
            raise InvalidRequestError("A response that is not stored has no pending tool calls.", param="input")
        results = build_answered(self.waiting, request.client_outputs)
        new = in_given_order(results, as_messages(request.input) or (), request.client_outputs)
        said = [*self.messages, *new]
        details = {**request.details, "previous_response_id": request.previous_run_id}
        request = request.replace(
            input=said if hears else request.input, previous_run_id=self.previous, client_outputs=self.outputs
        )
        return self._offer_tools(request, details)

    def _offer_tools(self, request: ChannelRequest, details: dict[str, Any]) -> ChannelRequest:
        """Return a request with the tools of earlier items. The limit for a request applies."""
        if not self.tools:
            return request.replace(details=details)
        added = merge(self.tools, details.get("additional_tools") or ())
        tools = client_tools(details.get("tools") or (), added)
        return request.replace(client_tools=tools, details={**details, "additional_tools": added})


def _id(call: Content) -> str:
    return str(call.call_id)


class _Share:
    __slots__ = ("kept", "size")

    def __init__(self) -> None:
        self.kept: dict[tuple[Memory, str], int] = {}
        self.size = 0


class Space:
    """Bounds the memory of all connections together.

    When it is full, the oldest entry of the caller with the most memory is dropped. So a caller can only displace
    another one that uses more.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._size = 0
        self._shares: dict[Hashable, _Share] = {}

    def take(self, memory: "Memory", run_id: str, size: int) -> None:
        share = self._shares.setdefault(memory.owner, _Share())
        share.kept[memory, run_id] = size
        share.size += size
        self._size += size
        while self._size > self._most_bytes:
            # No more are looked at than there are connections, and only when there is no space left.
            largest = max(self._shares.values(), key=_size)
            other, oldest = next(iter(largest.kept))
            other.forget(oldest)

    def give_back(self, memory: "Memory", run_id: str) -> None:
        """Release the space of a dropped response."""
        share = self._shares[memory.owner]
        size = share.kept.pop((memory, run_id))
        share.size -= size
        self._size -= size
        if not share.kept:
            del self._shares[memory.owner]


def _size(share: _Share) -> int:
    return share.size


class Memory:
    def __init__(self, space: Space, most_bytes: int, *, owner: Hashable) -> None:
        """`most_bytes` limits the total size, measured as the body that would repeat everything.

        `owner` is the owner of the connection.
        """
        self._space = space
        self._most_bytes = most_bytes
        self.owner = owner
        self._kept: dict[str, Kept] = {}

    def get(self, run_id: str | None) -> Kept | None:
        return None if run_id is None else self._kept.get(run_id)

    def keep(self, run_id: str, kept: Kept) -> None:
        """Store a response. The oldest ones are dropped to free memory."""
        self._kept[run_id] = kept
        self._space.take(self, run_id, kept.size)
        while len(self._kept) > MAX_STORED or sum(kept.size for kept in self._kept.values()) > self._most_bytes:
            self.forget(next(iter(self._kept)))

    def forget(self, run_id: str | None) -> None:
        """Drop a response. It can no longer be continued."""
        if run_id is not None and self._kept.pop(run_id, None) is not None:
            self._space.give_back(self, run_id)

    def close(self) -> None:
        for run_id in list(self._kept):
            self.forget(run_id)


_decoder = msgspec.json.Decoder(SocketEvent)
_ENVELOPE = frozenset(SocketEvent.__struct_fields__)
_MAX_REMEMBERED = 64
"""The number of ended responses that a connection can tell from those that never were."""


class Sockets:
    def __init__(
        self, channel: HttpChannel, config: ResponsesConfig, intake: Intake, renderer: Renderer, detached: DetachedRuns
    ) -> None:
        self.channel = channel
        self.limiter = channel.limiter
        self.config = config
        self.context = channel.context
        self.intake = intake
        self.renderer = renderer
        self.detached = detached
        self.space = Space(config.sockets.max_kept_bytes)
        self.endpoint = SocketEndpoint(
            channel.verifier,
            error_body,
            lambda socket: _Connection(self, socket).serve(),
            config.sockets,
            channel.limiter,
            allow=channel.context.allow,
        )


class _Connection:
    def __init__(self, shared: Sockets, socket: Socket) -> None:
        self._shared = shared
        self._context = shared.context
        self._socket = socket
        self._memory = Memory(shared.space, shared.config.max_body_bytes, owner=socket.caller.identity.key)
        self._lanes = Lanes(self._create, self._report_failure, most_bytes=shared.config.sockets.max_message_bytes)
        limiter = shared.limiter
        self._waiting = None if limiter is None else limiter.hold(socket.caller)
        """The bytes of the messages that wait for their turn."""
        self._running: dict[str, str | None] = {}
        self._ended: deque[str] = deque(maxlen=_MAX_REMEMBERED)
        self._unwanted: set[str | None] = set()
        """The lanes whose response was cancelled before it began."""

    async def serve(self) -> None:
        """Read messages until either side disconnects. Running responses are then cancelled, as for a closed stream."""
        try:
            while True:
                try:
                    raw = await self._next()
                    if raw is None:
                        return await self._socket.close(BYE, "idle")
                    await self._take(raw)
                except BodyTooLargeError as error:
                    await self._refuse(error)
                    return await self._socket.close(TOO_LARGE, error.code)
                except TooManyRequestsError as error:
                    if self._socket.stubborn:
                        return await self._socket.close(POLICY, error.code)
                    await self._refuse(error)
        finally:
            await self._lanes.stop()
            self._memory.close()
            if self._waiting is not None:
                self._waiting.release()

    async def _next(self) -> bytes | None:
        """Return the next message, or None on idle timeout while nothing runs."""
        while True:
            try:
                async with asyncio.timeout(self._shared.config.sockets.idle_seconds):
                    return await self._socket.receive()
            except TimeoutError:
                if not self._lanes.busy:
                    return None

    async def _take(self, raw: bytes) -> None:
        lane: str | None = None
        size = await run_sized(len(raw), count_charged, raw)
        try:
            if self._waiting is not None:
                self._waiting.add(size)
        except RequestError as error:
            return await self._refuse(error)
        waits = False
        try:
            event = await run_sized(len(raw), decode_as, _decoder, raw, self._shared.config.max_body_values)
            lane = None if event.stream_id is None else plain_id(event.stream_id, "stream_id")
            if event.type == "response.create":
                if event.generate is False:
                    raise InvalidRequestError(
                        "Preparing a response ahead is not supported.", param="generate", code="unsupported"
                    )
                self._lanes.add(lane, raw)
                waits = True
            elif event.type == "response.cancel":
                await self._cancel(event.response_id, lane)
            else:
                raise InvalidRequestError(f"{event.type!r} is not supported.", param="type", code="unsupported")
        except RequestError as error:
            await self._refuse(error, lane)
        finally:
            if self._waiting is not None and not waits:
                self._waiting.drop(size)

    async def _cancel(self, run_id: str | None, lane: str | None) -> None:
        """Cancel the named response, or the running one. An ended response is unchanged."""
        if run_id is None:
            run_id = next((running_id for running_id, its_lane in self._running.items() if its_lane == lane), None)
            if run_id is None and self._lanes.works(lane):
                self._unwanted.add(lane)
        elif run_id not in self._running and run_id not in self._ended:
            raise NotFoundError("Response not found on this connection.", param="response_id")
        if run_id is None or run_id not in self._running:
            return
        # What is not stored can't be shown again, and need not be: its last event tells.
        with suppress(NotFoundError):
            await self._context.runs.cancel(self._socket.caller, run_id)

    async def _create(self, lane: str | None, raw: bytes) -> None:
        size = await run_sized(len(raw), count_charged, raw)
        held = None if self._waiting is None else self._waiting.split(size)
        try:
            await self._create_held(lane, raw, held, size)
        finally:
            self._unwanted.discard(lane)
            if held is not None:
                held.release()

    async def _create_held(self, lane: str | None, raw: bytes, held: BodyHold | None, size: int) -> None:
        try:
            # Each time, as for each request: a key may have been taken away since the handshake.
            await self._socket.check()
        except RequestError as error:
            await self._refuse(error, lane)
            return await self._socket.close(POLICY, error.code)
        try:
            body = await run_sized(len(raw), decode, raw, self._shared.config.max_body_values)
            if body.background:
                raise InvalidRequestError("`background` is not supported over WebSocket. Use POST.", param="background")
            await self._answer(lane, body, raw, self._begin(held, size))
        except RequestError as error:
            # A client that was refused may believe anything about the response that it named: so it is asked to begin
            # again with all that it knows.
            self._memory.forget(_decoder.decode(raw).previous_response_id)
            if isinstance(error.run, RunRecord):
                # After an error event, clients send the request again.
                return await self._send(build_failed_events(self._shared.renderer, error.run, partial(_messages, lane)))
            await self._refuse(error, lane)

    def _begin(self, held: BodyHold | None, size: int) -> Ended | None:
        """Count a response and the bytes of its request until the returned function is called."""
        if self._shared.limiter is None or held is None:
            return None
        end = self._shared.limiter.begin(self._socket.caller)
        run_held = held.split(size)
        set_memory(run_held)

        def finish() -> None:
            end()
            run_held.release()

        return finish

    async def _answer(self, lane: str | None, body: CreateBody, raw: bytes, ended: Ended | None) -> None:
        """Answer a request. `ended` is called when the response is no longer being generated."""
        detached = False
        try:
            shown = self._shared.intake.shows_payload
            protocol_request = await read_payload(raw, self._socket.scope) if shown else None
            request, settle = await self._request(body, raw, protocol_request)
            caller = self._socket.caller
            opened = self._context.stream(request, caller, protocol_request=protocol_request, settle=settle)
            detached = self._shared.config.finish_abandoned and request.store
            played = self._shared.detached.stream(opened, ended) if detached else opened
            await self._play(lane, body, raw, request, await played)
        finally:
            if ended is not None and not detached:
                ended()

    async def _play(
        self, lane: str | None, body: CreateBody, raw: bytes, request: ChannelRequest, opened: HostedStreamResult[Any]
    ) -> None:
        async with opened as stream:
            if stream.run.status == "queued" and not stream.run.stream:
                return await self._send(_messages(lane, build_queued_events(self._shared.renderer, stream.run)))
            script = Script(self._shared.renderer, stream.run, pack=partial(_messages, lane))
            run, result = await self._play_events(lane, script, stream)
        last = script.end(run, result)
        if run.status == "failed":
            self._memory.forget(body.previous_response_id)
        elif run.status != "cancelled" and not run.stored and self._can_be_said_again(request):
            before = self._memory.get(body.previous_response_id)
            size = len(raw) + len(last[-1]) + (0 if before is None else before.size)
            self._memory.keep(run.run_id, Kept.of(request, run, size))
        await self._send(last)

    def _can_be_said_again(self, request: ChannelRequest) -> bool:
        """Return True if the messages are the whole context: no conversation, and no used-up approval answers."""
        return self._shared.channel.session_mode != "disabled" and request.session is None and not request.approvals

    async def _request(
        self, body: CreateBody, raw: bytes, payload: HttpPayload | None
    ) -> tuple[ChannelRequest, SettleAnswers | None]:
        kept = self._memory.get(body.previous_response_id)
        body = msgspec.structs.replace(body, stream=True)
        request, settle = await self._shared.intake.request(self._socket.caller, body, raw, payload)
        attributes = {name: value for name, value in request.attributes.items() if name not in _ENVELOPE}
        request = request.replace(attributes=attributes)
        if kept is not None:
            request = kept.build_continued(request, hears=self._context.target.messages)
        # One connection has many responses, so that its headers name none of them.
        return set_run_id(request, self._socket.caller, {}, self._shared.intake.response_ids), settle

    async def _play_events(
        self, lane: str | None, script: Script, stream: HostedStreamResult[Any]
    ) -> tuple[RunRecord, Any]:
        """Send all events except the last one. Return the outcome."""
        run_id = stream.run.run_id
        self._running[run_id] = lane
        try:
            if lane in self._unwanted:
                return await self._call_off(script, stream)
            send = self._socket.send
            hosted = await pump(stream, script.update, send, [partial(send, message) for message in script.begin()])
            return hosted.run, hosted.result
        except RequestError as error:
            return build_failed_run(stream.run, error), None
        finally:
            del self._running[run_id]
            self._ended.append(run_id)

    async def _call_off(self, script: Script, stream: HostedStreamResult[Any]) -> tuple[RunRecord, Any]:
        await stream.aclose()
        await self._send(script.begin())
        # One that would go on without its client is told by name.
        with suppress(NotFoundError):
            await self._context.runs.cancel(self._socket.caller, stream.run.run_id)
        return stream.run.replace(status="cancelled"), None

    async def _send(self, messages: Sequence[bytes]) -> None:
        for message in messages:
            await self._socket.send(message)

    async def _refuse(self, error: RequestError, lane: str | None = None) -> None:
        told: dict[str, Any] = msgspec.to_builtins(error_out(error))
        if error.retry_after is not None:
            told["headers"] = {name.decode(): value.decode() for name, value in error_headers(error)}
        message = SocketError(status=get_status(error), error=told)
        if lane is not None:
            message.stream_id = lane
        await self._socket.send(encode(message))

    async def _report_failure(self, lane: str | None) -> None:
        await self._refuse(InternalError(), lane)


def _messages(lane: str | None, events: Sequence[bytes]) -> list[bytes]:
    data = [encode_data(event) for event in events]
    return data if lane is None else [b'{"stream_id":%b,%b' % (encode(lane), event[1:]) for event in data]
