"""`InvocationsChannel`: its routes and the handling of its requests."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Unpack

from agent_framework import AgentResponse, AgentResponseUpdate, Content, Message
from starlette.routing import Route

from frontdesk.asgi.messages import NO_RETRY, below, error_headers, parse_resume_position, send_json
from frontdesk.auth.any_auth import collect_schemes
from frontdesk.channels.invocations.config import InvocationsConfig, InvocationsSettings
from frontdesk.channels.invocations.openapi import document
from frontdesk.channels.invocations.parse import (
    INVOCATION_ID,
    SESSION_ID,
    build_page,
    decode,
    decode_open,
    extra_fields,
    get_run_id,
    parse_approval,
    parse_target,
    to_request,
)
from frontdesk.channels.invocations.render import (
    Renderer,
    encode,
    encode_ended,
    encode_started,
    error_body,
    error_out,
    render_waiting,
)
from frontdesk.channels.invocations.schema import InvocationBody, InvocationOut
from frontdesk.chat.inbound import Command, command_in
from frontdesk.errors import RequestError
from frontdesk.http.bodies import read_payload
from frontdesk.http.channel import HttpChannel, takes_settings
from frontdesk.http.detached_runs import DetachedRuns
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.idempotency import keyed
from frontdesk.http.sse import StreamTimes, send_events, stream_events
from frontdesk.identifiers import plain_id
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.interfaces.context import CommandState
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunRecord

RawHeader = tuple[bytes, bytes]


def run_headers(run: RunRecord, request_id: bytes | None) -> list[RawHeader]:
    """Return the headers with the ids of a run and its session."""
    run_id = run.run_id.encode()
    headers = [(INVOCATION_ID, run_id), (b"x-request-id", request_id or run_id)]
    if run.session_key is not None:
        headers.append((SESSION_ID, run.session_key.encode()))
    return headers


class ResponseWriter:
    __slots__ = ("_call", "_path", "_renderer")

    def __init__(self, call: HttpCall, renderer: Renderer, path: str) -> None:
        """`path` is the path of the channel, which prefixes the URLs of its runs."""
        self._call = call
        self._renderer = renderer
        self._path = path

    def run(self, run: RunRecord, result: object = None) -> Awaitable[None]:
        """Send a run, with its result if it has one. The status is 202 while it is queued."""
        body = self._renderer.plain(run, result) or encode(self._renderer.invocation(run, result))
        self._call.begun = True
        headers = run_headers(run, self._call.request_id)
        if run.status != "queued":
            return send_json(self._call.send, 200, body, headers)
        location = (b"location", below(self._call.scope, f"{self._path}/{run.run_id}"))
        return send_json(self._call.send, 202, body, [*headers, location])

    async def error(self, error: RequestError) -> None:
        """Send an error. For a started run send its outcome instead, because clients retry errors."""
        if isinstance(error.run, RunRecord):
            return await self._send_failure(error.run)
        headers = [*error_headers(error), (b"x-request-id", self._call.answer_id)]
        await send_json(self._call.send, error.status, error_body(error), headers)

    async def _send_failure(self, run: RunRecord) -> None:
        headers = [*run_headers(run, self._call.request_id), NO_RETRY]
        self._call.begun = True
        if not run.stream:
            return await send_json(self._call.send, 200, encode(self._renderer.invocation(run, None)), headers)
        script = Script(self._renderer, run)
        await send_events(self._call.send, b"".join((*script.begin(), *script.end(run, None))), headers)

    async def text(self, run: RunRecord, text: str) -> None:
        """Send a text as the result of an ended run, as a stream if requested."""
        result = AgentResponse[Any](messages=[Message("assistant", [text])])
        if not run.stream:
            return await self.run(run, result)
        script = Script(self._renderer, run)
        shown = script.update(AgentResponseUpdate(contents=[Content.from_text(text)], role="assistant"))
        events = b"".join((*script.begin(), *shown, *script.end(run, result)))
        self._call.begun = True
        await send_events(self._call.send, events, run_headers(run, self._call.request_id))

    async def stream(self, stream: HostedStreamResult[Any], times: StreamTimes, after: int = -1) -> None:
        """Send an event for each update numbered above `after` as it arrives, and the result at the end."""
        script = Script(self._renderer, stream.run, after)
        await stream_events(self._call, stream, script, times, run_headers(stream.run, self._call.request_id))


class Script:
    """Converts the updates of a run into events. They are numbered from the start, so all readers count alike."""

    def __init__(self, renderer: Renderer, run: RunRecord, after: int = -1) -> None:
        """`after` is the number of the last event that the reader has received."""
        self._renderer = renderer
        self._run = run
        self._after = after
        self._number = 1

    def begin(self) -> Sequence[bytes]:
        return () if self._after >= 0 else (encode_started(self._run),)

    def update(self, update: Any) -> Sequence[bytes]:
        number = self._number
        event = self._renderer.update(update, number)
        if event is None:
            return ()
        self._number = number + 1
        return (event,) if number > self._after else ()

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        return self._end(self._renderer.invocation(run, result))

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        out = self._renderer.invocation(error.run if isinstance(error.run, RunRecord) else run, None)
        out.status = "failed"
        out.error = error_out(error, run.run_id)
        return self._end(out)

    def _end(self, out: InvocationOut) -> Sequence[bytes]:
        return (encode_ended(out, self._number),) if self._number > self._after else ()


class InvocationsChannel(HttpChannel):
    """Answers `POST /invocations` with JSON or with server-sent events."""

    links_by_text = True

    @takes_settings(InvocationsConfig)
    def __init__(
        self, *, name: str = "invocations", path: str = "/invocations", **settings: Unpack[InvocationsSettings]
    ) -> None:
        self._config = config = InvocationsConfig(**settings)
        super().__init__(config, name=name, path=path)
        self.session_mode = config.session_mode
        self._renderer = Renderer(config.tool_calls)
        self._open = config.extra_fields == "attributes"
        self._decode = decode_open if self._open else decode

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._detached = DetachedRuns()
        spec = self._config.openapi_spec
        if spec is None:
            # An operator whose hook accepts other bodies gives a document of their own.
            spec = document(self.path, context.target, collect_schemes(self.auth), extra_fields=self._open)
        self._document = encode(spec)
        return super().contribute(context)

    def routes(self) -> list[Route]:
        return [
            Route("/", endpoint=self.endpoint(runs=["POST"], POST=self.create)),
            Route("/docs/openapi.json", endpoint=self.endpoint(GET=self.describe)),
            # Two names, because a caller may call an invocation anything.
            Route("/approvals/pending", endpoint=self.endpoint(GET=self.approvals)),
            Route("/{run_id}", endpoint=self.endpoint(GET=self.get)),
            Route("/{run_id}/cancel", endpoint=self.endpoint(POST=self.cancel)),
        ]

    def _answer(self, call: HttpCall) -> ResponseWriter:
        return ResponseWriter(call, self._renderer, self.path)

    async def create(self, call: HttpCall) -> None:
        body, raw = await self.read_body(call, self._decode)
        shown = self._open or self.run_hook is not None
        protocol_request = await read_payload(raw, call.scope) if shown else None
        extra = extra_fields(protocol_request) if self._open and protocol_request is not None else {}
        approval = parse_approval(body)
        if approval is None:
            request = self._build_request(call, body, extra)
            # Only a host with a linker has commands here; an approval is no text.
            if isinstance(request.input, str) and (command := self._command_in(request.input)) is not None:
                return await self._run_command(call, request, command)
        else:
            request = await self._build_answer_request(call, body, approval, extra)
        request = keyed(request, call.headers, raw, call.scope["query_string"])
        answer = self._answer(call)
        # Under a key its client may come back for it.
        detached = request.idempotency_key is not None and not request.background
        if not request.stream:
            work = self.context.run(request, call.caller, protocol_request=protocol_request)
            hosted = await (self._detached.run(work, call.detach()) if detached else work)
            return await answer.run(hosted.run, hosted.result)
        opened = self.context.stream(request, call.caller, protocol_request=protocol_request)
        async with await (self._detached.stream(opened, call.detach()) if detached else opened) as stream:
            if stream.run.status == "queued" and not stream.run.stream:
                return await answer.run(stream.run)
            await answer.stream(stream, self._config.streams)

    def _command_in(self, text: str) -> Command | None:
        """Return the linking command in a text, or None if the text is for the target."""
        command = command_in(text) if text.startswith("/") else None
        return command if command is not None and self.context.find_command(command.name) is not None else None

    async def _run_command(self, call: HttpCall, request: ChannelRequest, command: Command) -> None:
        """Answer a command as an unstored invocation."""
        begun, said = self.context.now(), list[str]()
        asked = request.replace(operation="command", input=command.args)
        await self.context.run_command(command.name, _CommandCall(asked, call.caller, self.context, said))
        run = RunRecord(
            run_id=request.run_id or self.context.new_id("run"),
            owner="",
            channel=self.name,
            status="completed",
            created_at=begun,
            finished_at=self.context.now(),
            session_key=None if request.session is None else request.session.key,
            stored=False,
            stream=request.stream,
            metadata=request.metadata,
        )
        await self._answer(call).text(run, "\n\n".join(said))

    async def _build_answer_request(
        self, call: HttpCall, body: InvocationBody, approval: ApprovalAnswer, extra: Mapping[str, Any]
    ) -> ChannelRequest:
        request = await self.context.approvals.build_request(call.caller, [approval])
        return request.replace(
            run_id=get_run_id(call.headers),
            stream=body.stream,
            background=body.background,
            response_target=parse_target(body.response_target),
            attributes=extra,
        )

    def _build_request(self, call: HttpCall, body: InvocationBody, extra: Mapping[str, Any]) -> ChannelRequest:
        return to_request(
            body,
            channel=self.name,
            session_mode=self.session_mode,
            headers=call.headers,
            query=call.scope["query_string"],
            identity=call.caller.identity,
            attributes=extra,
        )

    async def get(self, call: HttpCall) -> None:
        after = parse_resume_position(call.scope["query_string"])
        if after is not None:
            async with await self.context.runs.follow(call.caller, _run_id(call), stored_events_only=True) as stream:
                return await self._answer(call).stream(stream, self._config.streams, after)
        run = await self.context.runs.get(call.caller, _run_id(call))
        await self._answer(call).run(run, run.result)

    async def cancel(self, call: HttpCall) -> None:
        run = await self.context.runs.cancel(call.caller, _run_id(call))
        await self._answer(call).run(run, run.result)

    async def approvals(self, call: HttpCall) -> None:
        after, limit = build_page(call.scope["query_string"])
        page = await self.context.approvals.waiting(call.caller, after=after, limit=limit)
        await send_json(call.send, 200, encode(render_waiting(page)), [(b"x-request-id", call.answer_id)])

    async def describe(self, call: HttpCall) -> None:
        await self.context.allow(call.caller)
        await send_json(call.send, 200, self._document, [(b"x-request-id", call.answer_id)])

    async def answer_error(self, call: HttpCall, error: RequestError) -> None:
        await self._answer(call).error(error)


class _CommandCall:
    """A `ChannelCommandContext` whose replies are collected for the response."""

    def __init__(self, request: ChannelRequest, caller: Caller, context: ChannelContext, said: list[str]) -> None:
        self.request, self.caller, self.session = request, caller, request.session
        self.state: CommandState
        self.raw_event: Any = None
        self.event: InboxItem | None = None
        self._context = context
        self._said = said

    async def reply(self, reply: Reply | str, /) -> None:
        self._said.append(reply if isinstance(reply, str) else reply.full_text)

    async def run(self, request: ChannelRequest) -> HostedRunResult[Any]:
        return await self._context.run(request, self.caller)


def _run_id(call: HttpCall) -> str:
    return plain_id(call.scope["path_params"]["run_id"], "invocation id")
