"""The part of the store contract for approval ids, votes, shown messages and the audit log."""

from typing import Any

import pytest
from agent_framework import Content

from frontdesk.errors import ApprovalExistsError, StoreError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import ApproverClaim, PendingApproval, claim_key, person_key
from frontdesk.models.identity import ChannelIdentity
from frontdesk.serialization.codec import encode
from frontdesk_testing.store_samples import (
    NOW,
    ODD_KEYS,
    OTHER,
    OWNER,
    audit_line,
    build_place,
    inbox_item,
    question,
    terms,
    vote,
)


class Decisions:
    """Questions are found by the target's ids. Votes, shown messages and audit lines are written with the decision."""

    async def test_a_question_is_found_by_the_id_of_its_target(self, store: HostStateStore) -> None:
        first, second = (question(f"apr_{run_id}", target_request_id="q", run_id=run_id) for run_id in ("a", "b"))
        released, other = question("q"), question("apr_c", owner=OTHER, target_request_id="q")
        async with store.transaction() as transaction:
            for asked in (first, released, second, other, question("apr_d", target_request_id="r")):
                transaction.add_approval(asked)
        assert encode(list(await store.approvals.asked_as(OWNER, "q"))) == encode([first, released, second])
        assert encode(list(await store.approvals.asked_as(OTHER, "q"))) == encode([other])
        assert list(await store.approvals.asked_as(OWNER, "apr_a")) == []

    async def test_odd_ids_of_a_target_are_told_apart(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for number, odd in enumerate(ODD_KEYS):
                transaction.add_approval(question(f"apr_{number}", target_request_id=odd))
        for number, odd in enumerate(ODD_KEYS):
            (asked,) = await store.approvals.asked_as(OWNER, odd)
            assert (asked.approval_id, asked.target_request_id) == (f"apr_{number}", odd)

    @pytest.mark.parametrize("together", [True, False])
    async def test_a_run_asks_once_under_one_id_of_its_target(self, store: HostStateStore, together: bool) -> None:
        first, again = (question(name, target_request_id="q") for name in ("apr_1", "apr_2"))

        async def ask(*questions: PendingApproval) -> None:
            async with store.transaction() as transaction:
                for asked in questions:
                    transaction.add_approval(asked)

        if not together:
            await ask(first)
        with pytest.raises(ApprovalExistsError):
            await ask(*((first, again) if together else (again,)))
        assert len(await store.approvals.pending(OWNER)) == (0 if together else 1)

    async def test_the_first_decision_can_be_asked_for(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.add_approval(question())

        async def decide(attempt: str) -> None:
            async with store.transaction() as transaction:
                transaction.add_audit(audit_line())
                transaction.decide_approval(OWNER, "apr_1", "approved", at=NOW, attempt=attempt, first=True)

        await decide("att_1")
        with pytest.raises(StoreError):
            await decide("att_2")
        asked = await store.approvals.get(OWNER, "apr_1")
        assert asked is not None
        assert (asked.attempt, asked.begun, asked.waits) == ("att_1", False, True)
        assert len(await store.audit.lines()) == 1

    async def test_votes_and_places_are_those_of_one_question(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for name in ("apr_1", "apr_2"):
                transaction.add_approval(question(name))
            transaction.add_vote(vote(approved=False))
            transaction.add_vote(vote(at=NOW + 1))
            transaction.add_vote(vote(OTHER, at=NOW + 2))
            for place in (
                build_place(),
                build_place(at=NOW + 9),
                build_place("msg_2", at=NOW + 1),
                build_place(approval_id="apr_2"),
            ):
                transaction.add_place(place)
        assert list(await store.approvals.votes(OWNER, "apr_1")) == [vote(at=NOW + 1), vote(OTHER, at=NOW + 2)]
        assert list(await store.approvals.places(OWNER, "apr_1")) == [build_place(), build_place("msg_2", at=NOW + 1)]
        for read in (store.approvals.votes, store.approvals.places):
            assert list(await read(OTHER, "apr_1")) == []

    async def test_the_audit_log_only_grows(self, store: HostStateStore) -> None:
        for action, subject in (("approved", "apr_1"), ("rejected", "apr_2"), ("expired", "apr_1")):
            async with store.transaction() as transaction:
                transaction.add_audit(audit_line(action, subject))
        lines = list(await store.audit.lines())
        assert [(line.action, line.subject) for line in lines] == [
            ("approved", "apr_1"),
            ("rejected", "apr_2"),
            ("expired", "apr_1"),
        ]
        assert lines[0].replace(number=0) == audit_line()
        assert [line.action for line in await store.audit.lines(subject="apr_1")] == ["approved", "expired"]
        assert [line.action for line in await store.audit.lines(after=lines[0].number, limit=1)] == ["rejected"]

    async def test_each_question_that_is_cancelled_has_a_line(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for asked in (question("apr_1"), question("apr_2"), question("apr_3"), question("apr_4", owner=OTHER)):
                transaction.add_approval(asked)
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_2", "approved", at=NOW, attempt="att_1")
            transaction.decide_approval(OWNER, "apr_3", "approved", at=NOW)
        async with store.transaction() as transaction:
            transaction.cancel_approvals(OWNER, at=NOW + 1, reason="unlinked")
        lines = await store.audit.lines()
        assert {(line.owner, line.subject, line.action, line.reason, line.at) for line in lines} == {
            (OWNER, name, "cancelled", "unlinked", NOW + 1) for name in ("apr_1", "apr_2")
        }
        assert len(lines) == 2

    async def test_questions_that_have_expired_are_listed(self, store: HostStateStore) -> None:
        times = {"apr_1": NOW, "apr_2": NOW + 1, "apr_3": None, "apr_4": NOW}
        async with store.transaction() as transaction:
            for number, (name, expires_at) in enumerate(times.items()):
                owner = OTHER if number == 3 else OWNER
                transaction.add_approval(question(name, owner=owner, expires_at=expires_at))
        assert {asked.approval_id for asked in await store.approvals.expired(NOW)} == {"apr_1", "apr_4"}
        assert len(await store.approvals.expired(NOW, limit=1)) == 1
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_1", "rejected", at=NOW)
        assert [asked.approval_id for asked in await store.approvals.expired(NOW)] == ["apr_4"]

    async def test_an_event_that_resumes_waits_apart_from_turns(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for kind in ("turn", "control", "resume"):
                transaction.accept(inbox_item(kind, kind=kind))
        for kind in ("turn", "control", "resume"):
            (waiting,) = await store.inbox.waiting("host", kind=kind)
            item = await store.inbox.claim(waiting.channel, waiting.conversation_id, "host", kind=kind)
            assert item is not None
            assert (item.event_id, item.kind) == (kind, kind)

    async def test_only_a_question_with_terms_is_found_by_its_id_alone(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.add_approval(question("apr_1"))
            transaction.add_approval(question("apr_2", rule=terms()))
        assert await store.approvals.find("apr_1") is None
        assert await store.approvals.find("apr_3") is None
        assert encode(await store.approvals.find("apr_2")) == encode(question("apr_2", rule=terms()))

    async def test_a_vote_is_counted_after_those_that_were_seen(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.add_approval(question(rule=terms()))
        for seen, counts in ((0, True), (0, False), (1, True)):
            try:
                async with store.transaction() as transaction:
                    transaction.count_vote(OWNER, "apr_1", seen=seen)
                    transaction.add_vote(vote(f"key_{seen}"))
            except StoreError:
                assert not counts
            else:
                assert counts
        asked = await store.approvals.find("apr_1")
        assert asked is not None
        assert (asked.voted, len(await store.approvals.votes(OWNER, "apr_1"))) == (2, 2)
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_1", "approved", at=NOW, attempt="att_1", resumed_by="run_2")
        with pytest.raises(StoreError):
            async with store.transaction() as transaction:
                transaction.count_vote(OWNER, "apr_1", seen=2)
        decided = await store.approvals.get(OWNER, "apr_1")
        assert decided is not None
        assert (decided.voted, decided.resumed_by) == (2, "run_2")

    async def test_a_question_escalates_once_when_it_is_time(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for name, at in (("apr_1", NOW + 5), ("apr_2", NOW + 50), ("apr_3", NOW + 1), ("apr_4", None)):
                transaction.add_approval(question(name, rule=terms(escalate_at=at)))
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_3", "rejected", at=NOW)
        assert await store.approvals.to_escalate(NOW) == []
        due = await store.approvals.to_escalate(NOW + 9)
        assert [asked.approval_id for asked in due] == ["apr_1"]
        async with store.transaction() as transaction:
            transaction.escalate_approval(OWNER, "apr_1")
        assert await store.approvals.to_escalate(NOW + 9) == []
        for name in ("apr_1", "apr_3"):
            with pytest.raises(StoreError):
                async with store.transaction() as transaction:
                    transaction.escalate_approval(OWNER, name)
        escalated = await store.approvals.get(OWNER, "apr_1")
        assert escalated is not None
        assert (escalated.escalated, escalated.status) == (True, "pending")

    async def test_a_page_of_what_waits_has_so_many_bytes_and_at_least_one_question(
        self, store: HostStateStore
    ) -> None:
        async with store.transaction() as transaction:
            for number in range(4):
                call = Content.from_function_call("call_1", "pay", arguments={"to": "x" * (5_000 if number else 1)})
                name = f"apr_{number}"
                transaction.add_approval(
                    question(name).replace(request=Content.from_function_approval_request(name, call))
                )
        pages: list[list[str]] = []
        after = None
        while page := await store.approvals.waiting_for((), owner=OWNER, after=after, max_bytes=8_000):
            pages.append([asked.approval_id for asked in page])
            after = page[-1].approval_id
        assert pages == [["apr_0", "apr_1"], ["apr_2"], ["apr_3"]]
        assert len(await store.approvals.waiting_for((), owner=OWNER, limit=1, max_bytes=8_000)) == 1
        assert len(await store.approvals.waiting_for((), owner=OWNER, max_bytes=100_000)) == 4

    async def test_what_waits_for_an_approver_is_found_by_account_and_by_claim(self, store: HostStateStore) -> None:
        finance = ApproverClaim(claim="groups", values=("finance", 7))
        kim = ChannelIdentity(channel="telegram", native_id="kim")
        async with store.transaction() as transaction:
            transaction.add_approval(question("apr_1", rule=terms()))
            transaction.add_approval(question("apr_2", owner=OTHER, rule=terms(approvers=(kim,), claims=(finance,))))
            transaction.add_approval(question("apr_3", rule=terms(escalate_to=(kim,))))
            transaction.add_approval(question("apr_4"))

        async def list_waiting(*approvers: str, **page: Any) -> list[str]:
            return [asked.approval_id for asked in await store.approvals.waiting_for(approvers, **page)]

        bob, group, number = person_key(terms().approvers[0]), claim_key("groups", "finance"), claim_key("groups", 7)
        assert group is not None
        assert number is not None
        assert await list_waiting(bob) == ["apr_1", "apr_3"]
        assert await list_waiting(person_key(kim), group, number) == ["apr_2", "apr_3"]
        assert await list_waiting(group) == ["apr_2"]
        assert await list_waiting(bob, group, limit=2) == ["apr_1", "apr_2"]
        assert await list_waiting(bob, group, after="apr_2") == ["apr_3"]
        assert await list_waiting(owner=OWNER) == await list_waiting(bob, owner=OWNER) == ["apr_1", "apr_3", "apr_4"]
        assert await list_waiting(group, owner=OWNER, limit=2) == ["apr_1", "apr_2"]
        assert await list_waiting(group, owner=OWNER, after="apr_2", limit=2) == ["apr_3", "apr_4"]
        assert await list_waiting() == await list_waiting("claim:6:groups:bool:True", "person:3:web:ada") == []
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_1", "rejected", at=NOW)
        assert await list_waiting(bob) == ["apr_3"]
        assert await list_waiting(owner=OWNER) == ["apr_3", "apr_4"]
        async with store.transaction() as transaction:
            transaction.cancel_approvals(OWNER, at=NOW)
        assert await list_waiting(bob, group) == ["apr_2"]
