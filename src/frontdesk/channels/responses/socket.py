"""The WebSocket of the API: responses one after another on one connection."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from frontdesk.abc.channel import Channel, ChannelContext, SettleAnswers
from frontdesk.channels.responses.client import Script, failed
from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.intake import Intake
from frontdesk.channels.responses.memory import Kept, Memory, Space
from frontdesk.channels.responses.parse import decode
from frontdesk.channels.responses.render import Renderer, error_body, error_out, event, status_of
from frontdesk.channels.responses.wire import CreateBody, SocketError, SocketEvent
from frontdesk.data.request import ChannelRequest
from frontdesk.data.result import HostedStreamResult
from frontdesk.data.run import RunRecord
from frontdesk.errors import (
    BodyTooLargeError,
    InternalError,
    InvalidRequestError,
    NotFoundError,
    RequestError,
    TooManyRequestsError,
)
from frontdesk.kit.aio.detached_runs import DetachedRuns, Ended
from frontdesk.kit.aio.large import run_sized
from frontdesk.kit.aio.pump import pump
from frontdesk.kit.auth.verifier import HttpVerifier
from frontdesk.kit.http.asgi import error_headers
from frontdesk.kit.http.bodies import decode_as
from frontdesk.kit.http.body_budget import BodyHold, counted
from frontdesk.kit.http.lanes import Lanes
from frontdesk.kit.http.limits import Limiter
from frontdesk.kit.http.payload import HttpPayload, read_payload
from frontdesk.kit.http.run_ids import identified
from frontdesk.kit.http.sockets import BYE, POLICY, TOO_LARGE, Socket, SocketEndpoint
from frontdesk.kit.http.sse import data_of
from frontdesk.kit.names import plain_id
from frontdesk.kit.openai.answers import encode

_decoder = msgspec.json.Decoder(SocketEvent)
_ENVELOPE = frozenset(SocketEvent.__struct_fields__)
_REMEMBERED = 64
"""The number of ended responses that a connection can tell from those that never were."""


class Sockets:
    """All connections of one channel, and what they share."""

    def __init__(
        self,
        channel: Channel,
        config: ResponsesConfig,
        context: ChannelContext,
        intake: Intake,
        renderer: Renderer,
        detached: DetachedRuns,
        verifier: HttpVerifier,
        limiter: Limiter | None,
    ) -> None:
        self.channel = channel
        self.limiter = limiter
        self.config = config
        self.context = context
        self.intake = intake
        self.renderer = renderer
        self.detached = detached
        self.space = Space(config.sockets.max_kept_bytes)
        self.endpoint = SocketEndpoint(
            verifier,
            error_body,
            lambda socket: _Connection(self, socket).serve(),
            config.sockets,
            limiter,
            allow=context.allow,
        )


class _Connection:
    def __init__(self, shared: Sockets, socket: Socket) -> None:
        self._shared = shared
        self._context = shared.context
        self._socket = socket
        self._memory = Memory(shared.space, shared.config.bodies.max_bytes, owner=socket.caller.identity.key)
        self._lanes = Lanes(self._create, self._broken, most_bytes=shared.config.sockets.max_message_bytes)
        limiter = shared.limiter
        self._waiting = None if limiter is None else limiter.hold(socket.caller)
        """The bytes of the messages that wait for their turn."""
        self._running: dict[str, str | None] = {}
        self._ended: deque[str] = deque(maxlen=_REMEMBERED)
        self._unwanted: set[str | None] = set()
        """The lanes whose response was cancelled before it began."""

    async def serve(self) -> None:
        """Read until somebody leaves; what runs then is cancelled, as it is when a stream is cut."""
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
        """Return the next message; `None` when none has come for long, and nothing runs."""
        while True:
            try:
                async with asyncio.timeout(self._shared.config.sockets.idle_seconds):
                    return await self._socket.receive()
            except TimeoutError:
                if not self._lanes.busy:
                    return None

    async def _take(self, raw: bytes) -> None:
        lane: str | None = None
        try:
            if self._waiting is not None:
                self._waiting.add(counted(len(raw)))
        except RequestError as error:
            return await self._refuse(error)
        waits = False
        try:
            event = await run_sized(len(raw), decode_as, _decoder, raw, self._shared.config.bodies.max_values)
            lane = None if event.stream_id is None else plain_id(event.stream_id, "stream_id")
            if event.type == "response.create":
                if event.generate is False:
                    raise InvalidRequestError("Nothing is prepared ahead here.", param="generate", code="unsupported")
                self._lanes.add(lane, raw)
                waits = True
            elif event.type == "response.cancel":
                await self._cancel(event.response_id, lane)
            else:
                raise InvalidRequestError(f"{event.type!r} is not served here.", param="type", code="unsupported")
        except RequestError as error:
            await self._refuse(error, lane)
        finally:
            if self._waiting is not None and not waits:
                self._waiting.drop(counted(len(raw)))

    async def _cancel(self, run_id: str | None, lane: str | None) -> None:
        """Cancel the response that is named, or the one that runs; one that has ended stays as it is."""
        if run_id is None:
            run_id = next((running_id for running_id, its_lane in self._running.items() if its_lane == lane), None)
            if run_id is None and self._lanes.works(lane):
                self._unwanted.add(lane)
        elif run_id not in self._running and run_id not in self._ended:
            raise NotFoundError("There is no such response on this connection.", param="response_id")
        if run_id is None or run_id not in self._running:
            return
        # What is not stored can't be shown again, and need not be: its last event tells.
        with suppress(NotFoundError):
            await self._context.cancel_run(self._socket.caller, run_id)

    async def _create(self, lane: str | None, raw: bytes) -> None:
        held = None if self._waiting is None else self._waiting.split(counted(len(raw)))
        try:
            await self._create_held(lane, raw, held)
        finally:
            self._unwanted.discard(lane)
            if held is not None:
                held.release()

    async def _create_held(self, lane: str | None, raw: bytes, held: BodyHold | None) -> None:
        try:
            # Each time, as for each request: a key may have been taken away since the handshake.
            await self._socket.check()
        except RequestError as error:
            await self._refuse(error, lane)
            return await self._socket.close(POLICY, error.code)
        try:
            body = await run_sized(len(raw), decode, raw, self._shared.config.bodies.max_values)
            if body.background:
                raise InvalidRequestError("A WebSocket has no background: use POST.", param="background")
            await self._answer(lane, body, raw, self._begin(held, counted(len(raw))))
        except RequestError as error:
            # A client that was refused may believe anything about the response that it named: so it is asked to begin
            # again with all that it knows.
            self._memory.forget(_decoder.decode(raw).previous_response_id)
            await self._refuse(error, lane)

    def _begin(self, held: BodyHold | None, size: int) -> Ended | None:
        """Count a response and the bytes of its request, until what is returned is called."""
        if self._shared.limiter is None or held is None:
            return None
        end = self._shared.limiter.begin(self._socket.caller)
        run_held = held.split(size)

        def ended() -> None:
            end()
            run_held.release()

        return ended

    async def _answer(self, lane: str | None, body: CreateBody, raw: bytes, ended: Ended | None) -> None:
        """`ended` is called when the response is no longer being made."""
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
                queued = event("response.queued", {"response": self._shared.renderer.response(stream.run)}, 0)
                return await self._send(_messages(lane, [queued]))
            script = Script(self._shared.renderer, stream.run, pack=partial(_messages, lane))
            run, result = await self._played(lane, script, stream)
        last = script.end(run, result)
        if run.status == "failed":
            self._memory.forget(body.previous_response_id)
        elif run.status != "cancelled" and not run.stored and self._can_be_said_again(request):
            before = self._memory.get(body.previous_response_id)
            size = len(raw) + len(last[-1]) + (0 if before is None else before.size)
            self._memory.keep(run.run_id, Kept.of(request, run, size))
        await self._send(last)

    def _can_be_said_again(self, request: ChannelRequest) -> bool:
        """Tell whether the messages are all there is to it: no conversation besides, and no answer that was used up."""
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
            request = kept.continued(request, hears=self._context.target.messages)
        # One connection has many responses, so that its headers name none of them.
        return identified(request, self._socket.caller, {}, self._shared.intake.response_ids), settle

    async def _played(self, lane: str | None, script: Script, stream: HostedStreamResult[Any]) -> tuple[RunRecord, Any]:
        """Send what happens, but for the last event; return how it has ended."""
        run_id = stream.run.run_id
        self._running[run_id] = lane
        try:
            if lane in self._unwanted:
                return await self._called_off(script, stream)
            send = self._socket.send
            hosted = await pump(stream, script.update, send, [partial(send, message) for message in script.begin()])
            return hosted.run, hosted.result
        except RequestError as error:
            return failed(stream.run, error), None
        finally:
            del self._running[run_id]
            self._ended.append(run_id)

    async def _called_off(self, script: Script, stream: HostedStreamResult[Any]) -> tuple[RunRecord, Any]:
        await stream.aclose()
        await self._send(script.begin())
        # One that would go on without its client is told by name.
        with suppress(NotFoundError):
            await self._context.cancel_run(self._socket.caller, stream.run.run_id)
        return stream.run.replace(status="cancelled"), None

    async def _send(self, messages: Sequence[bytes]) -> None:
        for message in messages:
            await self._socket.send(message)

    async def _refuse(self, error: RequestError, lane: str | None = None) -> None:
        told: dict[str, Any] = msgspec.to_builtins(error_out(error))
        if error.retry_after is not None:
            told["headers"] = {name.decode(): value.decode() for name, value in error_headers(error)}
        message = SocketError(status=status_of(error), error=told)
        if lane is not None:
            message.stream_id = lane
        await self._socket.send(encode(message))

    async def _broken(self, lane: str | None) -> None:
        await self._refuse(InternalError(), lane)


def _messages(lane: str | None, events: Sequence[bytes]) -> list[bytes]:
    """Make a message of each event, with the name of its lane."""
    data = [data_of(event) for event in events]
    return data if lane is None else [b'{"stream_id":%b,%b' % (encode(lane), event[1:]) for event in data]
