"""Reads threads for pages that are loaded again: messages, state, open interrupts and the run in progress."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec
from agent_framework import Content, Message

from frontdesk.channels.agui.events import Script, build_reasoning_id, event, show_file
from frontdesk.channels.agui.interrupts import Questions
from frontdesk.channels.agui.parse import CONTEXT_DIGEST
from frontdesk.channels.agui.schema import Interrupt
from frontdesk.channels.agui.thread import SEPARATOR
from frontdesk.errors import NotFoundError, RequestError
from frontdesk.framework.contents import call_arguments, call_outcome, get_asked_call
from frontdesk.framework.workflow_requests import REQUEST_INFO
from frontdesk.http.sse import EventStream, pump
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.approval import PendingApproval
from frontdesk.models.conversation import TranscriptMessage, TranscriptPage
from frontdesk.models.identity import Caller
from frontdesk.models.result import HostedStreamResult
from frontdesk.models.run import FINAL, RunRecord
from frontdesk.streaming.assembler import HOST_CALLS, HOST_RESULTS, MEDIA

SHOWN_TURNS = 100
"""The number of turns in a snapshot, the last ones of the thread."""
_NO_THREAD = "Thread not found: its id is wrong, it has expired, or it belongs to another caller."
_MAX_LIST_PAGES = 5
_WAITING = frozenset({"queued", "running"})


MAX_FILE_BYTES = 8 * 1024 * 1024
"""The bytes of all files in one snapshot. Further files are shown by their type only."""

_KINDS = {"image": "image", "audio": "audio", "video": "video"}
Shown = dict[str, Any]


class Snapshot:
    """The messages of a thread as clients show them."""

    def __init__(self) -> None:
        self.messages: list[Shown] = []
        self._left = MAX_FILE_BYTES
        self._calls: set[str] = set()

    def add_history(self, messages: Iterable[TranscriptMessage]) -> None:
        for known in messages:
            if known.message_id is not None:
                self._add(known.message, known.message_id)

    def add_inputs(self, messages: Iterable[Message]) -> None:
        """Add the input of a run that has not ended, and is no part of the history yet."""
        known = {message["id"] for message in self.messages}
        for message in messages:
            if message.role == "user" and message.message_id and message.message_id not in known:
                self._add(message, message.message_id)

    def _add(self, message: Message, message_id: str) -> None:
        if message.role == "user":
            self._add_input(message, message_id)
        elif message.role in ("assistant", "tool"):
            self._add_answer(message, message_id)

    def _add_input(self, message: Message, message_id: str) -> None:
        if CONTEXT_DIGEST in message.additional_properties:
            return
        parts = [part for content in message.contents if (part := self._part(content)) is not None]
        if not parts:
            return
        is_text = all(part["type"] == "text" for part in parts)
        content = "\n".join(part["text"] for part in parts) if is_text else parts
        self.messages.append({"id": message_id, "role": "user", "content": content})

    def _part(self, content: Content) -> Shown | None:
        if content.type == "text":
            return {"type": "text", "text": content.text or ""}
        if content.type not in MEDIA:
            return None
        media_type = content.media_type or "application/octet-stream"
        uri = content.uri or ""
        self._left -= len(uri)
        if self._left < 0 or not uri:
            return {"type": "text", "text": f"[{media_type}]"}
        kind = _KINDS.get(media_type.partition("/")[0], "document")
        if not uri.startswith("data:"):
            return {"type": kind, "source": {"type": "url", "value": uri, "mimeType": media_type}}
        value = uri.partition("base64,")[2]
        return {"type": kind, "source": {"type": "data", "value": value, "mimeType": media_type}}

    def _add_answer(self, message: Message, message_id: str) -> None:
        texts, calls = list[str](), list[Shown]()
        place, thoughts, media = len(self.messages), 0, 0
        was_thought = False
        for content in message.contents:
            is_thought = content.type == "text_reasoning"
            if is_thought and not was_thought:
                shown_id = build_reasoning_id(message_id, thoughts)
                self.messages.append({"id": shown_id, "role": "reasoning", "content": ""})
                thoughts += 1
                # The answer follows the reasoning that comes before it.
                place = place if texts or calls else len(self.messages)
            if is_thought:
                self.messages[-1]["content"] += content.text or ""
            elif content.type == "text":
                texts.append(content.text or "")
            elif content.type in HOST_RESULTS:
                self._add_result(message_id, content)
            elif content.type in HOST_CALLS or content.type == "function_approval_request":
                calls += self._call(content)
            elif content.type in MEDIA:
                shown_id = f"{message_id}{SEPARATOR}m{media}"
                media += 1
                self._add_file(shown_id, content)
            was_thought = is_thought
        if texts or calls:
            shown: Shown = {"id": message_id, "role": "assistant"}
            if texts:
                shown["content"] = "".join(texts)
            if calls:
                shown["toolCalls"] = calls
            self.messages.insert(place, shown)

    def _call(self, content: Content) -> Sequence[Shown]:
        if content.type == "function_approval_request":
            call = content.function_call
            call_id, (name, arguments) = "" if call is None else str(call.call_id), get_asked_call(content)
        else:
            call_id, name, arguments = str(content.call_id), content.name or content.tool_name, call_arguments(content)
        if not call_id or call_id in self._calls or name == REQUEST_INFO:
            return ()
        self._calls.add(call_id)
        name = name or content.type.removesuffix("_tool_call")
        return ({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments or "{}"}},)

    def _add_result(self, message_id: str, content: Content) -> None:
        call_id = str(content.call_id)
        if call_id in self._calls:
            shown_id = f"{message_id}{SEPARATOR}{call_id}"
            result = {"id": shown_id, "role": "tool", "toolCallId": call_id, "content": call_outcome(content)}
            self.messages.append(result)

    def _add_file(self, shown_id: str, content: Content) -> None:
        self._left -= len(content.uri or "")
        shown = show_file(content) if self._left >= 0 else {"url": "", "mimeType": content.media_type or ""}
        self.messages.append({"id": shown_id, "role": "activity", "activityType": "file", "content": shown})


async def read_page(
    context: ChannelContext, caller: Caller, key: str, before: int | None, turns: int
) -> TranscriptPage:
    """Return the last turns of a session before a position, an empty page for a caller who was never here."""
    try:
        return await context.sessions.transcript(caller, key=key, before=before, limit=turns)
    except NotFoundError:
        return TranscriptPage()


class ThreadView(NamedTuple):
    """A thread as its client sees it."""

    newest: RunRecord
    """The run in progress, or the last one."""
    messages: Sequence[dict[str, Any]]
    state: Any
    """UNSET if the thread has none."""

    def render_opening(self) -> list[bytes]:
        """Return the events with the messages and the state."""
        events = [event("MESSAGES_SNAPSHOT", messages=self.messages)]
        if self.state is not msgspec.UNSET:
            events.append(event("STATE_SNAPSHOT", snapshot=self.state))
        return events


class Threads:
    def __init__(self, context: ChannelContext) -> None:
        self._context = context

    async def list_newest(self, caller: Caller, thread_id: str) -> list[RunRecord]:
        """Return the newest runs of a thread and its branches, the newest one first."""
        runs = [
            *await self._runs(caller, session=thread_id),
            *await self._runs(caller, session_prefix=f"{thread_id}{SEPARATOR}"),
        ]
        return sorted(runs, key=_recency, reverse=True)

    async def find(self, caller: Caller, thread_id: str) -> ThreadView:
        """Return a thread in its last branch."""
        runs = await self.list_newest(caller, thread_id)
        if not runs:
            raise NotFoundError(_NO_THREAD)
        newest = runs[0]
        page = await read_page(self._context, caller, newest.session_key or thread_id, None, SHOWN_TURNS)
        snapshot = Snapshot()
        snapshot.add_history(page.messages)
        if newest.status not in FINAL:
            snapshot.add_inputs(newest.input or ())
        states = (run.shared_state for run in runs if run.session_key == newest.session_key)
        state = next((text for text in states if text is not None), None)
        shown = msgspec.UNSET if state is None else msgspec.json.decode(state)
        return ThreadView(newest, snapshot.messages, shown)

    async def _runs(self, caller: Caller, **where: str) -> list[RunRecord]:
        """Return the newest runs of the sessions with a key or its beginning."""
        cursor: str | None = None
        for _ in range(_MAX_LIST_PAGES):
            page = await self._context.runs.list(
                caller,
                session=where.get("session"),
                session_prefix=where.get("session_prefix"),
                cursor=cursor,
                limit=3,
            )
            if page.runs or page.cursor is None:
                return list(page.runs)
            cursor = page.cursor
        return []

    async def questions(self, caller: Caller, run: RunRecord, approval_ids: Sequence[str]) -> Questions:
        """Return the approvals with these ids, and those of the chain of a run that still wait."""
        approvals: dict[str, PendingApproval] = {}
        for approval_id in approval_ids:
            approvals[approval_id] = await self._context.approvals.get(caller, approval_id)
        if run.root_run_id is not None:
            chain = await self._context.runs.chain(caller, run.run_id)
            approvals.update((question.approval_id, question) for question in chain.waiting)
        others = [
            approval_id
            for approval_id in approvals
            if not await self._context.approvals.may_decide(caller, approval_id)
        ]
        return Questions(approvals=approvals, waiting_for_others=frozenset(others))

    async def prepare_end(self, caller: Caller, script: Script, run: RunRecord, result: Any) -> None:
        """Read what the last event of a run shows of its questions."""
        script.finish(result)
        if run.status == "completed" and (script.approval_ids or run.root_run_id is not None):
            script.set_questions(await self.questions(caller, run, script.approval_ids))

    async def interrupts(self, caller: Caller, view: ThreadView) -> list[Interrupt]:
        if view.newest.status != "completed":
            return []
        script = Script(view.newest, thread_id="")
        await self.prepare_end(caller, script, view.newest, view.newest.result)
        return script.interrupts

    async def send(
        self, caller: Caller, thread_id: str, view: ThreadView, events: EventStream, *, waits: bool, is_current: bool
    ) -> None:
        """Send a thread, then the run in progress and the runs that continue it, each as a run of its own.

        With `waits`, an open question does not end the stream.
        """
        newest, opening = view.newest, view.render_opening()
        if newest.status in FINAL:
            script = Script(newest, thread_id=thread_id, is_current=is_current, opening=opening)
            await self.prepare_end(caller, script, newest, newest.result)
            for part in (*script.begin(), *script.end(newest, newest.result)):
                await events.send(part)
            opening = []
        streams = await self._context.runs.follow_chain(caller, newest.run_id, waits=waits)
        async with aclosing(streams):
            async for stream in streams:
                if stream.run.run_id == newest.run_id and newest.status in FINAL:
                    await _skip(stream)
                    continue
                script = Script(stream.run, thread_id=thread_id, is_current=is_current, opening=opening)
                opening = []
                await self._send_run(caller, stream, script, events)

    async def _send_run(
        self, caller: Caller, stream: HostedStreamResult[Any], script: Script, events: EventStream
    ) -> None:
        for part in script.begin():
            await events.send(part)
        try:
            hosted = await pump(stream, script.update, events.send)
            await self.prepare_end(caller, script, hosted.run, hosted.result)
            last = script.end(hosted.run, hosted.result)
        except RequestError as error:
            last = script.fail(stream.run, error)
        for part in last:
            await events.send(part)

    async def send_continuation(self, caller: Caller, asked: str, script: Script, events: EventStream) -> None:
        """Send the runs that continue a run, as one run of the client."""
        for part in script.begin():
            await events.send(part)
        ended: tuple[RunRecord, Any] | None = None
        streams = await self._context.runs.follow_chain(caller, asked)
        try:
            async with aclosing(streams):
                async for stream in _after(streams, asked):
                    if ended is not None:
                        for part in script.finish(ended[1]):
                            await events.send(part)
                    script.follow(stream.run)
                    hosted = await pump(stream, script.update, events.send)
                    ended = hosted.run, hosted.result
            if ended is None:
                run = await self._context.runs.get(caller, asked)
                ended = run, run.result
            await self.prepare_end(caller, script, *ended)
            last = script.end(*ended)
        except RequestError as error:
            last = script.fail(script.run, error)
        for part in last:
            await events.send(part)


async def _after(
    streams: AsyncGenerator[HostedStreamResult[Any], None], asked: str
) -> AsyncGenerator[HostedStreamResult[Any], None]:
    """Yield the streams after that of the run that asked."""
    async for stream in streams:
        if stream.run.run_id == asked:
            await _skip(stream)
        else:
            yield stream


async def _skip(stream: HostedStreamResult[Any]) -> None:
    async for _ in stream:
        pass


def _recency(run: RunRecord) -> tuple[bool, float]:
    """Return the order of runs: those in progress after all that have ended."""
    return run.status in _WAITING, run.created_at if run.finished_at is None else run.finished_at
