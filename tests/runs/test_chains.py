"""Chains of runs, as a channel sees them: who joins, what is listed and followed, and what a cancellation ends."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk import ChannelIdentity, ChannelSession
from frontdesk.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError
from frontdesk.models.approval import ApprovalAnswer, ApproverTerms
from frontdesk.models.request import ClientOutput, ClientTool
from frontdesk.models.run import RunChain, RunFilter, RunRecord
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.scenarios.asking import Clerk
from tests.scenarios.cast import echo
from tests.scenarios.desk import open_client, until
from tests.scenarios.pausing import Inn
from tests.scenarios.test_cancel import Slow
from tests.scenarios.test_decisions import Shop, open_asked
from tests.test_pipeline import caller, in_session, open_context, request

BOSS = ChannelIdentity(channel="probe", native_id="boss")
YES = {"accepted": True, "nights": 2}


def answer(name: str, approved: bool = True) -> ApprovalAnswer:
    return ApprovalAnswer(approval_id=name, approved=approved)


async def wait_for_end(context: Any, run_id: str) -> RunChain:
    """The chain, once nothing of it runs or is queued."""
    chains: list[RunChain] = []

    async def look() -> bool:
        chains.append(await context.runs.chain(caller(), run_id))
        return chains[-1].status not in ("queued", "running")

    await until(look)
    return chains[-1]


def ids(runs: Sequence[RunRecord]) -> list[str]:
    return [run.run_id for run in runs]


class TestWhoJoins:
    async def test_a_run_alone_is_its_own_chain(self) -> None:
        async with open_context(echo) as (context, _):
            run = (await context.run(request(), caller())).run
            chain = await context.runs.chain(caller(), run.run_id)
            assert (chain.root, chain.newest, chain.questions) == (chain.newest, chain.root, ())
            assert (chain.root.run_id, chain.status, run.root_run_id) == (run.run_id, "completed", None)
            for who, name in ((caller("ben"), run.run_id), (caller(), "run_unknown")):
                with pytest.raises(NotFoundError):
                    await context.runs.chain(who, name)

    async def test_the_runs_of_a_chain_are_listed_in_their_order(self) -> None:
        async with open_context(echo) as (context, _):
            first = (await context.run(in_session("s", "one"), caller())).run
            names = [first.run_id]
            for text in ("two", "three"):
                more = in_session("s", text, continues=first.run_id)
                names.append((await context.run(more, caller())).run.run_id)
            for name in names:
                assert ids(await context.runs.list_chain(caller(), name)) == names
            for who, name in ((caller("ben"), first.run_id), (caller(), "run_unknown")):
                with pytest.raises(NotFoundError):
                    await context.runs.list_chain(who, name)

    async def test_stored_updates_are_the_first_ones_of_the_stream(self) -> None:
        slow = Slow()
        async with open_context(slow.pieces) as (context, _):
            stream = await context.stream(request(background=True, stream=True), caller())
            await slow.began.wait()

            async def are_stored() -> bool:
                return bool(await context.runs.list_stored_updates(caller(), stream.run.run_id))

            await until(are_stored)
            stored = await context.runs.list_stored_updates(caller(), stream.run.run_id)
            slow.go_on.set()
            async with stream:
                followed = [update async for update in stream]
            assert [update.text for update in followed[: len(stored)]] == [update.text for update in stored]
            assert len(followed) > len(stored)
            plain = (await context.run(request(), caller())).run
            assert await context.runs.list_stored_updates(caller(), plain.run_id) == ()
            with pytest.raises(NotFoundError):
                await context.runs.list_stored_updates(caller("ben"), stream.run.run_id)

    async def test_a_decision_joins_the_chain_of_its_question(self) -> None:
        shop = Shop()
        async with open_asked(shop) as (context, _, name):
            asking = (await context.approvals.get(caller(), name)).run_id
            assert (await context.runs.chain(caller(), asking)).status == "input_required"
            decision = await context.approvals.decide(caller(), name, True)
            chain = await wait_for_end(context, asking)
            assert (chain.root.run_id, chain.newest.run_id) == (asking, decision.run_id)
            assert (chain.newest.root_run_id, chain.status) == (asking, "completed")
            assert [(one.approval_id, one.status) for one in chain.questions] == [(name, "approved")]
            assert await wait_for_end(context, decision.run_id) == chain
        assert shop.paid == [5]

    @pytest.mark.parametrize("background", [False, True])
    async def test_an_answer_over_http_joins_as_a_decision_does(self, background: bool, tmp_path: Any) -> None:
        shop = Shop()
        async with open_asked(shop, store=SqliteStateStore(tmp_path / "state.db")) as (context, _, name):
            asking = (await context.approvals.get(caller(), name)).run_id
            answered = await context.approvals.build_request(caller(), [answer(name)])
            run = (await context.run(answered.replace(background=background), caller())).run
            assert run.root_run_id == asking
            chain = await wait_for_end(context, asking)
            assert (chain.newest.run_id, chain.status, shop.paid) == (run.run_id, "completed", [5])

    @pytest.mark.parametrize("background", [False, True])
    async def test_an_answer_to_a_workflow_joins(self, background: bool) -> None:
        async with open_context(Inn()) as (context, _):
            first = (await context.run(in_session("s", "two anna"), caller())).run
            chain = await context.runs.chain(caller(), first.run_id)
            assert (chain.status, len(chain.calls)) == ("input_required", 2)
            for call, value in zip(chain.calls, (YES, "eggs"), strict=True):
                outputs = (ClientOutput(call_id=call.call_id, output=value),)
                more = in_session("s", None, client_outputs=outputs, background=background)
                run = (await context.run(more, caller())).run
                assert run.root_run_id == first.run_id
                chain = await wait_for_end(context, first.run_id)
                assert chain.newest.run_id == run.run_id
            assert (chain.status, chain.calls) == ("completed", ())

    async def test_a_question_of_a_later_run_is_in_the_chain_of_the_first(self) -> None:
        clerk = Clerk(["a"], ["b"])
        async with open_context(clerk.answer) as (context, _):
            first = (await context.run(in_session("s", "pay 5"), caller())).run
            again = in_session("s", "pay 6", continues=first.run_id)
            second = (await context.run(again, caller())).run
            assert second.root_run_id == first.run_id
            chain = await context.runs.chain(caller(), second.run_id)
            assert [(one.run_id, one.status) for one in chain.questions] == [
                (first.run_id, "pending"),
                (second.run_id, "pending"),
            ]
            answered = await context.approvals.build_request(caller(), [answer(chain.questions[1].approval_id)])
            third = (await context.run(answered, caller())).run
            assert third.root_run_id == first.run_id
            # The first question still waits.
            assert (await context.runs.chain(caller(), first.run_id)).status == "input_required"

    @pytest.mark.parametrize("background", [False, True])
    async def test_a_run_of_somebody_else_can_t_be_continued(self, background: bool) -> None:
        async with open_context(echo) as (context, ledger):
            run = (await context.run(request(), caller("ben"))).run
            for continued in (run.run_id, "run_unknown"):
                with pytest.raises(NotFoundError):
                    await context.run(request(continues=continued, background=background), caller())
            assert (await ledger.runs.page((await context.run(request(), caller())).run.owner, RunFilter())).total == 1

    async def test_a_background_run_that_continues_is_in_the_chain_while_it_waits(self) -> None:
        slow = Slow()
        async with open_context(slow.whole) as (context, _):
            first = await context.submit(in_session("s", "one"), caller())
            await slow.began.wait()
            second = await context.submit(in_session("s", "two", continues=first.run_id), caller())
            chain = await context.runs.chain(caller(), first.run_id)
            assert (chain.newest.run_id, chain.status) in [
                (first.run_id, "running"),
                (second.run_id, "queued"),
                (second.run_id, "running"),
            ]
            slow.go_on.set()
            assert (await wait_for_end(context, first.run_id)).newest.root_run_id == first.run_id


class TestLists:
    async def test_a_caller_lists_own_runs_page_by_page(self) -> None:
        async with open_context(echo) as (context, _):
            runs = [(await context.run(in_session("st"[n % 2], str(n)), caller())).run for n in range(7)]
            await context.run(request(), caller("ben"))
            page, read = await context.runs.list(caller(), limit=3), []
            read += page.runs
            assert (page.total, page.is_total_exact) == (7, True)
            while page.cursor is not None:
                page = await context.runs.list(caller(), limit=3, cursor=page.cursor)
                read += page.runs
            assert sorted(ids(read)) == sorted(ids(runs))
            assert [run.finished_at for run in read] == sorted((run.finished_at for run in runs), reverse=True)
            of_session = await context.runs.list(caller(), session="s", channel="probe", status="completed")
            assert sorted(ids(of_session.runs)) == sorted(ids(runs[::2]))
            assert (await context.runs.list(caller(), channel="web")).runs == ()
            assert (await context.runs.list(caller("nobody"))).total == 0
            for cursor in ("x", "WzEsMl0", "W10", "é", "A" * 5000, "WzEuMCwiXHUwMDAwIl0"):
                with pytest.raises(InvalidRequestError):
                    await context.runs.list(caller(), cursor=cursor)

    async def test_the_roots_of_chains_are_listed_alone(self) -> None:
        async with open_context(echo) as (context, _):
            first = (await context.run(in_session("s"), caller())).run
            second = (await context.run(in_session("s", continues=first.run_id), caller())).run
            assert set(ids((await context.runs.list(caller())).runs)) == {first.run_id, second.run_id}
            assert ids((await context.runs.list(caller(), roots_only=True)).runs) == [first.run_id]


class TestFollowing:
    async def _read(self, stream: Any) -> tuple[str, Any]:
        async with stream:
            text = "".join([update.text async for update in stream])
            return text, stream.final()

    async def test_a_run_without_events_yields_its_end(self) -> None:
        async with open_context(echo) as (context, _):
            run = (await context.run(request("hi"), caller())).run
            text, final = await self._read(await context.runs.follow(caller(), run.run_id))
            assert (text, final.run.run_id, final.run.status) == (final.result.text, run.run_id, "completed")
            with pytest.raises(ConflictError) as refused:
                await context.runs.follow(caller(), run.run_id, stored_events_only=True)
            assert refused.value.code == "no_events"

    @pytest.mark.parametrize("background", [False, True])
    async def test_a_run_that_goes_on_is_followed_to_its_end(self, background: bool) -> None:
        slow = Slow()
        async with open_context(slow.whole) as (context, _):
            asking = request("it", run_id="mine", background=background)
            running = asyncio.create_task(context.run(asking, caller()))
            await slow.began.wait()
            following = asyncio.create_task(self._read(await context.runs.follow(caller(), "mine")))
            slow.go_on.set()
            text, final = await following
            await running
            assert (text, final.run.status) == ("done with it", "completed")

    async def test_a_cancelled_run_ends_for_its_follower(self) -> None:
        slow = Slow()
        async with open_context(slow.whole) as (context, _):
            running = asyncio.create_task(context.run(request("it", run_id="mine"), caller()))
            await slow.began.wait()
            following = asyncio.create_task(self._read(await context.runs.follow(caller(), "mine")))
            await asyncio.sleep(0)
            await context.runs.cancel(caller(), "mine")
            await running
            assert (await following)[1].run.status == "cancelled"

    async def test_a_chain_is_followed_into_its_next_runs(self) -> None:
        shop = Shop()
        async with open_asked(shop) as (context, _, name):
            asking = (await context.approvals.get(caller(), name)).run_id
            seen: list[str] = []
            asked_once = asyncio.Event()

            async def follow() -> None:
                async for stream in await context.runs.follow_chain(caller(), asking, waits=True):
                    _, final = await self._read(stream)
                    seen.append(final.run.run_id)
                    asked_once.set()

            following = asyncio.create_task(follow())
            await asked_once.wait()
            decision = await context.approvals.decide(caller(), name, True)
            await following
            assert seen == [asking, decision.run_id]

    async def test_a_question_ends_the_sequence_unless_asked_to_wait(self) -> None:
        async with open_asked(Shop()) as (context, _, name):
            asking = (await context.approvals.get(caller(), name)).run_id
            streams = [stream.run.run_id async for stream in await context.runs.follow_chain(caller(), asking)]
            assert streams == [asking]

    async def test_the_run_after_a_decision_keeps_what_the_client_gave(self) -> None:
        shop = Shop()
        async with open_context(shop.agent) as (context, ledger):
            tools = (ClientTool(name="look", parameters={"type": "object"}),)
            state: Any = {"client_state": {"a": 1}, "forwarded_props": {"b": 2}}
            asking = in_session("s", "pay", background=True, stream=True, client_tools=tools, **state)
            run = await context.submit(asking, caller())
            chain = await wait_for_end(context, run.run_id)
            resume = chain.waiting[0].resume
            assert (resume.stream, resume.client_tools) == (True, tools)
            assert (resume.client_state, resume.forwarded_props) == ({"a": 1}, {"b": 2})
            decision = await context.approvals.decide(caller(), chain.waiting[0].approval_id, True)
            chain = await wait_for_end(context, run.run_id)
            assert (chain.newest.run_id, chain.newest.stream, chain.newest.status) == (
                decision.run_id,
                True,
                "completed",
            )
            assert await ledger.runs.events(run.owner, decision.run_id)
        assert shop.paid == [5]


class TestAnswersThatCannotTakeEffect:
    async def _read_refusal(self, context: Any, *answers: ApprovalAnswer, who: Any = None) -> Exception:
        who = who or caller()
        answered = await context.approvals.build_request(who, list(answers))
        before = (await context.runs.list(caller())).total
        with pytest.raises((ConflictError, ForbiddenError, NotFoundError, InvalidRequestError)) as refused:
            await context.run(answered.replace(background=True, session=ChannelSession(key="s")), who)
        assert (await context.runs.list(caller())).total == before
        return refused.value

    async def test_a_late_or_unknown_answer_is_refused_before_it_is_queued(self) -> None:
        shop = Shop()
        async with open_asked(shop) as (context, _, name):
            assert isinstance(await self._read_refusal(context, answer("apr_unknown")), NotFoundError)
            assert isinstance(await self._read_refusal(context, answer(name), answer(name)), InvalidRequestError)
            asking = (await context.approvals.get(caller(), name)).run_id
            await context.approvals.decide(caller(), name, False)
            await wait_for_end(context, asking)
            assert getattr(await self._read_refusal(context, answer(name)), "code", "") == "approval_answered"
        assert shop.paid == []

    @pytest.mark.parametrize(
        ("terms", "code"),
        [
            (ApproverTerms(approvers=(BOSS,), exclude_requester=True), "approval_not_yours"),
            (ApproverTerms(approvers=(BOSS,), asks_requester=True, votes=2), "approval_needs_more"),
        ],
    )
    async def test_an_answer_that_does_not_decide_is_refused(self, terms: ApproverTerms, code: str) -> None:
        shop = Shop()
        async with open_asked(shop) as (context, ledger, name):
            question = await context.approvals.get(caller(), name)
            ledger._store.approvals.add(question.replace(rule=terms))
            assert getattr(await self._read_refusal(context, answer(name)), "code", "") == code
            assert (await context.approvals.get(caller(), name)).status == "pending"
            votes = await ledger.approvals.votes(question.owner, name)
            assert len(votes) == (1 if code == "approval_needs_more" else 0)
        assert shop.paid == []

    async def test_a_call_that_has_changed_is_refused(self) -> None:
        shop = Shop()
        async with open_asked(shop) as (context, _, name):
            shop.agent.default_options["tools"] = [shop.tool("other")]
            error = await self._read_refusal(context, answer(name))
            assert getattr(error, "code", "") == "approval_changed"
            assert (await context.approvals.get(caller(), name)).status == "pending"


class TestCancelling:
    async def test_a_run_that_waits_for_an_approval_is_cancelled(self) -> None:
        shop = Shop()
        async with open_asked(shop) as (context, _, name):
            asking = (await context.approvals.get(caller(), name)).run_id
            assert (await context.runs.cancel(caller(), asking)).status == "cancelled"
            chain = await context.runs.chain(caller(), asking)
            assert (chain.status, [one.status for one in chain.questions]) == ("cancelled", ["cancelled"])
            assert (await context.runs.list(caller(), status="cancelled")).total == 1
            late = await context.approvals.decide(caller(), name, True)
            assert late.outcome == "late"
            # Again is the same.
            assert (await context.runs.cancel(caller(), asking)).status == "cancelled"
        assert shop.paid == []

    async def test_a_workflow_that_waits_is_cancelled_and_its_session_goes_on(self) -> None:
        inn = Inn()
        async with open_context(inn) as (context, _):
            run = (await context.run(in_session("s", "anna"), caller())).run
            (call,) = (await context.runs.chain(caller(), run.run_id)).calls
            cancelled = await context.runs.cancel(caller(), run.run_id)
            assert (cancelled.status, cancelled.client_calls) == ("cancelled", ())
            chain = await context.runs.chain(caller(), run.run_id)
            assert (chain.status, chain.calls) == ("cancelled", ())
            outputs = (ClientOutput(call_id=call.call_id, output=YES),)
            with pytest.raises(InvalidRequestError):
                await context.run(in_session("s", None, client_outputs=outputs), caller())
            later = (await context.run(in_session("s", "who?"), caller())).run
            assert (later.status, later.root_run_id, inn.ledger) == ("completed", None, [])

    async def test_a_chain_is_cancelled_by_its_first_run(self) -> None:
        slow = Slow()
        async with open_context(slow.whole) as (context, _):
            slow.go_on.set()
            first = (await context.run(in_session("s", "one"), caller())).run
            slow.go_on.clear()
            slow.began.clear()
            second = await context.submit(in_session("s", "two", continues=first.run_id), caller())
            await slow.began.wait()
            assert (await context.runs.cancel(caller(), first.run_id)).status == "completed"
            chain = await context.runs.cancel_chain(caller(), first.run_id)
            assert (chain.newest.run_id, chain.status) == (second.run_id, "cancelled")
            assert (await context.runs.get(caller(), first.run_id)).status == "completed"
            with pytest.raises(NotFoundError):
                await context.runs.cancel_chain(caller("ben"), first.run_id)

    async def test_all_questions_of_a_chain_end_with_it(self) -> None:
        clerk = Clerk(["a"], ["b"])
        async with open_context(clerk.answer) as (context, _):
            first = (await context.run(in_session("s", "pay 5"), caller())).run
            second = (await context.run(in_session("s", "pay 6", continues=first.run_id), caller())).run
            chain = await context.runs.cancel_chain(caller(), first.run_id)
            assert (chain.newest.run_id, chain.newest.status, chain.status) == (
                second.run_id,
                "cancelled",
                "cancelled",
            )
            assert [one.status for one in chain.questions] == ["cancelled", "cancelled"]

    async def test_a_finished_run_stays_as_it_is(self) -> None:
        async with open_context(echo) as (context, _):
            run = (await context.run(request(), caller())).run
            assert (await context.runs.cancel(caller(), run.run_id)).status == "completed"
            assert (await context.runs.cancel_chain(caller(), run.run_id)).status == "completed"


async def test_a_run_that_asked_stayed_completed_over_invocations_after_a_cancel() -> None:
    inn, clerk = Inn(), Clerk(["a"])
    for target, message in ((inn, "anna"), (clerk.answer, "pay 5")):
        async with open_client(target) as desk:
            run = (await desk.ask(message, session_id="s")).json()
            assert run["status"] == "completed"
            cancelled = (await desk.cancel(run["id"])).json()
            assert (cancelled["status"], cancelled["error"]["code"]) == ("cancelled", "cancelled")
            assert (await desk.get(run["id"])).json()["status"] == "cancelled"
            for question in run["approvals"]:
                late = await desk.post({"approval": {"id": question["id"], "approved": True}})
                assert (late.status_code, late.json()["error"]["code"]) == (409, "approval_answered")
    assert (inn.ledger, clerk.paid) == ([], [])
