"""Branches: runs with another destination do not block the session of the person.

A branch starts with the content of its session and is never stored. When the run ends, the question and the answer are
appended to the current session, in the transaction that ends the run. Changes of the run to the session state are
dropped.
"""

from frontdesk.concurrency.offload import off_loop
from frontdesk.errors import InvalidRequestError
from frontdesk.ids import Ids
from frontdesk.interfaces.store import HostStateStore
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.request import AdmittedRequest, ConversationScope
from frontdesk.models.session import ForkPoint, SessionName, SessionRecord
from frontdesk.sessions.job import Job
from frontdesk.sessions.snapshot import restore
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns, fresh_session

_NOT_POSSIBLE = (
    "An answer that goes elsewhere is worked on beside the conversation, and this target keeps conversations itself. "
    "Have the answer come back to where it was asked for, do not run it in the background, or name a session for it."
)


class Branches:
    """Opens the turn of a run, on a branch if needed, and rejoins a branch with its session."""

    def __init__(self, store: HostStateStore, turns: Turns, ids: Ids, target: TargetInfo) -> None:
        self._store = store
        self._turns = turns
        self._ids = ids
        # A history that a workflow, an agent or its own provider keeps can't be appended to from outside.
        self._is_possible = not target.checkpoints and target.history not in ("own", "agent")

    def check(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> None:
        """Reject a run that needs a branch if its target does not support branches."""
        if not self._is_possible and self._name(admitted, tracked) is not None:
            raise InvalidRequestError(_NOT_POSSIBLE, param="response_target", code="branch_not_possible")

    async def open(
        self, admitted: AdmittedRequest, job: Job, *, tracked: ConversationScope | None, waits: bool
    ) -> Turn:
        """Open the turn of a background run. Only a run with another destination works on a branch."""
        name = self._name(admitted, tracked) if self._is_possible else None
        if name is None:
            return await self._turns.open(admitted, tracked=tracked, waits=waits, new_id=job.run.session_id)
        return await self._branch_off(admitted, await self._home(admitted, name, job.began_in))

    def _name(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> SessionName | None:
        request = admitted.request
        if not request.background or not admitted.targets_elsewhere():
            return None
        if request.approvals or request.client_outputs:
            # It continues a run that the session itself waits for.
            return None
        name = self._turns.get_name(admitted, tracked)
        return name if name is not None and name.kind == "tracked" else None

    async def _home(self, admitted: AdmittedRequest, name: SessionName, began_in: str | None) -> SessionRecord:
        """Return the session that a run rejoins: the one where it began, or the person's current one."""
        if began_in is None:
            fresh = await self._turns.locate(admitted, name)
        else:
            fresh = fresh_session(admitted, began_in).replace(owner=name.owner)
        return await self._store.sessions.get(fresh.owner, fresh.session_id) or fresh

    async def _branch_off(self, admitted: AdmittedRequest, home: SessionRecord) -> Turn:
        record = home.replace(
            session_id=self._ids.new("ses"),
            turns=0,
            parent=ForkPoint(session_id=home.session_id, messages=home.messages),
        )
        turn = Turn(self._store, admitted, record, None, memory=self._turns.memory)
        # It holds no lock and no lease to release.
        turn.parent_session, turn.closed = home, True
        if turn.unrestored:
            turn.session = await off_loop(restore, record)
        return turn

    async def rejoin(self, turn: Turn) -> None:
        """Take the current state of the session that a branch has left. Wait for it without a limit."""
        if turn.parent_session is not None and turn.lease is None:
            await self._turns.rejoin(turn, turn.parent_session)
