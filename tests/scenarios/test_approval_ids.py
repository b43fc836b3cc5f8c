"""Approvals have ids of the host's; one id of the target's never lets a yes to one call run another."""

import logging
from typing import Any

import pytest
from agent_framework import Content, tool

from frontdesk import ApiKeyAuth, ChannelSession
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import ApprovalIdError, ConflictError
from frontdesk.models.approval import ApprovalAnswer
from tests.scenarios.asking import Clerk
from tests.scenarios.cast import build_scripted
from tests.scenarios.desk import InvocationsHost, open_client
from tests.scenarios.pausing import Till
from tests.test_pipeline import caller, in_session, open_context, request

AUTH = {"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"}


def build_error(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def say_yes(desk: InvocationsHost, approval_id: str) -> Any:
    return await desk.post({"approval": {"id": approval_id, "approved": True}})


def id_in(response: Any) -> str:
    (approval,) = response.json()["approvals"]
    return approval["id"]


async def test_a_question_is_shown_and_answered_under_an_id_of_ours() -> None:
    clerk = Clerk("q")
    async with open_client(clerk.answer) as desk:
        shown = id_in(await desk.ask("pay 5", session_id="s"))
        (kept,) = desk.ledger.kept_approvals.values()
        assert (kept.approval_id, kept.target_request_id, kept.request.id) == (shown, "q", "q")
        assert shown.startswith("apr_")
        assert len(shown) <= 60
        assert (await say_yes(desk, "q")).status_code == 404
        assert (await say_yes(desk, shown)).json()["text"] == "done"
        assert clerk.paid == [5]


async def test_a_yes_to_one_session_ran_the_call_of_another() -> None:
    clerk = Clerk("q", "q")
    async with open_client(clerk.answer) as desk:
        five, much = [id_in(await desk.ask(f"pay {one}", session_id=f"s{one}")) for one in (5, 500)]
        assert five != much
        for shown, amount in ((five, 5), (much, 500)):
            clerk.paid.clear()
            answered = (await say_yes(desk, shown)).json()
            assert (answered["session_id"], answered["text"], clerk.paid) == (f"s{amount}", "done", [amount])


async def test_a_stream_shows_the_id_that_is_answered() -> None:
    clerk = Clerk("q")
    async with open_client(clerk.answer) as desk:
        last = (await desk.events("pay 5", session_id="s"))[-1]
        (kept,) = desk.ledger.kept_approvals
        assert [one["id"] for one in last.data["approvals"]] == [kept]
        assert (await say_yes(desk, kept)).json()["text"] == "done"


async def test_the_responses_api_shows_and_takes_the_same_id() -> None:
    clerk = Clerk("q")
    async with open_client(clerk.answer, channels=[ResponsesChannel()]) as desk:
        asked = (await desk.client.post("/responses", json={"input": "pay 5"})).json()
        (shown,) = [one["id"] for one in asked["output"] if one["type"] == "mcp_approval_request"]
        (kept,) = desk.ledger.kept_approvals
        yes = {"type": "mcp_approval_response", "approval_request_id": shown, "approve": True}
        answer = {"previous_response_id": asked["id"], "input": [yes]}
        answered = (await desk.client.post("/responses", json=answer)).json()
        items = (await desk.client.get(f"/responses/{answered['id']}/input_items?order=asc")).json()["data"]
        assert (shown, clerk.paid) == (kept, [5])
        assert shown in {one.get("approval_request_id") for one in items}


async def test_a_question_of_the_release_is_answered_by_the_id_that_was_shown() -> None:
    clerk = Clerk("q", "q")
    async with open_client(clerk.answer) as desk:
        shown = id_in(await desk.ask("pay 5", session_id="s"))
        store, asked = desk.ledger._store, desk.ledger.kept_approvals[shown]
        before = asked.replace(approval_id="q", target_request_id=None, requester=None, resume=None, schema_digest=None)
        async with store.transaction() as transaction:
            transaction.decide_approval(asked.owner, shown, "cancelled", at=1.0)
            transaction.add_approval(before)
        assert (await say_yes(desk, "q")).json()["text"] == "done"
        assert clerk.paid == [5]


async def test_a_question_without_an_id_was_kept_as_none() -> None:
    for missing in (None, "", "  "):
        async with open_client(Clerk(missing).answer) as desk:
            assert build_error(await desk.ask("pay 5", session_id="s")) == (200, "approval_id_missing")
            assert not desk.ledger.kept_approvals
            assert (await say_yes(desk, "None")).status_code == 404


async def test_an_id_that_no_channel_could_send_back_is_refused() -> None:
    for wrong in ("x" * 257, "a\nb", " a", 7):
        async with open_client(Clerk(wrong).answer) as desk:
            assert build_error(await desk.ask("pay 5", session_id="s")) == (200, "approval_id_invalid")
            assert not desk.ledger.kept_approvals


async def test_two_questions_of_one_turn_with_one_id_are_refused() -> None:
    async with open_client(Clerk(["q", "q"]).answer) as desk:
        assert build_error(await desk.ask("pay 5 500", session_id="s")) == (200, "approval_id_taken")
        assert not desk.ledger.kept_approvals


async def test_one_caller_does_not_block_another_by_an_id() -> None:
    clerk = Clerk("q", "q")
    async with open_client(clerk.answer, InvocationsChannel(auth=ApiKeyAuth(AUTH))) as desk:
        alice, bob = ({"x-api-key": one} for one in AUTH.values())
        asked = [await desk.ask(f"pay {amount}", session_id="s", headers=who) for who, amount in ((alice, 5), (bob, 7))]
        shown = [id_in(one) for one in asked]
        assert (await desk.post({"approval": {"id": shown[0], "approved": True}}, headers=bob)).status_code == 404
        for who, amount, approval_id in ((alice, 5, shown[0]), (bob, 7, shown[1])):
            clerk.paid.clear()
            await desk.post({"approval": {"id": approval_id, "approved": True}}, headers=who)
            assert clerk.paid == [amount]


async def test_an_id_that_was_used_up_is_not_asked_again() -> None:
    clerk = Clerk("q", "q")
    async with open_client(clerk.answer) as desk:
        shown = id_in(await desk.ask("pay 5", session_id="s"))
        await say_yes(desk, shown)
        assert build_error(await desk.ask("pay 5", session_id="s")) == (200, "approval_id_taken")
        assert (await say_yes(desk, shown)).status_code == 409
        assert clerk.paid == [5]


async def test_a_refused_question_fails_its_stream(caplog: pytest.LogCaptureFixture) -> None:
    clerk = Clerk("q", "q")
    async with open_client(clerk.answer) as desk:
        await desk.ask("pay 5", session_id="s")
        with caplog.at_level(logging.ERROR):
            last = (await desk.events("pay 500", session_id="s"))[-1]
        assert (last.name, last.data["error"]["code"]) == ("failed", "approval_id_taken")
        assert "'pay'" in caplog.text
        assert len(desk.ledger.kept_approvals) == 1


async def test_a_refused_question_fails_its_background_run() -> None:
    clerk = Clerk("q", "q")
    async with open_client(clerk.answer) as desk:
        await desk.ask("pay 5", session_id="s")
        queued = await desk.ask("pay 500", session_id="s", background=True)
        ended = await desk.wait_for_end(queued.json()["id"])
        assert (ended["status"], ended["error"]["code"]) == ("failed", "approval_id_taken")


async def test_the_responses_api_says_so_too() -> None:
    clerk = Clerk("q", "q")
    async with open_client(clerk.answer, channels=[ResponsesChannel()]) as desk:
        first = await desk.client.post("/responses", json={"input": "pay 5"})
        again = {"input": "pay 500", "previous_response_id": first.json()["id"]}
        refused = (await desk.client.post("/responses", json=again)).json()
        assert (refused["status"], refused["error"]["code"]) == ("failed", "invalid_prompt")
        assert "the id of another pending approval" in refused["error"]["message"]


async def test_a_yes_ran_what_a_later_turn_had_asked_under_the_same_id() -> None:
    """The refused question of a later turn stays in the agent's own state, under the id of the first one."""
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    async with open_client(build_scripted([build_payment(5), build_payment(500), ["done"]], tools=[pay])) as desk:
        shown = id_in(await desk.ask("pay 5", session_id="s"))
        assert build_error(await desk.ask("pay 500", session_id="s")) == (200, "approval_id_taken")
        assert (await say_yes(desk, shown)).json()["text"] == "done"
        assert paid == [5]


def build_payment(amount: int) -> list[Any]:
    """What a model says that numbers its calls anew each time."""
    return [Content.from_function_call("call-1", "pay", id="q", arguments=f'{{"amount": {amount}}}')]


async def test_a_workflow_in_another_session_asks_under_the_same_id() -> None:
    till = Till(build_payment(5), build_payment(500), ["done"], ["done"])
    async with open_client(till) as desk:
        five, much = [id_in(await desk.ask(f"pay {one}", session_id=f"s{one}")) for one in (5, 500)]
        assert (await say_yes(desk, much)).json()["text"] == "done"
        assert till.paid == [500]
        assert (await say_yes(desk, five)).json()["text"] == "done"
        assert till.paid == [500, 5]


async def test_a_yes_resumed_a_branch_whose_checkpoint_waits_for_another_call() -> None:
    till = Till(["hello"], build_payment(5), build_payment(500), ["done"])
    async with open_context(till) as (context, ledger):
        first = (await context.run(in_session("s", "hello"), caller())).run
        await context.run(in_session("s", "pay 5"), caller())
        with pytest.raises(ApprovalIdError):
            await context.run(request("pay 500", previous_run_id=first.run_id), caller())
        (failed,) = [one for one in ledger.kept_runs.values() if one.status == "failed"]
        (shown,) = ledger.kept_approvals
        yes = ApprovalAnswer(approval_id=shown, approved=True)
        answer = request(None, session=ChannelSession(session_id=failed.session_id), approvals=(yes,))
        with pytest.raises(ConflictError):
            await context.run(answer.replace(checkpoint_id=failed.stopped_at.checkpoint_id), caller())
        assert (till.paid, len(await context.approvals.pending(caller()))) == ([], 1)
        await context.run(in_session("s", "").replace(input=None, approvals=(yes,)), caller())
        assert till.paid == [5]
