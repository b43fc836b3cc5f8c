"""The ids of approvals are the target's own, and one that names two calls runs neither for a yes to the other."""

import asyncio
import logging
from typing import Any

import pytest
from agent_framework import Content, tool

from frontdesk import ApiKeyAuth, ChannelSession
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.data.approval import ApprovalAnswer
from frontdesk.errors import ApprovalIdError, ConflictError
from tests.scenarios.asking import Clerk
from tests.scenarios.cast import scripted
from tests.scenarios.desk import InvocationsHost, open_desk, until
from tests.scenarios.pausing import Till
from tests.test_pipeline import caller, in_session, opened, request

AUTH = {"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"}


def error_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def say_yes(desk: InvocationsHost, approval_id: str) -> Any:
    return await desk.post({"approval": {"id": approval_id, "approved": True}})


async def test_a_yes_to_one_session_ran_the_call_of_another(caplog: pytest.LogCaptureFixture) -> None:
    clerk = Clerk("q", "q")
    async with open_desk(clerk.answer) as desk:
        assert (await desk.ask("pay 5", session_id="one")).json()["approvals"][0]["id"] == "q"
        with caplog.at_level(logging.ERROR):
            refused = await desk.ask("pay 500", session_id="two")
        assert error_of(refused) == (200, "approval_id_taken")
        assert "'pay'" in caplog.text
        (kept,) = desk.ledger.kept_approvals.values()
        assert kept.request.function_call.parse_arguments() == {"amount": 5}
        answered = (await say_yes(desk, "q")).json()
        assert (answered["session_id"], answered["text"], clerk.paid) == ("one", "done", [5])


async def test_a_question_without_an_id_was_kept_as_none() -> None:
    for missing in (None, "", "  "):
        async with open_desk(Clerk(missing).answer) as desk:
            assert error_of(await desk.ask("pay 5", session_id="s")) == (200, "approval_id_missing")
            assert not desk.ledger.kept_approvals
            assert (await say_yes(desk, "None")).status_code == 404


async def test_an_id_that_no_channel_could_send_back_is_refused() -> None:
    for wrong in ("x" * 257, "a\nb", " a", 7):
        async with open_desk(Clerk(wrong).answer) as desk:
            assert error_of(await desk.ask("pay 5", session_id="s")) == (200, "approval_id_invalid")
            assert not desk.ledger.kept_approvals


async def test_two_questions_of_one_turn_with_one_id_are_refused() -> None:
    async with open_desk(Clerk(["q", "q"]).answer) as desk:
        assert error_of(await desk.ask("pay 5 500", session_id="s")) == (200, "approval_id_taken")
        assert not desk.ledger.kept_approvals


async def test_of_two_turns_that_ask_with_one_id_at_once_one_fails() -> None:
    clerk = Clerk("q", "q")
    clerk.go_on.clear()
    async with open_desk(clerk.answer) as desk:
        asked = [asyncio.create_task(desk.ask(f"pay {amount}", session_id=f"s{amount}")) for amount in (5, 500)]
        await until(lambda: desk.active == 2)
        clerk.go_on.set()
        statuses = sorted([(await one).json()["status"] for one in asked])
        assert statuses == ["completed", "failed"]
        (kept,) = desk.ledger.kept_approvals.values()
        assert (await say_yes(desk, "q")).json()["text"] == "done"
        assert clerk.paid == [kept.request.function_call.parse_arguments()["amount"]]


async def test_one_caller_does_not_block_another_by_an_id() -> None:
    clerk = Clerk("q", "q")
    async with open_desk(clerk.answer, InvocationsChannel(auth=ApiKeyAuth(AUTH))) as desk:
        alice, bob = ({"x-api-key": one} for one in AUTH.values())
        for who, amount in ((alice, 5), (bob, 7)):
            assert (await desk.ask(f"pay {amount}", session_id="s", headers=who)).status_code == 200
        for who, amount in ((alice, 5), (bob, 7)):
            clerk.paid.clear()
            await desk.post({"approval": {"id": "q", "approved": True}}, headers=who)
            assert clerk.paid == [amount]


async def test_an_id_that_was_used_up_is_not_asked_again() -> None:
    clerk = Clerk("q", "q")
    async with open_desk(clerk.answer) as desk:
        await desk.ask("pay 5", session_id="s")
        await say_yes(desk, "q")
        assert error_of(await desk.ask("pay 5", session_id="s")) == (200, "approval_id_taken")
        assert (await say_yes(desk, "q")).status_code == 409
        assert clerk.paid == [5]


async def test_a_refused_question_fails_its_stream() -> None:
    clerk = Clerk("q", "q")
    async with open_desk(clerk.answer) as desk:
        await desk.ask("pay 5", session_id="one")
        last = (await desk.events("pay 500", session_id="two"))[-1]
        assert (last.name, last.data["error"]["code"]) == ("failed", "approval_id_taken")
        assert len(desk.ledger.kept_approvals) == 1


async def test_a_refused_question_fails_its_background_run() -> None:
    clerk = Clerk("q", "q")
    async with open_desk(clerk.answer) as desk:
        await desk.ask("pay 5", session_id="one")
        queued = await desk.ask("pay 500", session_id="two", background=True)
        ended = await desk.ended(queued.json()["id"])
        assert (ended["status"], ended["error"]["code"]) == ("failed", "approval_id_taken")


async def test_the_responses_api_says_so_too() -> None:
    clerk = Clerk("q", "q")
    async with open_desk(clerk.answer, channels=[ResponsesChannel()]) as desk:
        assert (await desk.client.post("/responses", json={"input": "pay 5"})).status_code == 200
        refused = (await desk.client.post("/responses", json={"input": "pay 500"})).json()
        assert (refused["status"], refused["error"]["code"]) == ("failed", "server_error")
        assert "an id that another question has" in refused["error"]["message"]


async def test_a_yes_ran_what_a_later_turn_had_asked_under_the_same_id() -> None:
    """The refused question of a later turn stays in the agent's own state, under the id of the first one."""
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    async with open_desk(scripted([paying(5), paying(500), ["done"]], tools=[pay])) as desk:
        assert (await desk.ask("pay 5", session_id="s")).json()["approvals"][0]["id"] == "q"
        assert error_of(await desk.ask("pay 500", session_id="s")) == (200, "approval_id_taken")
        assert (await say_yes(desk, "q")).json()["text"] == "done"
        assert paid == [5]


def paying(amount: int) -> list[Any]:
    """What a model says that numbers its calls anew each time."""
    return [Content.from_function_call("call-1", "pay", id="q", arguments=f'{{"amount": {amount}}}')]


async def test_a_workflow_in_another_session_asks_under_the_same_id() -> None:
    till = Till(paying(5), paying(500), ["done"])
    async with open_desk(till) as desk:
        assert (await desk.ask("pay 5", session_id="one")).json()["approvals"][0]["id"] == "q"
        assert error_of(await desk.ask("pay 500", session_id="two")) == (200, "approval_id_taken")
        assert (await say_yes(desk, "q")).json()["text"] == "done"
        assert till.paid == [5]


async def test_a_yes_resumed_a_branch_whose_checkpoint_waits_for_another_call() -> None:
    till = Till(["hello"], paying(5), paying(500), ["done"])
    async with opened(till) as (context, ledger):
        first = (await context.run(in_session("s", "hello"), caller())).run
        await context.run(in_session("s", "pay 5"), caller())
        with pytest.raises(ApprovalIdError):
            await context.run(request("pay 500", previous_run_id=first.run_id), caller())
        (failed,) = [one for one in ledger.kept_runs.values() if one.status == "failed"]
        yes = ApprovalAnswer(approval_id="q", approved=True)
        answer = request(None, session=ChannelSession(session_id=failed.session_id), approvals=(yes,))
        with pytest.raises(ConflictError):
            await context.run(answer.replace(checkpoint_id=failed.stopped_at.checkpoint_id), caller())
        assert (till.paid, len(await context.pending_approvals(caller()))) == ([], 1)
        await context.run(in_session("s", "").replace(input=None, approvals=(yes,)), caller())
        assert till.paid == [5]
