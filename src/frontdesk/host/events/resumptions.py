"""Ends runs that could not go on after a decision."""

from collections.abc import Callable, Sequence

from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.approvals.records import line_of
from frontdesk.clock import Clock
from frontdesk.data.approval import PendingApproval, Resumption
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.run import RunFailure, RunRecord
from frontdesk.delivery.plan import Planner
from frontdesk.errors import RequestError
from frontdesk.kit.chat.commands import locale_of_person
from frontdesk.kit.chat.texts import Texts


class Resumptions:
    """Records the runs of decisions that were refused: the requester may not come in any more, or the tool is gone."""

    def __init__(self, store: HostStateStore, clock: Clock, planner: Planner, texts: Texts) -> None:
        self._store, self._clock, self._planner, self._texts = store, clock, planner, texts

    async def failed(
        self, item: InboxItem, error: RequestError
    ) -> tuple[Callable[[StateTransaction], None], Sequence[Delivery]]:
        """Return what records the run of an event as failed, and its decision as used up; and what approvers are told.

        The requester is told by the channel of the event.
        """
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
            if question is not None:
                transaction.add_audit(line_of(question, "failed", self._clock.now(), reason=error.code))
            if question is not None and question.attempt is not None and not question.begun:
                transaction.begin_approval(question.owner, question.approval_id, question.attempt)

        return note, () if question is None else await self._told(question, error)

    async def _told(self, question: PendingApproval, error: RequestError) -> Sequence[Delivery]:
        """Return what those are told who approved a call that does not run."""
        if question.terms is None or question.status != "approved":
            return ()
        rows: list[Delivery] = []
        for vote in await self._store.approvals.votes(question.owner, question.approval_id):
            if vote.approved and vote.identity is not None and vote.identity.channel in self._planner.pushing:
                locale = locale_of_person(vote.identity)
                text = self._texts.say("approval.not_run", locale, tool=question.tool, reason=error.message)
                rows += self._planner.notice(vote.identity, text, owner=question.owner)
        return rows
