"""A tool that needs a human's word waits for it, and runs at most once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_framework import tool

from frontdesk import ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import InvocationsHost, open_client, until

ALICE = {"x-api-key": "the-key-of-alice"}
BOB = {"x-api-key": "the-key-of-bob-long"}


class Bank:
    """Two tools that want to be asked about first."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def agent(self, *turns: Any, more: Any = ()) -> Any:
        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pays."""
            self.paid.append(amount)
            return f"paid {amount}"

        return build_scripted(list(turns), tools=[pay, *more])


@asynccontextmanager
async def _open_paused(bank: Bank, *, stream: bool = False) -> AsyncIterator[tuple[InvocationsHost, dict[str, Any]]]:
    """A conversation in which the agent wants to pay 5 and has asked."""
    auth = ApiKeyAuth({"alice": ALICE["x-api-key"], "bob": BOB["x-api-key"]})
    agent = bank.agent([call("pay", amount=5)], ["done"], ["more"])
    async with open_client(agent, InvocationsChannel(auth=auth), headers=ALICE) as desk:
        if stream:
            yield desk, (await desk.events("pay 5", session_id="s"))[-1].data
        else:
            yield desk, (await desk.ask("pay 5", session_id="s")).json()


def _answer(run: dict[str, Any], approved: bool, **more: Any) -> dict[str, Any]:
    (question,) = run["approvals"]
    return {"approval": {"id": question["id"], "approved": approved, **more}}


@pytest.mark.parametrize("stream", [False, True])
async def test_the_run_pauses_and_shows_the_question(stream: bool) -> None:
    bank = Bank()
    async with _open_paused(bank, stream=stream) as (desk, run):
        (question,) = run["approvals"]
        assert (question["tool"], question["arguments"]) == ("pay", {"amount": 5})
        assert (await desk.get(run["id"])).json()["approvals"] == [question]
        assert list(desk.ledger.kept_approvals) == [question["id"]]
        assert bank.paid == []


async def test_an_approved_tool_runs_once_and_the_session_goes_on() -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        response = await desk.post(_answer(run, True))
        assert (response.status_code, response.json()["text"], response.json()["session_id"]) == (200, "done", "s")
        assert bank.paid == [5]
        assert (await desk.ask("and?", session_id="s")).json()["text"] == "more"
        assert bank.paid == [5]


async def test_a_rejected_tool_does_not_run() -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        response = await desk.post(_answer(run, False, reason="too much"))
        assert (response.status_code, response.json()["text"]) == (200, "done")
        assert bank.paid == []
        assert "too much" in str([message.to_dict() for message in desk.history("s")])


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
async def test_the_first_answer_counts(first: bool, second: bool) -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        await desk.post(_answer(run, first))
        before = list(bank.paid), len(desk.ledger.writes)
        repeated = await desk.post(_answer(run, second))
        assert (repeated.status_code, repeated.json()["error"]["code"]) == (409, "approval_answered")
        assert (bank.paid, len(desk.ledger.writes)) == before


async def test_of_ten_answers_at_once_one_counts() -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        answers = await asyncio.gather(*(desk.post(_answer(run, True)) for _ in range(10)))
        assert sorted(one.status_code for one in answers) == [200] + [409] * 9
        assert bank.paid == [5]


async def test_a_stranger_s_question_does_not_exist() -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        for known in (False, True):
            foreign = await desk.post(_answer(run, True), headers=BOB)
            unknown = await desk.post({"approval": {"id": "nope", "approved": True}}, headers=BOB)
            assert foreign.status_code == unknown.status_code == 404
            assert foreign.json() == unknown.json()
            if not known:
                await desk.ask("hi", headers=BOB)
        assert bank.paid == []
        assert (await desk.post(_answer(run, True))).status_code == 200
        assert bank.paid == [5]


async def test_an_unknown_question_is_not_there() -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, _):
        before = len(desk.ledger.writes)
        response = await desk.post({"approval": {"id": "nope", "approved": True}})
        assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
        assert (bank.paid, len(desk.ledger.writes)) == ([], before)


@pytest.mark.parametrize("extra", [{"message": "hi"}, {"input": 1}, {"session_id": "t"}, {"options": {}}], ids=str)
async def test_an_answer_comes_alone(extra: dict[str, Any]) -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        response = await desk.post({**_answer(run, True), **extra})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "approval")
        assert bank.paid == []


async def test_two_questions_of_one_turn_are_both_answered() -> None:
    bank = Bank()
    agent = bank.agent([call("pay", "c1", amount=1), call("pay", "c2", amount=2)], ["done"])
    async with open_client(agent) as desk:
        run = (await desk.ask("pay twice", session_id="s")).json()
        for question in run["approvals"]:
            answered = await desk.post(
                {"approval": {"id": question["id"], "approved": question["arguments"]["amount"] == 1}}
            )
            assert (answered.status_code, answered.json()["session_id"]) == (200, "s")
        assert answered.json()["text"] == "done"
        assert bank.paid == [1]


async def test_a_question_outlives_the_turns_after_it() -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        assert (await desk.ask("something else", session_id="s")).json()["text"] == "done"
        response = await desk.post(_answer(run, True))
        assert (response.status_code, response.json()["text"], bank.paid) == (200, "more", [5])
        assert response.json()["session_id"] == "s"


async def test_without_a_session_nobody_can_be_asked() -> None:
    bank = Bank()
    agent = bank.agent([call("pay", amount=5)], ["done"])
    async with open_client(agent, InvocationsChannel(session_mode="disabled")) as desk:
        response = await desk.ask("pay 5")
        assert response.json()["status"] == "failed"
        assert response.json()["error"]["message"]
        assert not desk.ledger.kept_approvals
        assert bank.paid == []


async def test_an_answer_can_be_followed_as_a_stream() -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        response = await desk.post({**_answer(run, True), "stream": True})
        assert response.headers["content-type"].startswith("text/event-stream")
        assert "event: completed" in response.text
        assert "done" in response.text
        assert bank.paid == [5]
        assert (await desk.post(_answer(run, True))).status_code == 409


async def test_an_answer_can_be_worked_on_in_the_background() -> None:
    bank = Bank()
    async with _open_paused(bank) as (desk, run):
        accepted = await desk.post({**_answer(run, True), "background": True})
        assert accepted.status_code == 202
        assert (await desk.wait_for_end(accepted.json()["id"]))["text"] == "done"
        assert bank.paid == [5]


async def test_a_question_asked_in_the_background_is_found_by_polling() -> None:
    bank = Bank()
    async with open_client(bank.agent([call("pay", amount=5)], ["done"])) as desk:
        run = await desk.wait_for_end((await desk.ask("pay 5", background=True, session_id="s")).json()["id"])
        assert (await desk.post(_answer(run, True))).json()["text"] == "done"
        assert bank.paid == [5]


async def test_an_answer_waits_for_the_turn_that_is_running() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    @tool(approval_mode="never_require")
    async def hold() -> str:
        """Holds."""
        began.set()
        await go_on.wait()
        return "held"

    bank = Bank()
    agent = bank.agent([call("pay", amount=5)], [call("hold", "call-2")], ["held on"], ["done"], more=[hold])
    async with open_client(agent) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        other = asyncio.create_task(desk.ask("hold on", session_id="s"))
        await began.wait()
        answered = asyncio.create_task(desk.post(_answer(run, True)))
        await until(lambda: desk.requests == 2)
        assert bank.paid == []
        go_on.set()
        assert (await other).json()["text"] == "held on"
        response = (await answered).json()
        assert (response["text"], response["session_id"], bank.paid) == ("done", "s", [5])


@pytest.mark.parametrize("failing", ["model", "hook"])
async def test_an_approved_tool_is_not_lost_without_a_word(failing: str) -> None:
    """Whatever goes wrong after the answer: the tool has not run twice, and the caller was told."""
    bank = Bank()

    def script(messages: list[Any]) -> list[Any]:
        if any(content.type == "function_result" for message in messages for content in message.contents):
            raise RuntimeError("no network")
        return [call("pay", amount=5)]

    def hook(request: Any, **_: Any) -> Any:
        if failing == "hook" and request.operation == "approval":
            raise RuntimeError("not on Sundays")
        return request

    agent = bank.agent([])
    agent.client._script = script
    async with open_client(agent, InvocationsChannel(run_hook=hook)) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        first = await desk.post(_answer(run, True))
        assert (first.status_code, first.json().get("status")) == (
            (422, None) if failing == "hook" else (200, "failed")
        )
        second = await desk.post(_answer(run, True))
        assert second.is_error
        assert bank.paid == ([] if failing == "hook" else [5])
