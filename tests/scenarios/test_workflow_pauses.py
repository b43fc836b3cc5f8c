"""A workflow that asks waits for its answer, and goes on from where it stood."""

import asyncio
import warnings
from typing import Any

import pytest
from agent_framework import (
    AgentExecutor,
    FunctionTool,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowCheckpoint,
    workflow,
)

from frontdesk import ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.models.request import ChannelRequest, ClientOutput
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import PATH, InvocationsHost, open_client, parse_events
from tests.scenarios.pausing import Inn, Till

YES = {"accepted": True, "nights": 2}
ALICE = {"x-api-key": "the-key-of-alice"}
BOB = {"x-api-key": "the-key-of-bob-long"}


async def _say(desk: InvocationsHost, way: str, body: dict[str, Any]) -> dict[str, Any]:
    """What a request comes to, whichever way it is made."""
    if way == "streamed":
        return (await desk.events(**body) if "message" in body else await _events(desk, body))[-1].data
    if way == "background":
        queued = (await desk.post({**body, "background": True})).json()
        return await desk.wait_for_end(queued["id"])
    return (await desk.post(body)).json()


async def _events(desk: InvocationsHost, body: dict[str, Any]) -> list[Any]:
    async with desk.client.stream("POST", PATH, json={**body, "stream": True}) as response:
        return [event async for event in parse_events(response.aiter_lines())]


def _answer(run: dict[str, Any], *values: Any, session_id: str = "s", **more: Any) -> dict[str, Any]:
    asked = [one["id"] for one in run["requests"]]
    return {"responses": dict(zip(asked, values, strict=False)), "session_id": session_id, **more}


@pytest.mark.parametrize("way", ["whole", "streamed", "background"])
class TestQuestions:
    async def test_the_run_pauses_and_the_answer_takes_it_further(self, way: str) -> None:
        inn = Inn()
        async with open_client(inn) as desk:
            run = await _say(desk, way, {"message": "anna", "session_id": "s"})
            (asked,) = run["requests"]
            assert (asked["data"], asked["response_type"]) == ({"room": "attic", "price": 90}, "Choice")
            assert (run["status"], run["text"]) == ("completed", "welcome anna")
            assert (await desk.get(run["id"])).json()["requests"] == [asked]
            told = await _say(desk, way, _answer(run, YES))
            assert told["outputs"] == ["anna takes the attic for 2", "bags for 2 nights"]
            assert (told["requests"], inn.ledger, inn.lift) == ([], ["attic 2"], ["2 nights"])

    async def test_the_session_remembers_what_its_executors_do(self, way: str) -> None:
        async with open_client(Inn()) as desk:
            for guest in ("anna", "ben"):
                run = await _say(desk, way, {"message": guest, "session_id": "s"})
                await _say(desk, way, _answer(run, YES))
            assert (await _say(desk, way, {"message": "who?", "session_id": "s"}))["text"] == "served anna, ben"
            assert (await _say(desk, way, {"message": "who?", "session_id": "t"}))["text"] == "served nobody"

    async def test_an_approval_inside_it_is_one_like_any_other(self, way: str) -> None:
        till = Till()
        async with open_client(till) as desk:
            run = await _say(desk, way, {"message": "pay 5", "session_id": "s"})
            (question,) = run["approvals"]
            assert (question["tool"], question["arguments"]) == ("pay", {"amount": 5})
            assert (run["requests"], till.paid) == ([], [])
            answer = {"approval": {"id": question["id"], "approved": True}}
            assert (await _say(desk, way, answer))["text"] == "done"
            assert till.paid == [5]
            again = await desk.post(answer)
            assert (again.status_code, again.json()["error"]["code"], till.paid) == (409, "approval_answered", [5])


async def test_the_reason_of_a_no_reaches_an_agent_inside_a_workflow() -> None:
    till = Till()
    async with open_client(till) as desk:
        (question,) = (await desk.ask("pay 5", session_id="s")).json()["approvals"]
        answer = {"id": question["id"], "approved": False, "reason": "too much for flowers"}
        assert (await desk.post({"approval": answer})).json()["text"] == "done"
        assert till.paid == []
        heard = [content for message in till.agent.client.seen[-1] for content in message.contents]
        (result,) = [content.result for content in heard if content.type == "function_result"]
        assert "rejected by user: too much for flowers" in str(result)


async def test_some_of_several_requests_can_be_answered_and_the_rest_still_wait() -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        run = (await desk.ask("two guests", session_id="s")).json()
        first, second = run["requests"]
        told = (await desk.post(_answer(run, YES))).json()
        assert [one["id"] for one in told["requests"]] == [second["id"]]
        again = await desk.post({"responses": {first["id"]: YES}, "session_id": "s"})
        assert (again.status_code, again.json()["error"]["code"]) == (400, "invalid_request")
        told = (await desk.post({"responses": {second["id"]: "eggs"}, "session_id": "s"})).json()
        assert (told["text"], told["requests"]) == ("breakfast: eggs", [])
        assert inn.ledger == ["attic 2", "eggs"]


async def test_all_of_several_requests_can_be_answered_at_once() -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        run = (await desk.ask("two guests", session_id="s")).json()
        told = (await desk.post(_answer(run, YES, "eggs"))).json()
        assert (told["requests"], sorted(inn.ledger)) == ([], ["attic 2", "eggs"])


async def test_two_approvals_of_one_turn_are_answered_apart() -> None:
    till = Till([call("pay", "c1", amount=5), call("pay", "c2", amount=7)], ["done"])
    async with open_client(till) as desk:
        run = (await desk.ask("pay twice", session_id="s")).json()
        first, second = run["approvals"]
        told = (await desk.post({"approval": {"id": first["id"], "approved": False}})).json()
        assert [one["id"] for one in told["approvals"]] == [second["id"]]
        assert till.paid == []
        told = (await desk.post({"approval": {"id": second["id"], "approved": True}})).json()
        assert (told["text"], told["approvals"], till.paid) == ("done", [], [second["arguments"]["amount"]])


@pytest.mark.parametrize(
    "value",
    ["yes", {"accepted": "perhaps"}, {"nights": 2}, 7, None, [], {"accepted": True, "nights": "two"}],
)
async def test_an_answer_of_another_type_is_refused_and_nothing_is_used_up(value: Any) -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        run = (await desk.ask("anna", session_id="s")).json()
        written = len(desk.ledger.writes)
        refused = await desk.post(_answer(run, value))
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_request")
        assert "Choice" in refused.json()["error"]["message"]
        assert (len(desk.ledger.writes), inn.ledger) == (written, [])
        assert (await desk.post(_answer(run, YES))).status_code == 200


async def test_an_approval_beside_an_answer_that_does_not_fit_is_not_used_up() -> None:
    def both(request: ChannelRequest, **_: Any) -> ChannelRequest:
        if not request.approvals:
            return request
        return request.replace(client_outputs=(ClientOutput(call_id="nothing", output=1),))

    till = Till()
    async with open_client(till, InvocationsChannel(run_hook=both)) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        (question,) = run["approvals"]
        refused = await desk.post({"approval": {"id": question["id"], "approved": True}})
        assert (refused.status_code, till.paid) == (400, [])
        assert desk.ledger.kept_approvals[question["id"]].status == "pending"
        assert not [name for name, _ in desk.ledger.writes if name == "decide_approval"]


async def test_a_message_to_a_session_that_waits_is_told_what_for() -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        run = (await desk.ask("anna", session_id="s")).json()
        for stream in (False, True):
            refused = await desk.ask("hello?", session_id="s", stream=stream)
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "answer_needed")
            assert run["requests"][0]["id"] in refused.json()["error"]["message"]
        assert desk.list_texts("s") == ["anna", "welcome anna", ""]
        told = (await desk.post(_answer(run, YES))).json()
        assert told["status"] == "completed"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"responses": {"nothing": 1}, "session_id": "s"}, 400, "input"),
        ({"responses": {"nothing": 1}, "session_id": "unknown"}, 400, "input"),
        ({"responses": {"nothing": 1}}, 400, "session_id"),
        ({"responses": {}, "session_id": "s"}, 400, "responses"),
        ({"responses": {"x": 1}, "message": "x", "session_id": "s"}, 400, "responses"),
        ({"responses": {"x": 1}, "approval": {"id": "a", "approved": True}}, 400, "approval"),
        ({"responses": [], "session_id": "s"}, 400, "responses"),
        ({"checkpoint_id": "nothing", "session_id": "s"}, 404, "checkpoint_id"),
        ({"checkpoint_id": "nothing", "message": "x", "session_id": "s"}, 404, "checkpoint_id"),
        ({"checkpoint_id": "../x", "session_id": "s"}, 400, "checkpoint_id"),
        ({"checkpoint_id": "x" * 256, "session_id": "s"}, 404, "checkpoint_id"),
        ({"checkpoint_id": "nothing"}, 400, "session_id"),
    ],
)
async def test_an_answer_to_nothing_is_refused(body: Any, status: int, param: str) -> None:
    async with open_client(Inn()) as desk:
        await desk.ask("who?", session_id="s")
        runs = len(desk.runs())
        refused = await desk.post(body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (status, param)
        assert len(desk.runs()) == runs


async def test_an_answer_from_somebody_else_finds_nothing() -> None:
    inn = Inn()
    auth = ApiKeyAuth({"alice": ALICE["x-api-key"], "bob": BOB["x-api-key"]})
    async with open_client(inn, InvocationsChannel(auth=auth), headers=ALICE) as desk:
        run = (await desk.ask("anna", session_id="s")).json()
        foreign = await desk.post(_answer(run, YES), headers=BOB)
        assert (foreign.status_code, inn.ledger) == (400, [])
        body = {"checkpoint_id": run["checkpoint_id"], "message": "who?", "session_id": "s"}
        assert (await desk.post(body, headers=BOB)).status_code == 404
        mine = {**body, "session_id": "another"}
        assert (await desk.post(mine)).status_code == 404
        assert (await desk.post(_answer(run, YES))).status_code == 200


async def test_one_answer_counts_of_two_that_come_at_once() -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        run = (await desk.ask("anna", session_id="s")).json()
        answers = await asyncio.gather(*(desk.post(_answer(run, YES)) for _ in range(4)))
        assert sorted(one.status_code for one in answers) == [200, 400, 400, 400]
        assert inn.ledger == ["attic 2"]


class TestNamedCheckpoints:
    async def test_a_conversation_goes_back_to_one_of_its_own(self) -> None:
        async with open_client(Inn()) as desk:
            start = (await desk.ask("who?", session_id="s")).json()
            run = (await desk.ask("anna", session_id="s")).json()
            await desk.post(_answer(run, YES))
            assert (await desk.ask("who?", session_id="s")).json()["text"] == "served anna"
            back = await desk.ask("who?", session_id="s", checkpoint_id=start["checkpoint_id"])
            assert back.json()["text"] == "served nobody"
            assert (await desk.ask("who?", session_id="s")).json()["text"] == "served nobody"

    async def test_a_question_is_asked_again_and_answered_in_another_way(self) -> None:
        inn = Inn()
        async with open_client(inn) as desk:
            run = (await desk.ask("anna", session_id="s")).json()
            await desk.post(_answer(run, YES))
            again = (await desk.post({"checkpoint_id": run["checkpoint_id"], "session_id": "s"})).json()
            assert again["requests"] == run["requests"]
            told = (await desk.post(_answer(again, {"accepted": False}))).json()
            assert told["outputs"][0] == "pity"

    async def test_a_run_that_failed_is_resumed_where_it_stopped(self) -> None:
        inn = Inn()
        inn.lift.append("broken")
        async with open_client(inn) as desk:
            run = (await desk.ask("anna", session_id="s")).json()
            failed = await desk.post(_answer(run, YES))
            assert (failed.status_code, failed.json()["status"]) == (200, "failed")
            found = (await desk.get(failed.headers["x-agent-invocation-id"])).json()
            assert (found["status"], inn.ledger) == ("failed", ["attic 2"])
            refused = await desk.ask("x", session_id="s", checkpoint_id=found["checkpoint_id"])
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "checkpoint_id")
            inn.lift.clear()
            resumed = (await desk.post({"checkpoint_id": found["checkpoint_id"], "session_id": "s"})).json()
            # The clerk had done its part, and does not do it again.
            assert (resumed["outputs"], inn.ledger, inn.lift) == (["bags for 2 nights"], ["attic 2"], ["2 nights"])

    async def test_a_failed_answer_can_be_given_again(self) -> None:
        inn = Inn()
        inn.lift.append("broken")
        async with open_client(inn) as desk:
            run = (await desk.ask("anna", session_id="s")).json()
            assert (await desk.post(_answer(run, YES))).json()["status"] == "failed"
            inn.lift.clear()
            assert (await desk.post(_answer(run, YES))).json()["status"] == "completed"

    async def test_a_run_that_has_ended_needs_something_said(self) -> None:
        async with open_client(Inn()) as desk:
            run = (await desk.ask("who?", session_id="s")).json()
            refused = await desk.post({"checkpoint_id": run["checkpoint_id"], "session_id": "s"})
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "checkpoint_id")

    async def test_only_a_workflow_has_them(self) -> None:
        async def echo(text: str) -> str:
            return text

        async with open_client(echo) as desk:
            refused = await desk.ask("x", session_id="s", checkpoint_id="c")
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "checkpoint_id")


class TestLost:
    async def test_a_checkpoint_that_is_gone_is_warned_of_and_a_message_starts_anew(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        storage = InMemoryCheckpointStorage()
        async with open_client(Inn(), checkpoint_location=storage) as desk:
            run = (await desk.ask("anna", session_id="s")).json()
            await desk.post(_answer(run, YES))
            storage._checkpoints.clear()
            caplog.clear()
            assert (await desk.ask("who?", session_id="s")).json()["text"] == "served nobody"
            assert "restored nothing" in caplog.text

    async def test_an_answer_to_a_pause_that_is_gone_is_a_conflict(self) -> None:
        storage = InMemoryCheckpointStorage()
        async with open_client(Inn(), checkpoint_location=storage) as desk:
            run = (await desk.ask("anna", session_id="s")).json()
            storage._checkpoints.clear()
            lost = await desk.post(_answer(run, YES))
            assert (lost.status_code, lost.json()["error"]["code"]) == (409, "checkpoint_lost")

    async def test_a_pause_that_could_not_be_saved_fails_the_turn(self, caplog: pytest.LogCaptureFixture) -> None:
        class Full(InMemoryCheckpointStorage):
            async def save(self, checkpoint: WorkflowCheckpoint) -> str:
                raise OSError("disk full")

        async with open_client(Inn(), checkpoint_location=Full()) as desk:
            failed = await desk.ask("anna", session_id="s")
            assert (failed.json()["status"], failed.json()["error"]["code"]) == ("failed", "target_failed")
            assert "could not be saved" in failed.json()["error"]["message"]
            assert "disk full" not in failed.text
            assert "disk full" in caplog.text
            # Nothing waits, so nothing is in the way of the next message.
            assert (await desk.ask("who?", session_id="s")).json()["text"] == "served nobody"

    async def test_a_storage_of_the_operators_own_keeps_everything(self) -> None:
        storage = InMemoryCheckpointStorage()
        async with open_client(Inn(), checkpoint_location=storage) as desk:
            for guest in ("anna", "ben"):
                run = (await desk.ask(guest, session_id=guest)).json()
                assert (await desk.post(_answer(run, YES, session_id=guest))).status_code == 200
        assert len(await storage.list_checkpoint_ids(workflow_name="inn")) > 6


@pytest.mark.parametrize("body", [{"session_mode": "disabled"}, {"store": False}])
async def test_a_workflow_cannot_wait_without_a_session(body: dict[str, Any]) -> None:
    def without(request: Any, **_: Any) -> Any:
        return request.replace(**body)

    for target in (Inn(), Till()):
        async with open_client(target, InvocationsChannel(run_hook=without)) as desk:
            failed = (await desk.ask("anna")).json()
            assert (failed["status"], failed["error"]["code"]) == ("failed", "session_required")


async def test_a_used_up_approval_does_not_leave_the_session_stuck(caplog: pytest.LogCaptureFixture) -> None:
    def fails(messages: Any) -> Any:
        if len(messages) == 1:
            return [call("pay", amount=5)]
        raise RuntimeError("no such model")

    till = Till()
    till()
    till.agent.client._script = fails
    async with open_client(till) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        assert (await desk.ask("hello?", session_id="s")).status_code == 409
        answer = {"approval": {"id": run["approvals"][0]["id"], "approved": True}}
        failed = await desk.post(answer)
        assert failed.json()["status"] == "failed"
        assert (await desk.post(answer)).status_code == 409
        # Nor does it count again where its run has stopped.
        stopped = (await desk.get(failed.headers["x-agent-invocation-id"])).json()["checkpoint_id"]
        again = await desk.post({"checkpoint_id": stopped, "session_id": "s"})
        assert (again.status_code, again.json()["error"]["code"]) == (409, "approval_answered")
        assert till.paid == [5]
        till.agent.client._script = lambda _: ["fine"]
        assert (await desk.ask("hello?", session_id="s")).json()["text"] == "fine"
        assert "starting anew" in caplog.text


async def test_a_functional_workflow_pauses_too() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked: list[str] = []

        @workflow(name="form")
        async def form(text: str, ctx: Any) -> str:
            name = await ctx.request_info({"question": "name?"}, str)
            age = await ctx.request_info({"question": "age?"}, int)
            asked.append(text)
            return f"{text} {name} {age}"

        async with open_client(form) as desk:
            for greeting in ("hello", "again"):
                run = (await desk.ask(greeting, session_id="s")).json()
                assert [one["data"] for one in run["requests"]] == [{"question": "name?"}]
                run = (await desk.post(_answer(run, "anna"))).json()
                assert [one["response_type"] for one in run["requests"]] == ["int"]
                assert (await desk.post(_answer(run, "many"))).status_code == 400
                run = (await desk.post(_answer(run, 7))).json()
                assert run["text"] == f"{greeting} anna 7"
        assert asked == ["hello", "again"]


async def test_a_function_that_an_agent_inside_calls_and_the_client_has_gets_its_result() -> None:
    place = {"type": "object", "properties": {"place": {"type": "string"}}}
    look = FunctionTool(name="look", description="Looks.", func=None, input_model=place)
    agent = build_scripted([[call("look", place="garden")], ["there is a cat"]], tools=[look])

    def build() -> Any:
        executor = AgentExecutor(agent, id="clerk")
        return WorkflowBuilder(name="inn", start_executor=executor, output_from=[executor]).build()

    async with open_client(build) as desk:
        run = (await desk.ask("what is there?", session_id="s")).json()
        assert run["requests"][0]["data"]["name"] == "look"
        assert (await desk.post(_answer(run, "a cat"))).json()["text"] == "there is a cat"
        result = agent.client.seen[-1][-1].contents[0]
        assert (result.type, result.call_id, result.result) == ("function_result", "call-1", "a cat")
