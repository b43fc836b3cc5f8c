"""The contract of stores for runs, their events, and questions that wait."""

import asyncio
from typing import Any

import pytest
from agent_framework import AgentResponse, Message

from frontdesk.errors import ApprovalExistsError, RunExistsError, StoreError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import ApprovalStatus, PendingApproval
from frontdesk.models.run import RunFailure, RunRecord
from frontdesk_testing.store_samples import NOW, ODD_KEYS, OTHER, OWNER, build_messages, event, question, run, texts


class Runs:
    """Runs and the events of background streams."""

    async def test_a_run_is_read_as_it_was_last_written(self, store: HostStateStore) -> None:
        assert await store.runs.get(OWNER, "run_1") is None
        failed = run(status="failed", finished_at=NOW, failure=RunFailure(code="c", message="m"), metadata={"a": "b"})
        for record in (run(status="running", state={"deep": [{}]}), failed):
            async with store.transaction() as transaction:
                transaction.save_run(record)
            assert await store.runs.get(OWNER, "run_1") == record

    async def test_a_run_that_must_be_new_is_not_written_over_another(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.save_run(run(metadata={"which": "first"}), new=True)
        with pytest.raises(RunExistsError):
            await _begin(store, "run_1", run("run_2"))
        assert await store.runs.get(OWNER, "run_1") == run(metadata={"which": "first"})
        assert await store.runs.get(OWNER, "run_2") is None
        async with store.transaction() as transaction:
            transaction.save_run(run(owner=OTHER), new=True)
        outcomes = await asyncio.gather(*(_begin(store, "run_3") for _ in range(5)), return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", *["RunExistsError"] * 4]

    async def test_input_and_result_are_kept(self, store: HostStateStore) -> None:
        value: Any = {"mood": "good"}
        result = AgentResponse[Any](messages=[Message("assistant", ["hello"])], value=value)
        async with store.transaction() as transaction:
            transaction.save_run(run(input=build_messages("hi"), result=result))
        record = await store.runs.get(OWNER, "run_1")
        assert record is not None
        assert texts(record.input) == ["hi"]
        assert record.result.text == "hello"
        assert record.result.value == {"mood": "good"}

    async def test_one_id_of_two_owners_is_two_runs(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.save_run(run(metadata={"whose": OWNER}))
            transaction.add_events([event(1)])
        assert await store.runs.get(OTHER, "run_1") is None
        assert list(await store.runs.events(OTHER, "run_1")) == []
        async with store.transaction() as transaction:
            transaction.save_run(run(owner=OTHER, metadata={"whose": OTHER}))
            transaction.delete_run(OTHER, "run_2")
        assert await store.runs.get(OWNER, "run_1") == run(metadata={"whose": OWNER})
        async with store.transaction() as transaction:
            transaction.delete_run(OTHER, "run_1")
        assert await store.runs.get(OTHER, "run_1") is None
        assert await store.runs.get(OWNER, "run_1") == run(metadata={"whose": OWNER})
        assert list(await store.runs.events(OWNER, "run_1")) == [event(1)]

    async def test_odd_ids_are_runs_like_any_other(self, store: HostStateStore) -> None:
        for key in ODD_KEYS:
            async with store.transaction() as transaction:
                transaction.save_run(run(key, owner=key))
                transaction.add_events([event(1, key, owner=key)])
        for key in ODD_KEYS:
            assert await store.runs.get(key, key) == run(key, owner=key)
            assert list(await store.runs.events(key, key)) == [event(1, key, owner=key)]

    async def test_events_are_read_page_by_page(self, store: HostStateStore) -> None:
        every = [event(number) for number in range(1, 26)]
        async with store.transaction() as transaction:
            transaction.save_run(run(status="running"))
            transaction.add_events(every[:10])
        async with store.transaction() as transaction:
            transaction.add_events(every[10:])
            transaction.add_events([])
        assert list(await store.runs.events(OWNER, "run_1")) == every
        assert list(await store.runs.events(OWNER, "run_1", after=-1)) == every
        assert list(await store.runs.events(OWNER, "run_1", after=7, limit=5)) == every[7:12]
        assert list(await store.runs.events(OWNER, "run_1", after=24)) == every[24:]
        assert list(await store.runs.events(OWNER, "run_1", after=25)) == []
        assert list(await store.runs.events(OWNER, "run_1", after=10**9)) == []

    async def test_a_deleted_run_takes_its_events_along(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.save_run(run())
            transaction.save_run(run("run_2"))
            transaction.add_events([event(1), event(1, "run_2")])
        async with store.transaction() as transaction:
            transaction.delete_run(OWNER, "run_1")
        assert await store.runs.get(OWNER, "run_1") is None
        assert list(await store.runs.events(OWNER, "run_1")) == []
        assert list(await store.runs.events(OWNER, "run_2")) == [event(1, "run_2")]


async def _begin(store: HostStateStore, run_id: str, *others: RunRecord) -> None:
    async with store.transaction() as transaction:
        for other in others:
            transaction.save_run(other)
        transaction.save_run(run(run_id), new=True)


class Approvals:
    """Questions that wait for a human."""

    async def test_a_question_is_kept_with_all_that_was_shown(self, store: HostStateStore) -> None:
        assert await store.approvals.get(OWNER, "apr_1") is None
        async with store.transaction() as transaction:
            transaction.add_approval(question())
        approval = await store.approvals.get(OWNER, "apr_1")
        assert approval is not None
        assert approval.request.to_dict() == question().request.to_dict()
        assert approval.replace(request=None) == question().replace(request=None)

    @pytest.mark.parametrize("decided", [False, True])
    async def test_an_id_that_an_owner_has_is_not_given_to_another_question(
        self, store: HostStateStore, decided: bool
    ) -> None:
        async with store.transaction() as transaction:
            transaction.add_approval(question())
        if decided:
            async with store.transaction() as transaction:
                transaction.decide_approval(OWNER, "apr_1", "approved", at=NOW)
        for other in (question(), question(session_id="ses_2", tool="delete")):
            assert not await self._asked(store, other)
        approval = await store.approvals.get(OWNER, "apr_1")
        assert approval is not None
        expected = ("approved" if decided else "pending", question().session_id, "pay")
        assert (approval.status, approval.session_id, approval.tool) == expected
        assert await store.runs.get(OWNER, "run_2") is None

    async def test_two_questions_of_one_transaction_have_two_ids(self, store: HostStateStore) -> None:
        assert not await self._asked(store, question(), question(tool="delete"))
        assert await store.approvals.get(OWNER, "apr_1") is None

    async def test_of_twenty_questions_with_one_id_at_once_one_is_kept(self, store: HostStateStore) -> None:
        asked = [question(session_id=f"ses_{number}", tool=f"tool {number}") for number in range(20)]
        stored = await asyncio.gather(*(self._asked(store, approval) for approval in asked))
        assert stored.count(True) == 1
        approval = await store.approvals.get(OWNER, "apr_1")
        assert approval is not None
        assert approval.tool == f"tool {stored.index(True)}"

    async def test_questions_are_listed_oldest_first(self, store: HostStateStore) -> None:
        for number in range(1, 5):
            session_id = "ses_2" if number == 2 else "ses_1"
            async with store.transaction() as transaction:
                transaction.add_approval(question(f"apr_{number}", at=NOW + number, session_id=session_id))
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_3", "rejected", at=NOW + 9, reason="too much")
        of_session = await store.approvals.of_session(OWNER, "ses_1")
        assert [(approval.approval_id, approval.status) for approval in of_session] == [
            ("apr_1", "pending"),
            ("apr_3", "rejected"),
            ("apr_4", "pending"),
        ]
        assert [approval.approval_id for approval in await store.approvals.pending(OWNER)] == [
            "apr_1",
            "apr_2",
            "apr_4",
        ]

    async def test_a_question_is_answered_once(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.add_approval(question())
        async with store.transaction() as transaction:
            transaction.decide_approval(OWNER, "apr_1", "rejected", at=NOW + 1, reason="no")
        for status in ("approved", "rejected", "cancelled"):
            await self._check_refused(store, OWNER, "apr_1", status)
        approval = await store.approvals.get(OWNER, "apr_1")
        assert approval is not None
        assert (approval.status, approval.decided_at, approval.reason) == ("rejected", NOW + 1, "no")
        assert list(await store.approvals.pending(OWNER)) == []

    async def test_of_twenty_answers_at_once_one_counts(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.add_approval(question())

        async def decide(number: int) -> bool:
            try:
                async with store.transaction() as transaction:
                    transaction.decide_approval(OWNER, "apr_1", "approved", at=NOW, reason=str(number))
            except StoreError:
                return False
            return True

        counted = await asyncio.gather(*(decide(number) for number in range(20)))
        assert counted.count(True) == 1
        approval = await store.approvals.get(OWNER, "apr_1")
        assert approval is not None
        assert approval.reason == str(counted.index(True))

    async def test_a_question_does_not_exist_for_anybody_else(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.add_approval(question())
        assert await store.approvals.get(OTHER, "apr_1") is None
        assert list(await store.approvals.of_session(OTHER, "ses_1")) == []
        assert list(await store.approvals.pending(OTHER)) == []
        await self._check_refused(store, OTHER, "apr_1", "approved")
        await self._check_refused(store, OWNER, "apr_unknown", "approved")
        assert [approval.status for approval in await store.approvals.pending(OWNER)] == ["pending"]

    async def test_one_id_of_two_owners_is_two_questions(self, store: HostStateStore) -> None:
        # The ids come from the target, which knows nothing of owners and may count its calls from one.
        async with store.transaction() as transaction:
            transaction.add_approval(question(tool="pay"))
            transaction.add_approval(question(owner=OTHER, tool="delete"))
        async with store.transaction() as transaction:
            transaction.decide_approval(OTHER, "apr_1", "approved", at=NOW)
        mine = await store.approvals.get(OWNER, "apr_1")
        theirs = await store.approvals.get(OTHER, "apr_1")
        assert mine is not None
        assert theirs is not None
        assert (mine.tool, mine.status) == ("pay", "pending")
        assert (theirs.tool, theirs.status) == ("delete", "approved")

    async def test_odd_ids_are_questions_like_any_other(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for key in ODD_KEYS:
                transaction.add_approval(question(key, tool=f"tool {key}"))
        for key in ODD_KEYS:
            approval = await store.approvals.get(OWNER, key)
            assert approval is not None
            assert approval.tool == f"tool {key}"

    async def _asked(self, store: HostStateStore, *questions: PendingApproval) -> bool:
        try:
            async with store.transaction() as transaction:
                transaction.save_run(run("run_2"))
                for approval in questions:
                    transaction.add_approval(approval)
        except ApprovalExistsError:
            return False
        return True

    async def _check_refused(self, store: HostStateStore, owner: str, approval_id: str, status: ApprovalStatus) -> None:
        with pytest.raises(StoreError):
            async with store.transaction() as transaction:
                transaction.decide_approval(owner, approval_id, status, at=NOW + 2)
