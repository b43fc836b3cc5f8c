"""Tasks that wait for answers: approvals and questions of workflows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_framework import Agent, tool

from frontdesk import ApiKeyAuth, ApprovalOptions, ApproverRule
from frontdesk.channels.a2a import A2AChannel
from frontdesk.scripted import ScriptedChatClient
from tests.channels.a2a.caller import (
    EXTENSION,
    Client,
    RefusedError,
    calling,
    data,
    questions_of,
    state_of,
    states,
    text_of,
)
from tests.scenarios.approvers.test_asking import Team, on_telegram, press
from tests.scenarios.cast import call
from tests.scenarios.desk import until
from tests.scenarios.pausing import Inn, Till
from tests.scenarios.telegram.bot import TelegramHost, open_bot
from tests.scenarios.test_decisions import Shop

CALLER = "the-key-of-the-caller"


async def refused(work: Any) -> RefusedError:
    with pytest.raises(RefusedError) as found:
        await work
    return found.value


async def test_an_approval_is_a_text_and_a_data_part() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        assert state_of(task) == "INPUT_REQUIRED"
        assert "pay" in task["status"]["message"]["parts"][0]["text"]
        (question,) = questions_of(task)
        assert (question["kind"], question["tool"], question["arguments"]) == ("approval", "pay", {"amount": 5})
        assert question["digest"]
        assert question["expiresAt"].endswith("Z")
        assert question["schema"]["required"] == ["id", "approved"]
        assert await client.get(task) == task
        card = (await client.http.get("/.well-known/agent-card.json")).json()
        assert EXTENSION in [one["uri"] for one in card["capabilities"]["extensions"]]
        done = await client.send(data(id=question["id"], approved=True, digest=question["digest"]), taskId=task["id"])
        assert (state_of(done), done["id"]) == ("COMPLETED", task["id"])
        assert "done" in text_of(done)
        history = (await client.get(task))["history"]
        assert [one["role"] for one in history if one["role"] == "ROLE_USER"] == ["ROLE_USER"] * 2
    assert shop.paid == [5]


@pytest.mark.parametrize(("word", "paid"), [("yes", [5]), ("No", []), ("approve", [5]), ("ja", [5])])
async def test_one_open_approval_is_answered_by_a_word(word: str, paid: list[int]) -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        done = await client.send(word, taskId=task["id"])
        assert state_of(done) == "COMPLETED"
        error = await refused(client.send(word, taskId=task["id"]))
        assert error.code == -32004
    assert shop.paid == paid


async def test_the_same_answer_counts_once() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        first = await client.send("yes", taskId=task["id"], messageId="answer-1")
        assert await client.send("yes", taskId=task["id"], messageId="answer-1") == first
    assert shop.paid == [5]


async def test_another_text_is_the_next_turn_of_the_task_and_the_question_stays_open() -> None:
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    def reply(messages: Any) -> Any:
        if any(content.type == "function_result" for content in messages[-1].contents):
            return "done"
        return "because" if "why" in messages[-1].text else [call("pay", amount=5)]

    async with calling(Agent(ScriptedChatClient(reply), name="shop", tools=[pay])) as client:
        task = await client.send("pay")
        same = await client.send("why?", taskId=task["id"])
        assert (same["id"], same["contextId"], text_of(same)) == (task["id"], task["contextId"], "because")
        assert questions_of(same) == questions_of(task)
        assert paid == []
        done = await client.send("yes", taskId=task["id"])
        assert (state_of(done), text_of(done), paid) == ("COMPLETED", "becausedone", [5])


async def test_wrong_answers_run_nothing() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        (question,) = questions_of(task)
        for wrong in (
            data(id=question["id"], approved=True, digest="0" * 64),
            data(id="apr_unknown", approved=True),
            data(id=question["id"], approved="perhaps"),
            data(id=question["id"]),
            data(answers=[{"id": question["id"], "approved": True}, {"id": question["id"], "approved": False}]),
        ):
            assert (await refused(client.send(wrong, taskId=task["id"]))).code == -32602, wrong
        assert state_of(await client.get(task)) == "INPUT_REQUIRED"
        assert shop.paid == []
        assert state_of(await client.send("yes", taskId=task["id"])) == "COMPLETED"


def two_calls() -> tuple[Any, list[int]]:
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    def answer(messages: Any) -> Any:
        results = [one for message in messages for one in message.contents if one.type == "function_result"]
        return f"done {len(results)}" if results else [call("pay", "a", amount=1), call("pay", "b", amount=2)]

    return Agent(ScriptedChatClient(answer), name="shop", tools=[pay]), paid


async def test_several_questions_are_answered_at_once() -> None:
    agent, paid = two_calls()
    async with calling(agent) as client:
        task = await client.send("pay")
        first, second = questions_of(task)
        # A word does not say which one it answers.
        answers = [{"id": first["id"], "approved": True}, {"id": second["id"], "approved": False}]
        done = await client.send(data(answers=answers), taskId=task["id"])
        assert state_of(done) == "COMPLETED"
    assert paid == [1]


async def test_several_questions_are_answered_one_by_one() -> None:
    agent, paid = two_calls()
    async with calling(agent) as client:
        task = await client.send("pay")
        first, second = questions_of(task)
        still = await client.send(data(id=first["id"], approved=True), taskId=task["id"])
        assert state_of(still) == "INPUT_REQUIRED"
        assert [one["id"] for one in questions_of(still)] == [second["id"]]
        done = await client.send("yes", taskId=task["id"])
        assert state_of(done) == "COMPLETED"
    assert sorted(paid) == [1, 2]


@asynccontextmanager
async def bank(team: Team, *approvers: Any, **rule: Any) -> AsyncIterator[tuple[Client, TelegramHost]]:
    """A caller of the channel, and people on Telegram who approve what the agent pays."""
    options = ApprovalOptions(tools={"pay": ApproverRule(approvers=[on_telegram(team.bob), *approvers], **rule)})
    channel = A2AChannel(auth=ApiKeyAuth({"caller": CALLER}))
    async with open_bot(team.agent(), fake=team.fake, approvals=options, channels=[channel]) as bot:
        yield Client(bot.http).as_caller(CALLER), bot


async def test_a_question_that_others_decide_stays_theirs_and_the_state_follows_them() -> None:
    team = Team()
    async with bank(team, exclude_requester=True) as (client, bot):
        task = await client.send("pay")
        (question,) = questions_of(task)
        assert question["waitsFor"] == ["Bob"]
        assert "Waiting for: Bob." in task["status"]["message"]["parts"][0]["text"]
        error = await refused(client.send("yes", taskId=task["id"]))
        assert (error.code, error.metadata["code"]) == (-32602, "approval_not_yours")
        assert state_of(await client.get(task)) == "INPUT_REQUIRED"
        async with client.events("SubscribeToTask", {"id": task["id"]}) as events:
            await anext(events)
            await bot.answers(team.chat(team.bob))
            await press(bot, team.bob, "Approve")
            rest = [event async for event in events]
        assert states(rest) == ["WORKING", "COMPLETED"]
        assert state_of(await client.get(task)) == "COMPLETED"
        assert text_of(await client.get(task)) == "done"
    assert team.bank.paid == [5]


async def test_a_requester_who_is_an_approver_decides_too() -> None:
    team = Team()
    async with bank(team, "requester") as (client, _):
        task = await client.send("pay")
        assert questions_of(task)[0]["waitsFor"]
        sent = {"taskId": task["id"], "messageId": "vote-1"}
        assert state_of(await client.send("yes", **sent)) == "COMPLETED"
        assert (await client.call("ListTasks"))["totalSize"] == 1
    assert team.bank.paid == [5]


async def test_a_question_of_a_workflow_is_answered_by_data() -> None:
    inn = Inn()
    async with calling(inn) as client:
        task = await client.send("Ann")
        assert state_of(task) == "INPUT_REQUIRED"
        (question,) = questions_of(task)
        assert (question["kind"], question["data"]) == ("question", {"room": "attic", "price": 90})
        assert question["schema"]["properties"]["accepted"] == {"title": "Accepted", "type": "boolean"}
        value = {"accepted": True, "nights": 2}
        done = await client.send(data(id=question["id"], value=value), taskId=task["id"])
        assert state_of(done) == "COMPLETED"
        assert "takes the attic for 2" in text_of(done)
        assert (await client.get(task))["id"] == task["id"]
    assert inn.ledger == ["attic 2"]


async def test_an_approval_in_a_workflow_is_answered_by_a_word() -> None:
    till = Till()
    async with calling(till) as client:
        task = await client.send("pay")
        assert questions_of(task)[0]["tool"] == "pay"
        assert state_of(await client.send("yes", taskId=task["id"])) == "COMPLETED"
    assert till.paid == [5]


async def test_a_waiting_task_is_canceled_and_listed_by_its_state() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        listed = await client.call("ListTasks", {"status": "TASK_STATE_INPUT_REQUIRED"})
        assert ([one["id"] for one in listed["tasks"]], listed["totalSize"]) == ([task["id"]], 1)
        assert (await client.call("ListTasks", {"status": "TASK_STATE_COMPLETED"}))["tasks"] == []
        assert state_of(await client.call("CancelTask", {"id": task["id"]})) == "CANCELED"
        assert (await refused(client.send("yes", taskId=task["id"]))).code == -32004
        listed = await client.call("ListTasks", {"status": "TASK_STATE_CANCELED"})
        assert listed["totalSize"] == 1
    assert shop.paid == []


async def test_a_task_of_several_runs_is_listed_once() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        await client.send("yes", taskId=task["id"])
        listed = await client.call("ListTasks", {"historyLength": 10, "includeArtifacts": True})
        assert ([one["id"] for one in listed["tasks"]], listed["totalSize"]) == ([task["id"]], 1)
        assert listed["tasks"][0] == await client.get(task)


async def test_an_answer_that_is_not_waited_for_goes_on() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        sent = await client.send("yes", taskId=task["id"], configuration={"returnImmediately": True})
        assert sent["id"] == task["id"]

        async def is_over() -> bool:
            return state_of(await client.get(task)) == "COMPLETED"

        await until(is_over)
    assert shop.paid == [5]
