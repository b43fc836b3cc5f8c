"""The calls about tracked sessions, for a channel: each is made for a caller, and sees only what is theirs."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from frontdesk.abc.target import GivesUpQuestions
from frontdesk.data.delivery import Cancelled, InboxItem
from frontdesk.data.identity import Caller
from frontdesk.data.reply import Reply
from frontdesk.data.request import ChannelRequest
from frontdesk.data.run import RunRecord
from frontdesk.data.session import SessionName, SessionSummary
from frontdesk.data.transcript import TranscriptPage
from frontdesk.errors import NotFoundError
from frontdesk.host.context.reach_calls import ReachCalls
from frontdesk.host.open_questions import OpenQuestions
from frontdesk.sessions.past import PastSessions
from frontdesk.sessions.scope import tracked_name
from frontdesk.sessions.transcripts import Transcripts

MOST_LISTED = 20


class SessionCalls(ReachCalls):
    """The part of a `ChannelContext` that is about tracked sessions."""

    async def reset_session(self, caller: Caller, *, conversation_id: str | None = None) -> str:
        return await self._parts.turns.rotate(await self._tracked(caller, conversation_id))

    async def list_sessions(
        self, caller: Caller, *, conversation_id: str | None = None, limit: int = MOST_LISTED
    ) -> Sequence[SessionSummary]:
        name = await self._tracked(caller, conversation_id)
        return await PastSessions(self._store).list(name, limit=limit)

    async def resume_session(self, caller: Caller, session_id: str, *, conversation_id: str | None = None) -> None:
        name = await self._tracked(caller, conversation_id)
        await PastSessions(self._store).resume(name, session_id)

    async def track_session(self, caller: Caller, key: str) -> None:
        owner = await self._owner(caller)
        record = await self._store.sessions.find(SessionName(owner=owner, kind="named", value=key))
        if record is None:
            raise NotFoundError("There is no such session.", param="session_id")
        name = await self._tracked_by(owner, None)
        async with self._store.transaction() as transaction:
            transaction.name_session(name, record.session_id)

    async def transcript(
        self, caller: Caller, *, key: str | None = None, before: int | None = None, limit: int = 50
    ) -> TranscriptPage:
        owner = await self._owner(caller)
        named = None if key is None else SessionName(owner=owner, kind="named", value=key)
        name = named or await self._tracked_by(owner, None)
        return await Transcripts(self._store).page(name, before=before, limit=limit)

    async def name_session(
        self, caller: Caller, session_id: str, title: str | None, *, conversation_id: str | None = None
    ) -> None:
        name = await self._tracked(caller, conversation_id)
        await PastSessions(self._store).retitle(name, session_id, title)

    async def cancel_background_runs(
        self, caller: Caller, *, conversation_id: str | None = None
    ) -> Sequence[RunRecord]:
        owner = await self._owner(caller)
        if conversation_id is not None:
            conversation_id = await self._parts.aliases.first_name(self.channel, conversation_id)
        cancelled: list[RunRecord] = []
        for job in await self._store.background.of_owner(owner):
            request, run_id = job.admitted.request, job.admitted.run_id
            # A run that is only held, under an idempotency key, has a caller who waits for it.
            if not request.background or not self._in_reach(request, conversation_id):
                continue
            await self._parts.background.cancel(owner, run_id)
            record = await self._store.runs.get(owner, run_id)
            if record is not None:
                cancelled.append(record)
        return cancelled

    async def cancel_turns(
        self, item: InboxItem, *, rotate: bool = False, reply: Callable[[Cancelled], Reply | str] | None = None
    ) -> Cancelled:
        await self._allowed(item.caller)
        channel = self._parts.channels[self.channel]
        anyone = channel.cancel_by == "anyone" and channel.conversation_scope == "per_conversation"
        name = questions = None
        waits = isinstance(self._parts.target, GivesUpQuestions)
        if rotate or waits:
            # Who was never here starts anew in any case, and was asked nothing.
            with suppress(NotFoundError):
                place = item.request.conversation_id if item.request.group else None
                name = await self._tracked(item.caller, place)
        if waits and name is not None and not rotate:
            questions = OpenQuestions(self._parts, name, item.caller.identity).abandoned
        name = name if rotate else None
        cancel = self._parts.events.cancellations.cancel_turns
        return await cancel(item, anyone=anyone, rotate=name, reply=reply, questions=questions)

    def _in_reach(self, request: ChannelRequest, group: str | None) -> bool:
        """Tell whether a caller may stop a request here: any of theirs in a direct chat, in a group its own only."""
        here = request.channel == self.channel and request.group and request.conversation_id == group
        return group is None or here

    async def _tracked(self, caller: Caller, conversation_id: str | None) -> SessionName:
        """Return the name of the session in a direct chat, or in a group if one is given."""
        return await self._tracked_by(await self._owner(caller), conversation_id)

    async def _tracked_by(self, owner: str, conversation_id: str | None) -> SessionName:
        """Return the same for an owner who was let in."""
        if conversation_id is not None:
            conversation_id = await self._parts.aliases.first_name(self.channel, conversation_id)
        return tracked_name(
            self._parts.channels[self.channel].conversation_scope,
            owner=owner,
            channel=self.channel,
            conversation_id=conversation_id,
            group=conversation_id is not None,
        )
