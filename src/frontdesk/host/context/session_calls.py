"""What a channel gets of tracked sessions: each call made for a caller, and blind to what is not theirs."""

from collections.abc import Sequence

from frontdesk.data.identity import Caller
from frontdesk.data.session import SessionName, SessionSummary
from frontdesk.host.context.reach_calls import ReachCalls
from frontdesk.sessions.past import PastSessions
from frontdesk.sessions.scope import tracked_name

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

    async def cancel_background_runs(self, caller: Caller, *, conversation_id: str | None = None) -> int:
        owner = await self._owner(caller)
        cancelled = 0
        for job in await self._store.background.of_owner(owner):
            request = job.admitted.request
            if (
                request.channel != self.channel
                or (request.conversation_id if request.group else None) != conversation_id
            ):
                continue
            await self._parts.background.cancel(owner, job.admitted.run_id)
            cancelled += 1
        return cancelled

    async def _tracked(self, caller: Caller, conversation_id: str | None) -> SessionName:
        """Return the name of the session in a direct chat, or in a group if one is given."""
        return tracked_name(
            self._parts.channels[self.channel].conversation_scope,
            owner=await self._owner(caller),
            channel=self.channel,
            conversation_id=conversation_id,
            group=conversation_id is not None,
        )
