"""An answer to an approval was used up before anything was done with it, and could not be given again."""

import asyncio
from typing import Any

import pytest
from agent_framework import Content, tool

from frontdesk.errors import ConflictError, RequestError
from frontdesk.models.approval import ApprovalAnswer
from frontdesk_testing.internals import get_components
from tests.faults.answer_steps import KINDS, Decided, Doorway, Payer, code, yes
from tests.faults.test_questions_and_unlinking import ask, link, say_yes
from tests.host.link_door import Loud, open_host
from tests.scenarios.asking import Clerk
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import InvocationsHost, open_client, until
from tests.scenarios.test_approvals import Bank


async def _leave(desk: InvocationsHost, body: dict[str, Any], held: asyncio.Event) -> None:
    """Answer, and hang up when the run is held."""
    leaving = asyncio.create_task(desk.post(body))
    await held.wait()
    leaving.cancel()
    await asyncio.wait([leaving])
    await until(lambda: not desk.active and not desk.requests)


def _doorway(bank: Bank) -> tuple[Any, Doorway]:
    agent = bank.agent([call("pay", amount=5)], ["done"], ["done"])
    door = Doorway()
    agent.context_providers.append(door)
    return agent, door


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_left_after_the_decision_and_its_yes_was_lost(kind: str) -> None:
    payer = Payer(kind)
    async with open_client(payer.target) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        decided = Decided(desk.host)
        await _leave(desk, yes(run), decided.seen)
        decided.go_on.set()
        assert code(await desk.post(yes(run, approved=False))) == (409, "approval_answered")
        assert payer.paid == []
        again = await desk.post(yes(run))
        assert (again.status_code, again.json()["status"], payer.paid) == (200, "completed", [5])
        assert code(await desk.post(yes(run))) == (409, "approval_answered")
        assert payer.paid == [5]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("approved", [False, True])
async def test_a_client_left_before_the_tool_began_and_its_answer_was_lost(stream: bool, approved: bool) -> None:
    bank = Bank()
    agent, door = _doorway(bank)
    async with open_client(agent) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        door.close()
        await _leave(desk, yes(run, approved, stream=stream), door.entered)
        door.open.set()
        # The history does not tell of it, and the next turn does nothing with it.
        assert (await desk.ask("hello", session_id="s")).json()["text"] == "done"
        assert bank.paid == []
        assert (await desk.post(yes(run, approved))).json()["text"] == "done"
        assert bank.paid == ([5] if approved else [])
        answers = [one for message in desk.history("s") for one in message.contents if "approval_resp" in one.type]
        assert len(answers) == 1
        assert code(await desk.post(yes(run, approved))) == (409, "approval_answered")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_that_had_begun_was_not_begun_again(stream: bool) -> None:
    began: list[int] = []
    at_work = asyncio.Event()

    @tool(approval_mode="always_require")
    async def pay(amount: int) -> str:
        """Pays."""
        began.append(amount)
        at_work.set()
        await asyncio.Event().wait()
        return ""

    async with open_client(build_scripted([[call("pay", amount=5)], ["done"]], tools=[pay])) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        await _leave(desk, yes(run, stream=stream), at_work)
        assert code(await desk.post(yes(run))) == (409, "approval_answered")
        assert (await desk.ask("hello", session_id="s")).json()["text"] == "done"
        assert began == [5]


async def test_a_yes_to_a_tool_of_the_model_s_service_was_sent_there_twice() -> None:
    hosted = Content.from_function_call("c", "pay", arguments="{}", hosted=True)
    sent: list[Any] = []

    def script(messages: list[Any]) -> list[Any]:
        given = [one for message in messages for one in message.contents if one.type == "function_approval_response"]
        sent.extend(given)
        if given:
            raise RuntimeError("no answer came")
        return [Content.from_function_approval_request("q", hosted)]

    async with open_client(build_scripted(script)) as desk:
        run = (await desk.ask("pay", session_id="s")).json()
        assert (await desk.post(yes(run))).json()["status"] == "failed"
        assert code(await desk.post(yes(run))) == (409, "approval_answered")
        assert [one.approved for one in sent] == [True]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("approved", [False, True])
async def test_a_run_whose_answer_was_taken_over_did_not_act_on_it(stream: bool, approved: bool) -> None:
    bank = Bank()
    agent, door = _doorway(bank)
    async with open_client(agent) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        door.close()
        first = asyncio.create_task(desk.post(yes(run, approved, stream=stream)))
        await door.entered.wait()
        # As a host does that has the session after the lease of this one has ended.
        other = ApprovalAnswer(approval_id=run["approvals"][0]["id"], approved=approved)
        (question,) = desk.ledger.kept_approvals.values()
        await get_components(desk.host).answers.take(question.owner, [other])
        door.open.set()
        response = await first
        assert "approval_answered" in response.text
        assert "event: completed" not in response.text
        assert stream or response.status_code == 409
        assert bank.paid == []


@pytest.mark.parametrize("leaver", ["red", "blue"])
async def test_an_answer_that_was_not_acted_on_survived_an_unlink(leaver: str) -> None:
    clerk = Clerk("q")
    sides = {"red": (Loud("red"), "ann"), "blue": (Loud("blue"), "ann2")}
    async with open_host([channel for channel, _ in sides.values()], target=clerk.answer) as host:
        await link(host)
        await ask(*sides["blue"], "pay 5")
        decided = Decided(host)
        answering = asyncio.create_task(say_yes(*sides["blue"]))
        await decided.seen.wait()
        channel, name = sides[leaver]
        assert str(await channel.says(name, "/unlink")).startswith("This account is no longer linked.")
        decided.go_on.set()
        with pytest.raises(ConflictError):
            await answering
        for channel, name in sides.values():
            with pytest.raises(RequestError):
                await say_yes(channel, name)
        assert clerk.paid == []


@pytest.mark.parametrize("policy", ["fail", "restart"])
async def test_a_background_run_stopped_after_the_decision_and_its_yes_was_lost(policy: Any) -> None:
    bank = Bank()
    agent, door = _doorway(bank)
    async with open_client(agent, shutdown_grace_seconds=0, on_interrupt=policy) as desk:
        store = desk.ledger._store
        run = (await desk.ask("pay 5", session_id="s")).json()
        door.close()
        accepted = (await desk.post(yes(run, background=True))).json()["id"]
        await door.entered.wait()
    door.open.set()
    async with open_client(agent, store=store, on_interrupt=policy) as desk:
        ended = await desk.wait_for_end(accepted)
        assert (ended["status"], bank.paid) == (("completed", [5]) if policy == "restart" else ("failed", []))
        again = await desk.post(yes(run))
        assert again.status_code == (409 if policy == "restart" else 200)
        assert bank.paid == [5]
