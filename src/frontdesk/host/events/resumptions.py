"""Ends runs that could not go on after a decision."""

from collections.abc import Callable

from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.clock import Clock
from frontdesk.data.approval import Resumption
from frontdesk.data.delivery import InboxItem
from frontdesk.data.run import RunFailure, RunRecord
from frontdesk.errors import RequestError


class Resumptions:
    """Records the runs of decisions that were refused: the requester may not come in any more, or the tool is gone."""

    def __init__(self, store: HostStateStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def failed(self, item: InboxItem, error: RequestError) -> Callable[[StateTransaction], None]:
        """Return what records the run of an event as failed, and its decision as used up."""
        resumed: Resumption = item.payload
        question = await self._store.approvals.get(resumed.owner, resumed.approval_id)
        run = RunRecord(
            run_id=item.run_id or "",
            owner=resumed.owner,
            channel=item.channel,
            status="failed",
            failure=RunFailure(code=error.code, message=error.message),
            created_at=item.received_at,
            finished_at=self._clock.now(),
            background=True,
            session_id=None if question is None else question.session_id,
            details=item.request.details,
        )

        def note(transaction: StateTransaction) -> None:
            transaction.save_run(run)
            if question is not None and question.attempt is not None and not question.begun:
                transaction.begin_approval(question.owner, question.approval_id, question.attempt)

        return note
