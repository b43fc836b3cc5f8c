"""The events of tasks as server-sent events, for both bindings."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from frontdesk.channels.a2a.artifacts import (
    PartAssembler,
    data_part,
    encode,
    group_pieces,
    part_of_piece,
    read_structured_value,
)
from frontdesk.channels.a2a.config import A2AConfig
from frontdesk.channels.a2a.errors import UNSUPPORTED_OPERATION, ProtocolError
from frontdesk.channels.a2a.modes import TEXT, is_accepted
from frontdesk.channels.a2a.render import (
    TaskView,
    get_context_id,
    get_modes,
    get_state,
    is_terminal,
    short_message,
)
from frontdesk.channels.a2a.schema import (
    WORKING,
    AnswerOut,
    ArtifactOut,
    ArtifactUpdateOut,
    PartOut,
    StatusOut,
    StatusUpdateOut,
    format_time,
)
from frontdesk.channels.a2a.tasks import MAX_SHORT_MESSAGE_LENGTH, UNFINISHED, Tasks, may_wait
from frontdesk.errors import RequestError
from frontdesk.http.endpoint import HttpCall
from frontdesk.http.sse import EventStream, StreamTimes, pump
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import FINAL, RunChain, RunRecord
from frontdesk.streaming.pieces import MessageEndPiece, Piece, TextPiece

Frame = Callable[[bytes], bytes]
"""Returns the event of a `StreamResponse` in its JSON form."""
_text = msgspec.json.Encoder()


class RunEvents:
    """Turns the updates of one run into events of its task."""

    def __init__(self, run: RunRecord, frame: Frame, modes: Sequence[str], *, skip: int = 0) -> None:
        """`skip` is the number of first updates that the reader has in the snapshot of the task."""
        self._frame, self._modes, self._skip = frame, modes, skip
        self._run = run
        self._task_id, self._context_id = run.chain_id, get_context_id(run)
        self._assembler = PartAssembler(run.run_id)
        self._takes_text = is_accepted(TEXT, modes)
        self._artifact = ""
        self._heads: tuple[bytes, bytes] = (b"", b"")
        self.is_working = False

    def working(self) -> list[bytes]:
        """Return the status update with which the work on a run begins, once."""
        if self.is_working:
            return []
        self.is_working = True
        status = StatusOut(state=WORKING, timestamp=format_time(self._run.created_at))
        update = StatusUpdateOut(task_id=self._task_id, context_id=self._context_id, status=status)
        return [self._frame(encode(AnswerOut(status_update=update)))]

    def update(self, update: Any) -> list[bytes]:
        self._assembler.add(update)
        events: list[bytes] = []
        is_shown = self._skip <= 0
        self._skip -= 1
        for piece in self._assembler.take():
            events += self._piece(piece)
        if not is_shown:
            return []
        return events if self.is_working else [*self.working(), *events]

    def _piece(self, piece: Piece) -> Iterable[bytes]:
        if isinstance(piece, TextPiece):
            if piece.is_refusal or not piece.text:
                return ()
            if self._takes_text:
                return (self._chunk(piece.message_id, piece.text),)
        if isinstance(piece, MessageEndPiece):
            return self.end_artifact()
        part = part_of_piece(piece, self._modes)
        return () if part is None else (self._event(piece.message_id, [part]),)

    def _chunk(self, artifact_id: str, text: str) -> bytes:
        if artifact_id != self._artifact:
            self._begin(artifact_id)
            return self._frame(self._heads[0] % _text.encode(text))
        return self._frame(self._heads[1] % _text.encode(text))

    def _begin(self, artifact_id: str) -> None:
        self._artifact = artifact_id
        ids = (_text.encode(one).replace(b"%", b"%%") for one in (self._task_id, self._context_id, artifact_id))
        head = b'{"artifactUpdate":{"taskId":%b,"contextId":%b,"artifact":{"artifactId":%b,"parts":[{"text":' % tuple(
            ids
        )
        self._heads = (head + b"%b}]}}}", head + b'%b}]},"append":true}}')

    def _event(self, artifact_id: str, parts: list[PartOut], *, last: bool = False, replaces: bool = False) -> bytes:
        appends = artifact_id == self._artifact and not replaces
        if artifact_id != self._artifact:
            self._begin(artifact_id)
        update = ArtifactUpdateOut(
            task_id=self._task_id,
            context_id=self._context_id,
            artifact=ArtifactOut(artifact_id=artifact_id, parts=parts),
            append=appends or UNSET,
            last_chunk=last or UNSET,
        )
        return self._frame(encode(AnswerOut(artifact_update=update)))

    def end_artifact(self, value: Any = None) -> list[bytes]:
        """Mark the end of the open artifact. `value` is its structured form."""
        artifact_id = self._artifact
        if not artifact_id:
            return []
        part = None if value is None else data_part(value, self._modes)
        ended = self._event(artifact_id, [part or PartOut(text="")], last=True, replaces=part is not None)
        self._artifact = ""
        return [ended]

    def close(self, result: Any) -> list[bytes]:
        """Return the events at the end of the run, before that of its status."""
        events = [*self.working(), *self.end_artifact(read_structured_value(result))]
        self._assembler.take()
        return events


class TaskStreams:
    """Sends the streams of the tasks of one channel."""

    def __init__(self, context: ChannelContext, tasks: Tasks, config: A2AConfig) -> None:
        self._context, self._tasks, self._times = context, tasks, config.streams
        self._short_messages = config.short_answers_as_messages

    async def send_run(
        self,
        call: HttpCall,
        stream: HostedStreamResult[Any],
        frame: "Framing",
        history_length: int | None,
        sent_input: Any,
    ) -> None:
        """Send the events of a message until its task has ended or waits for input."""
        run = stream.run
        begun = (run if run.status not in FINAL else _reopen(run)).replace(input=sent_input)
        first = frame.frame(
            encode(AnswerOut(task=(await self._view_begun(call, begun)).task(history_length=history_length)))
        )
        events = RunEvents(run, frame.frame, get_modes(run))
        held = HeldEvents(first, holds=self._short_messages and run.root_run_id is None)
        async with _Sender(call, frame, self._times) as sender:
            opening = iter([*sender.opening, *(partial(sender.send, event) for event in held.take([]))])
            hosted = await pump(stream, lambda update: held.take(events.update(update)), sender.send, opening)
            if held.is_holding:
                shown = short_message(hosted.run, hosted.result, get_context_id(run), MAX_SHORT_MESSAGE_LENGTH)
                if shown is not None:
                    return await sender.send(frame.frame(encode(AnswerOut(message=shown))))
            for event in held.release(events.close(hosted.result)):
                await sender.send(event)
            await self._send_end(call, hosted, frame, sender)

    async def _view_begun(self, call: HttpCall, run: RunRecord) -> TaskView:
        """Return the view of a task whose newest run begins."""
        if run.root_run_id is None:
            return TaskView(RunChain(root=run, newest=run), [run])
        chain = await self._context.runs.chain(call.caller, run.chain_id)
        earlier = [
            one for one in await self._context.runs.list_chain(call.caller, run.chain_id) if one.run_id != run.run_id
        ]
        return TaskView(chain.replace(newest=run, questions=()), [*earlier, run])

    async def _send_end(
        self, call: HttpCall, hosted: HostedRunResult[Any], frame: "Framing", sender: "_Sender"
    ) -> None:
        """Send the status after a run, and the runs that others have started meanwhile."""
        run = hosted.run.replace(result=hosted.result)
        if run.root_run_id is None and not may_wait(run):
            return await sender.send(_status_event(RunChain(root=run, newest=run), frame.frame))
        chain = await self._context.runs.chain(call.caller, run.chain_id)
        if get_state(chain) not in UNFINISHED and chain.newest.run_id == run.run_id:
            return await sender.send(_status_event(chain, frame.frame))
        await self._follow(call, run, frame, sender, waits=False, skip=None)

    async def send_task(self, call: HttpCall, answer: AnswerOut, frame: "Framing") -> None:
        """Send a task that exists, and its events until it has ended or waits for input."""
        task = answer.task
        async with _Sender(call, frame, self._times) as sender:
            for step in sender.opening:
                await step()
            await sender.send(frame.frame(encode(answer)))
            if task is UNSET or task.status.state not in UNFINISHED:
                return
            chain = await self._context.runs.chain(call.caller, task.id)
            await self._follow(call, chain.newest, frame, sender, waits=False, skip=0, shown=task.status.state)

    async def subscribe(self, call: HttpCall, chain: RunChain, frame: "Framing") -> None:
        """Send the present state of a task, and its events until it has ended."""
        newest, caller = chain.newest, call.caller
        if is_terminal(chain):
            message = "The task has ended and has no more events. Read it with GetTask."
            state = {"taskId": chain.root.run_id, "state": get_state(chain)}
            raise ProtocolError(UNSUPPORTED_OPERATION, message, metadata=state)
        stored: Sequence[Any] = ()
        if newest.status not in FINAL:
            stored = await self._context.runs.list_stored_updates(caller, newest.run_id)
        task = (await self._tasks.view(caller, chain)).task()
        if stored:
            written = artifacts_of_updates(newest, stored, get_modes(newest) or get_modes(chain.root))
            task.artifacts = [*(task.artifacts or []), *written] or UNSET
        async with _Sender(call, frame, self._times) as sender:
            for step in sender.opening:
                await step()
            await sender.send(frame.frame(encode(AnswerOut(task=task))))
            skip = None if newest.status in FINAL else len(stored)
            await self._follow(call, newest, frame, sender, waits=True, skip=skip, shown=task.status.state)

    async def _follow(
        self,
        call: HttpCall,
        run: RunRecord,
        frame: "Framing",
        sender: "_Sender",
        *,
        waits: bool,
        skip: int | None,
        shown: str = "",
    ) -> None:
        """Send the events of a chain from a run on. `skip` is the number of its known updates, None for all."""
        caller, state = call.caller, shown
        async for stream in await self._context.runs.follow_chain(caller, run.run_id, waits=waits):
            is_known = stream.run.run_id == run.run_id and skip is None
            begun = stream.run.run_id == run.run_id
            async with stream:
                events = RunEvents(stream.run, frame.frame, get_modes(stream.run), skip=(skip or 0) if begun else 0)
                events.is_working = begun and state == WORKING
                hosted = await pump(stream, partial(_render_update, events, is_known), sender.send)
            if is_known:
                continue
            for event in events.close(hosted.result):
                await sender.send(event)
            chain = await self._context.runs.chain(caller, run.chain_id)
            if chain.newest.run_id == hosted.run.run_id:
                state = get_state(chain)
                await sender.send(_status_event(chain, frame.frame))
        chain = await self._context.runs.chain(caller, run.chain_id)
        if get_state(chain) != state or (not is_terminal(chain) and not waits and not state):
            await sender.send(_status_event(chain, frame.frame))


class HeldEvents:
    """Holds the events of a run back while its answer may become one message."""

    def __init__(self, first: bytes, *, holds: bool) -> None:
        self._held: list[bytes] = [first]
        self._size = 0
        self.is_holding = holds

    def take(self, events: list[bytes]) -> list[bytes]:
        if not self.is_holding:
            return self.release(events)
        self._held += events
        self._size += sum(map(len, events))
        # The events around a text are larger than the text.
        return self.release([]) if self._size > 4 * MAX_SHORT_MESSAGE_LENGTH else []

    def release(self, events: list[bytes]) -> list[bytes]:
        self.is_holding = False
        if not self._held:
            return events
        held, self._held = self._held, []
        return [*held, *events]


class Framing:
    """The form of the events of a binding."""

    def frame(self, payload: bytes) -> bytes:
        raise NotImplementedError

    def error(self, error: RequestError) -> bytes:
        raise NotImplementedError

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        raise NotImplementedError


class _Sender:
    """One response of events."""

    def __init__(self, call: HttpCall, framing: Framing, times: StreamTimes) -> None:
        self._call, self._framing = call, framing
        self._events = EventStream(call.send, keep_alive=times.keep_alive, send_seconds=times.send_seconds, reader=call)
        self.send = self._events.send

    @property
    def opening(self) -> Iterable[Callable[[], Awaitable[None]]]:
        return iter([self._open])

    async def _open(self) -> None:
        await self._events.start(self._framing.headers)
        self._call.begun = True

    async def __aenter__(self) -> "_Sender":
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        try:
            if isinstance(error, RequestError) and self._call.begun:
                await self._events.send(self._framing.error(error))
                error = None
            if error is None:
                await self._events.end()
                return True
            return False
        finally:
            self._events.stop()


def artifacts_of_updates(run: RunRecord, updates: Sequence[Any], modes: Sequence[str]) -> list[ArtifactOut]:
    """Return the artifacts of the first updates of a run."""
    assembler = PartAssembler(run.run_id)
    for update in updates:
        assembler.add(update)
    return list(group_pieces(assembler.pieces, modes))


def _render_update(events: RunEvents, is_known: bool, update: Any) -> list[bytes]:
    return [] if is_known else events.update(update)


def _status_event(chain: RunChain, frame: Frame) -> bytes:
    view = TaskView(chain)
    update = StatusUpdateOut(task_id=view.task_id, context_id=view.context_id, status=view.status())
    return frame(encode(AnswerOut(status_update=update)))


def _reopen(run: RunRecord) -> RunRecord:
    """Return a run that has ended as it was when it began: its stream is sent again."""
    return run.replace(status="queued", finished_at=None, result=None, failure=None, client_calls=())
