"""Hands runs to the background."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from frontdesk.data.delivery import InboxItem
from frontdesk.data.request import AdmittedRequest, ConversationScope
from frontdesk.data.result import HostedRunResult
from frontdesk.data.run import RunRecord
from frontdesk.delivery.presence import Presence
from frontdesk.errors import RunExistsError
from frontdesk.runs.routes import Routes
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.branches import Branches
from frontdesk.sessions.turns import Turns

Enqueue = Callable[[AdmittedRequest, str | None, InboxItem | None, float | None], Awaitable[RunRecord]]
"""Writes a run to the queue, with the id of a new session, the event that it answers, and when its caller was seen."""


class Deferral:
    """Decides which runs go to the background, and queues them."""

    def __init__(
        self,
        *,
        turns: Turns,
        branches: Branches,
        active: ActiveRuns,
        presence: Presence,
        routes: Routes,
        enqueue: Enqueue,
        scopes: Mapping[str, ConversationScope | None],
    ) -> None:
        self._turns, self._branches, self._active = turns, branches, active
        self._presence, self._routes, self._enqueue, self._scopes = presence, routes, enqueue, scopes

    def runs_inline(self, admitted: AdmittedRequest) -> bool:
        """Tell whether a request is answered on its own wire and presence is not recorded, as with most requests."""
        return not (self._presence.matters or admitted.request.background or admitted.targets_elsewhere())

    async def queue_if_needed(self, admitted: AdmittedRequest) -> HostedRunResult[Any] | None:
        """Record where a person is; queue their run if it goes to the background."""
        if admitted.request.background:
            return await self.queue(admitted, seen_at=admitted.admitted_at)
        await self._presence.see(admitted, admitted.admitted_at)
        if await self._routes.returns(admitted):
            return None
        # The caller does not wait for the answer.
        return await self._check_and_enqueue(_detached(admitted))

    async def queue_event_if_needed(self, admitted: AdmittedRequest, event: InboxItem) -> HostedRunResult[Any] | None:
        """Do the same for an event of a platform, at the time when it came in."""
        if admitted.request.background:
            # An event that goes on after a decision says nothing of where the person is.
            return await self.queue(admitted, event, seen_at=None if event.kind == "resume" else event.received_at)
        await self._presence.see(admitted, event.received_at)
        return None

    async def queue(
        self, admitted: AdmittedRequest, event: InboxItem | None = None, *, seen_at: float | None = None
    ) -> HostedRunResult[Any]:
        """Queue a run, or refuse it now if it could not run later; its caller was seen `seen_at`."""
        if admitted.request.stream and not await self._routes.returns(admitted):
            admitted = _detached(admitted)
        return await self._check_and_enqueue(admitted, event, seen_at)

    async def _check_and_enqueue(
        self, admitted: AdmittedRequest, event: InboxItem | None = None, seen_at: float | None = None
    ) -> HostedRunResult[Any]:
        if self._active.get(admitted.owner, admitted.run_id) is not None:
            raise RunExistsError
        scope = self._scopes[admitted.request.channel]
        self._turns.check(admitted, scope)
        self._branches.check(admitted, scope)
        await self._turns.check_previous(admitted)
        record = await self._enqueue(admitted, self._turns.new_id(admitted, scope), event, seen_at)
        return HostedRunResult(result=None, run=record)


def _detached(admitted: AdmittedRequest) -> AdmittedRequest:
    """Return a request whose run goes on in the background, without a stream."""
    return admitted.with_request(background=True, stream=False)
