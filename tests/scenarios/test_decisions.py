"""Questions that are decided at once: who may, when it is too late, and what goes on with the run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_framework import Agent, tool

from frontdesk import ApprovalOptions, InMemoryStateStore
from frontdesk.clock import SystemClock
from frontdesk.errors import ConflictError, NotFoundError
from frontdesk.interfaces.access import Denied
from frontdesk.models.approval import ApprovalAnswer, Decision
from frontdesk.scripted import ScriptedChatClient
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.internals import get_components
from tests.scenarios.cast import call
from tests.scenarios.desk import until
from tests.test_pipeline import caller, in_session, open_context


class Shop:
    """An agent that asks before it pays."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.agent = Agent(ScriptedChatClient(_answer), name="shop", tools=[self.tool()])

    def tool(self, name: str = "pay") -> Any:
        @tool(name=name, approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pays."""
            self.paid.append(amount)
            return f"paid {amount}"

        return pay


def _answer(messages: Any) -> Any:
    results = [one for message in messages for one in message.contents if one.type == "function_result"]
    return "done" if results else [call("pay", amount=5)]


@asynccontextmanager
async def open_asked(shop: Shop, **options: Any) -> AsyncIterator[tuple[Any, Any, str]]:
    async with open_context(shop.agent, **options) as (context, ledger):
        result = (await context.run(in_session("s", "pay"), caller())).result
        yield context, ledger, result.user_input_requests[0].id


async def wait_for_end(context: Any, decision: Decision) -> Any:
    async def run() -> Any:
        try:
            return await context.runs.get(caller(), decision.run_id)
        except NotFoundError:
            return None

    async def is_over() -> bool:
        record = await run()
        return record is not None and record.status not in ("queued", "running")

    await until(is_over)
    return await run()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    if request.param == "memory":
        return InMemoryStateStore()
    if request.param == "sqlite":
        return SqliteStateStore(tmp_path / "state.db")
    return PostgresStateStore(request.getfixturevalue("postgres"))


@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_is_recorded_and_the_run_goes_on(store: Any, approved: bool) -> None:
    shop = Shop()
    async with open_asked(shop, store=store) as (context, ledger, approval_id):
        decision = await context.approvals.decide(caller(), approval_id, approved, reason="because")
        assert decision.outcome == "recorded"
        run = await wait_for_end(context, decision)
        assert (run.status, run.session_key, shop.paid) == ("completed", "s", [5] if approved else [])
        question = await context.approvals.get(caller(), approval_id)
        assert (question.status, question.reason, question.begun) == (decision.approval.status, "because", True)
        (line,) = await ledger.audit.lines(subject=approval_id)
        assert (line.action, line.by, line.reason) == (question.status, question.owner, "because")
        (vote,) = await ledger.approvals.votes(question.owner, approval_id)
        assert (vote.approved, vote.voter) == (approved, question.owner)
        again = await context.approvals.decide(caller(), approval_id, True)
        assert (again.outcome, again.run_id) == ("late", None)
        assert len(await ledger.audit.lines()) == 1


async def test_an_answer_on_a_wire_is_a_decision_too() -> None:
    shop = Shop()
    async with open_asked(shop) as (context, ledger, approval_id):
        answer = await context.approvals.build_request(caller(), [])
        await context.run(answer.replace(approvals=(ApprovalAnswer(approval_id=approval_id, approved=True),)), caller())
        assert shop.paid == [5]
        assert [line.action for line in await ledger.audit.lines(subject=approval_id)] == ["approved"]
        assert (await context.approvals.decide(caller(), approval_id, True)).outcome == "late"


async def test_only_whoever_asked_decides() -> None:
    shop = Shop()
    async with open_asked(shop) as (context, ledger, approval_id):
        await context.run(in_session("s", "hello"), caller("bob"))
        for name, one in (("bob", approval_id), ("carol", approval_id), ("ann", "apr_unknown")):
            assert await context.approvals.decide(caller(name), one, True) == Decision(outcome="not_yours")
        assert (shop.paid, list(await ledger.audit.lines())) == ([], [])


async def _decide_and_answer(context: Any, approval_id: str) -> str:
    outcome = (await context.approvals.decide(caller(), approval_id, True)).outcome
    request = await context.approvals.build_request(caller(), [ApprovalAnswer(approval_id=approval_id, approved=True)])
    with pytest.raises(ConflictError) as caught:
        await context.run(request, caller())
    assert caught.value.code == "approval_changed"
    return outcome


async def test_another_digest_than_the_shown_one_decides_nothing() -> None:
    shop = Shop()
    async with open_asked(shop) as (context, _, approval_id):
        assert (await context.approvals.decide(caller(), approval_id, True, digest="another")).outcome == "changed"
        question = await context.approvals.get(caller(), approval_id)
        assert question.status == "pending"
        assert (
            await context.approvals.decide(caller(), approval_id, True, digest=question.digest)
        ).outcome == "recorded"


@pytest.mark.parametrize("change", ["gone", "renamed", "other parameters"])
async def test_a_tool_that_has_changed_does_not_run(change: str) -> None:
    shop = Shop()
    async with open_asked(shop) as (context, _, approval_id):

        @tool(name="pay", approval_mode="always_require")
        def pay(amount: int, currency: str = "EUR") -> str:
            """Pays."""
            shop.paid.append(amount)
            return "paid"

        tools = {"gone": [], "renamed": [shop.tool("spend")], "other parameters": [pay]}[change]
        before, shop.agent.default_options["tools"] = shop.agent.default_options["tools"], tools
        assert await _decide_and_answer(context, approval_id) == "changed"
        assert shop.paid == []
        shop.agent.default_options["tools"] = before
        assert (await context.approvals.decide(caller(), approval_id, True)).outcome == "recorded"


async def test_arguments_that_were_changed_in_the_store_do_not_run() -> None:
    shop = Shop()
    async with open_asked(shop) as (context, ledger, approval_id):
        kept = ledger._store.approvals
        question = await context.approvals.get(caller(), approval_id)
        question.request.function_call.arguments = '{"amount": 500}'
        kept.add(question)
        assert await _decide_and_answer(context, approval_id) == "changed"
        assert shop.paid == []


async def test_a_no_to_a_tool_that_is_gone_still_counts() -> None:
    shop = Shop()
    async with open_asked(shop) as (context, _, approval_id):
        shop.agent.default_options["tools"] = []
        decision = await context.approvals.decide(caller(), approval_id, False)
        assert decision.outcome == "recorded"
        assert (await wait_for_end(context, decision)).status == "completed"


async def test_a_requester_who_is_denied_by_now() -> None:
    """Somebody is allowed to decide, and the same person's other account, which has asked, may not come in any more."""
    shop = Shop()
    async with open_asked(shop) as (context, ledger, approval_id):
        parts, allowed = get_components(context), []
        plain = parts.pipeline._gate.authorize

        async def authorize(*arguments: Any, **options: Any) -> Any:
            if allowed:
                raise parts.gate.refusal(Denied(reason_code="left", user_message="No more."), caller().identity)
            allowed.append(1)
            return await plain(*arguments, **options)

        parts.gate.authorize = authorize
        decision = await context.approvals.decide(caller(), approval_id, True)
        parts.pipeline._gate.authorize = authorize
        question = decision.approval

        async def is_over() -> bool:
            record = await ledger.runs.get(question.owner, decision.run_id)
            return record is not None and record.status == "failed"

        await until(is_over)
        record = await ledger.runs.get(question.owner, decision.run_id)
        assert (record.failure.code, shop.paid) == ("denied", [])
        kept = await ledger.approvals.get(question.owner, approval_id)
        assert (kept.waits, kept.begun) == (False, True)


async def test_a_question_expires_and_that_is_a_decision(store: Any) -> None:
    shop, clock = Shop(), FakeClock(SystemClock().now())
    begin = clock.now()
    async with open_asked(shop, store=store, approvals=ApprovalOptions(seconds=60), clock=clock) as (
        context,
        ledger,
        approval_id,
    ):
        clock.advance(59)
        assert (await context.approvals.get(caller(), approval_id)).expires_at == begin + 60
        clock.advance(2)
        assert (await context.approvals.decide(caller(), approval_id, True)).outcome == "late"
        question = await context.approvals.get(caller(), approval_id)
        assert (question.status, question.reason, shop.paid) == ("rejected", "expired", [])
        assert [(line.action, line.by) for line in await ledger.audit.lines()] == [("expired", "")]


async def test_an_answer_on_a_wire_that_comes_too_late() -> None:
    shop, clock = Shop(), FakeClock(1000.0)
    async with open_asked(shop, approvals=ApprovalOptions(seconds=60), clock=clock) as (context, ledger, approval_id):
        clock.advance(61)
        request = await context.approvals.build_request(
            caller(), [ApprovalAnswer(approval_id=approval_id, approved=True)]
        )
        with pytest.raises(ConflictError) as caught:
            await context.run(request, caller())
        assert (caught.value.code, shop.paid) == ("approval_expired", [])
        assert [line.action for line in await ledger.audit.lines()] == ["expired"]


async def test_a_second_answer_to_an_expired_question_was_called_answered(store: Any) -> None:
    """The clock is set back in the meantime, and the run that goes on has the rejection at some point."""
    shop, clock = Shop(), FakeClock(SystemClock().now())
    async with open_asked(shop, store=store, approvals=ApprovalOptions(seconds=60), clock=clock) as (
        context,
        ledger,
        approval_id,
    ):

        async def codes() -> list[str]:
            found: list[str] = []
            for approved in (True, False, True):
                answer = ApprovalAnswer(approval_id=approval_id, approved=approved)
                with pytest.raises(ConflictError) as caught:
                    await context.run(await context.approvals.build_request(caller(), [answer]), caller())
                found.append(caught.value.code)
            return found

        async def is_acted_on() -> bool:
            return not (await context.approvals.get(caller(), approval_id)).waits

        clock.advance(61)
        assert await codes() == ["approval_expired"] * 3
        clock.advance(-61)
        await until(is_acted_on)
        assert await codes() == ["approval_expired"] * 3
        assert shop.paid == []
        assert [line.action for line in await ledger.audit.lines(subject=approval_id)] == ["expired"]


async def test_an_answer_that_was_first_when_its_question_expired_is_not_too_late() -> None:
    """The same answer comes twice at its deadline, and the first one is written before the question expires."""
    shop, clock = Shop(), FakeClock(1000.0)
    async with open_asked(shop, approvals=ApprovalOptions(seconds=60), clock=clock) as (context, ledger, approval_id):
        answers = get_components(context).pipeline._starter._answers
        expire, answer = answers._expire, ApprovalAnswer(approval_id=approval_id, approved=True)

        assert expire is not None

        async def expire_later(question: Any) -> None:
            await answers.take(question.owner, [answer], caller())
            await expire(question)

        answers._expire = expire_later
        clock.advance(61)
        await context.run(await context.approvals.build_request(caller(), [answer]), caller())
        assert shop.paid == [5]
        assert [line.action for line in await ledger.audit.lines(subject=approval_id)] == ["approved"]


async def test_a_question_that_nobody_looks_at_expires_by_itself() -> None:
    shop, clock = Shop(), FakeClock(1000.0)
    async with open_asked(shop, approvals=ApprovalOptions(seconds=60), clock=clock) as (_, ledger, approval_id):
        clock.advance(61)

        async def is_expired() -> bool:
            return [line.action for line in await ledger.audit.lines(subject=approval_id)] == ["expired"]

        await until(is_expired)
