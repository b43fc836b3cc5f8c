"""Approvals and the audit log of the in-memory store."""

from collections import deque
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

from frontdesk.errors import ApprovalExistsError, LostAnswerError, StoreError
from frontdesk.models.approval import ApprovalPlace, ApprovalStatus, ApprovalVote, AuditLine, PendingApproval
from frontdesk.stores.memory.bounded_dict import FairBoundedDict
from frontdesk.stores.memory.pages import limit_page
from frontdesk.stores.memory.sessions import owner_in_key


class MemoryApprovals:
    """Approvals by owner and id. Ids of earlier versions come from the target, which has no concept of owners."""

    def __init__(self, limit: int) -> None:
        self.records: FairBoundedDict[tuple[str, str], PendingApproval] = FairBoundedDict(
            limit, owner_in_key, self._forget
        )
        self.owned: dict[str, dict[str, None]] = {}
        self.shared: dict[str, dict[tuple[str, str], None]] = {}
        """The questions that others than their requester decide, by id."""
        self._approvers: dict[str, dict[tuple[str, str], None]] = {}
        """The pending questions that others decide, by those who may."""
        self.numbers: dict[tuple[str, str], int] = {}
        """The order in which they were asked."""
        self._count = 0
        self._votes: dict[tuple[str, str], dict[str, ApprovalVote]] = {}
        self._places: dict[tuple[str, str], dict[tuple[str, str, str], ApprovalPlace]] = {}

    def _forget(self, key: tuple[str, str], record: PendingApproval) -> None:
        owned = self.owned.get(record.owner, {})
        owned.pop(record.approval_id, None)
        if not owned:
            self.owned.pop(record.owner, None)
        self._close(record)
        self.numbers.pop(key, None)
        shared = self.shared.get(record.approval_id, {})
        shared.pop(key, None)
        if not shared:
            self.shared.pop(record.approval_id, None)
        self._votes.pop(key, None)
        self._places.pop(key, None)

    def _close(self, record: PendingApproval) -> None:
        for approver in () if record.terms is None else record.terms.keys:
            waiting = self._approvers.get(approver, {})
            waiting.pop((record.owner, record.approval_id), None)
            if not waiting:
                self._approvers.pop(approver, None)

    async def get(self, owner: str, approval_id: str) -> PendingApproval | None:
        return self.records.get((owner, approval_id))

    async def find(self, approval_id: str) -> PendingApproval | None:
        shared = [self.records.get(key) for key in self.shared.get(approval_id, ())]
        return shared[0] if len(shared) == 1 else None

    async def of_session(self, owner: str, session_id: str) -> Sequence[PendingApproval]:
        return [approval for approval in self._list(owner) if approval.session_id == session_id]

    async def of_chain(self, owner: str, root_run_id: str) -> Sequence[PendingApproval]:
        return [approval for approval in self._list(owner) if approval.chain_id == root_run_id]

    async def pending(self, owner: str) -> Sequence[PendingApproval]:
        return [approval for approval in self._list(owner) if approval.waits]

    def _list(self, owner: str) -> list[PendingApproval]:
        records = (self.records.get((owner, approval_id)) for approval_id in self.owned.get(owner, ()))
        return [record for record in records if record is not None]

    async def asked_as(self, owner: str, target_request_id: str) -> Sequence[PendingApproval]:
        return [approval for approval in self._list(owner) if approval.target_id == target_request_id]

    async def expired(self, now: float, *, limit: int = 100) -> Sequence[PendingApproval]:
        records = [record for _, record in self.records.items()]
        return [record for record in records if record.is_expired(now)][:limit]

    async def to_escalate(self, now: float, *, limit: int = 100) -> Sequence[PendingApproval]:
        records = [record for _, record in self.records.items()]
        return [record for record in records if record.is_to_escalate(now)][:limit]

    async def waiting_for(
        self,
        approvers: Sequence[str],
        *,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
        max_bytes: int | None = None,
    ) -> Sequence[PendingApproval]:
        keys = {key for approver in approvers for key in self._approvers.get(approver, ())}
        own = () if owner is None else self._list(owner)
        keys |= {(record.owner, record.approval_id) for record in own if record.status == "pending"}
        seen = max((number for key, number in self.numbers.items() if key[1] == after), default=0) if after else 0
        known = sorted((self.numbers[key], key) for key in keys if self.numbers[key] > seen)
        records = (self.records.get(key) for _, key in known[:limit])
        return limit_page([record for record in records if record is not None], max_bytes, attrgetter("request"))

    async def votes(self, owner: str, approval_id: str) -> Sequence[ApprovalVote]:
        return list(self._votes.get((owner, approval_id), {}).values())

    async def places(self, owner: str, approval_id: str) -> Sequence[ApprovalPlace]:
        return list(self._places.get((owner, approval_id), {}).values())

    def add_vote(self, vote: ApprovalVote) -> None:
        self._votes.setdefault((vote.owner, vote.approval_id), {})[vote.voter] = vote

    def add_place(self, place: ApprovalPlace) -> None:
        places = self._places.setdefault((place.owner, place.approval_id), {})
        places.setdefault((place.channel, place.place, place.handle), place)

    def check(self, owner: str, approval_id: str, status: ApprovalStatus, first: bool = False) -> None:
        """Reject a decision on a decided approval, unless it is the same and repeatable."""
        record = self.records.get((owner, approval_id))
        if record is None or not record.waits or record.status not in ("pending", "pending" if first else status):
            raise StoreError("the approval is not pending")

    def decide(
        self,
        owner: str,
        approval_id: str,
        status: ApprovalStatus,
        at: float,
        reason: str | None,
        attempt: str | None = None,
        resumed_by: str | None = None,
    ) -> None:
        decided: dict[str, Any] = {"status": status, "decided_at": at, "reason": reason}
        if resumed_by is not None:
            decided["resumed_by"] = resumed_by
        self._change(owner, approval_id, **decided, attempt=attempt, begun=attempt is None)
        record = self.records.get((owner, approval_id))
        if record is not None:
            self._close(record)

    def check_votes(self, owner: str, approval_id: str, seen: int) -> None:
        """Reject a vote if the approval has a different number of votes, or is decided."""
        record = self.records.get((owner, approval_id))
        if record is None or record.status != "pending" or record.voted != seen:
            raise StoreError("the votes have changed")

    def count_vote(self, owner: str, approval_id: str, seen: int) -> None:
        self._change(owner, approval_id, voted=seen + 1)

    def check_escalation(self, owner: str, approval_id: str) -> None:
        """Reject escalation of an approval that is already escalated or decided."""
        record = self.records.get((owner, approval_id))
        if record is None or record.status != "pending" or record.escalated:
            raise StoreError("the approval is not pending, or was escalated before")

    def escalate(self, owner: str, approval_id: str) -> None:
        self._change(owner, approval_id, escalated=True)

    def check_attempt(self, owner: str, approval_id: str, attempt: str) -> None:
        """Reject an attempt that does not hold the decision."""
        record = self.records.get((owner, approval_id))
        if record is None or record.attempt != attempt:
            raise LostAnswerError

    def begin(self, owner: str, approval_id: str) -> None:
        self._change(owner, approval_id, begun=True)

    def release(self, owner: str, approval_id: str, attempt: str) -> None:
        """Release an attempt's decision, so that it can be made again."""
        record = self.records.get((owner, approval_id))
        if record is not None and record.attempt == attempt:
            self._change(owner, approval_id, attempt=None, begun=False)

    def _change(self, owner: str, approval_id: str, **changes: Any) -> None:
        record = self.records.get((owner, approval_id))
        if record is not None:
            self.records.put((owner, approval_id), record.replace(**changes))

    def cancel_all(self, owner: str, at: float, reason: str | None, audit: "MemoryAudit") -> None:
        for approval in self._list(owner):
            if approval.waits:
                name = approval.approval_id
                self.decide(owner, name, "cancelled", at, reason)
                audit.add(AuditLine(at=at, owner=owner, subject=name, action="cancelled", reason=reason))

    def check_new(self, approval: PendingApproval) -> None:
        """Reject an id that the owner already has, and a target request id that the run already has."""
        if (approval.owner, approval.approval_id) in self.records:
            raise ApprovalExistsError
        for known in self._list(approval.owner):
            if is_same_question(known, approval):
                raise ApprovalExistsError

    def add(self, approval: PendingApproval) -> None:
        self._count += 1
        # First, because a full store may drop it at once.
        self.numbers[approval.owner, approval.approval_id] = self._count
        self.owned.setdefault(approval.owner, {})[approval.approval_id] = None
        if approval.terms is not None:
            self.shared.setdefault(approval.approval_id, {})[approval.owner, approval.approval_id] = None
            for approver in approval.terms.keys if approval.status == "pending" else ():
                self._approvers.setdefault(approver, {})[approval.owner, approval.approval_id] = None
        self.records.put((approval.owner, approval.approval_id), approval)

    def drop_sessions(self, gone: Collection[str]) -> None:
        for key, record in self.records.items():
            if record.session_id in gone:
                self.records.pop(key)
                self._forget(key, record)


def is_same_question(known: PendingApproval, other: PendingApproval) -> bool:
    """Return True if two approvals have the same run and the same target request id."""
    target_id = known.target_request_id
    return target_id is not None and (known.run_id, target_id) == (other.run_id, other.target_request_id)


class MemoryAudit:
    def __init__(self, limit: int) -> None:
        self._lines: deque[AuditLine] = deque(maxlen=limit)
        self._count = 0

    async def lines(self, *, subject: str | None = None, after: int = 0, limit: int = 200) -> Sequence[AuditLine]:
        known = (line for line in self._lines if line.number > after and subject in (None, line.subject))
        return list(known)[:limit]

    def all_lines(self) -> Sequence[AuditLine]:
        return list(self._lines)

    def add(self, line: AuditLine) -> None:
        self._count += 1
        self._lines.append(line.replace(number=self._count))
