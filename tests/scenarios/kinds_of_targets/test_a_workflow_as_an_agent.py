"""`workflow.as_agent()`: what it asks, what it is shown as, and what becomes of it when something is wrong."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_framework import (
    ContextProvider,
    Executor,
    HistoryProvider,
    InMemoryCheckpointStorage,
    Message,
    WorkflowAgent,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    handler,
    response_handler,
)

from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.scenarios.desk import InvocationsHost, open_client
from tests.scenarios.kinds_of_targets.kinds import Mind
from tests.scenarios.pausing import Choice, Offer
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client as open_responses

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
YES = {"accepted": True, "nights": 2}


class Clerk(Executor):
    """Hears a conversation, offers a room, and asks about breakfast where two things are to be asked."""

    def __init__(self, inn: "Inn") -> None:
        super().__init__("clerk")
        self.inn = inn
        self.guest = ""

    @handler
    async def serve(self, said: list[Message], context: WorkflowContext[str, Any]) -> None:
        self.inn.heard.append([message.text for message in said if message.text])
        self.guest = said[-1].text
        if self.guest.startswith("hello"):
            await context.yield_output(f"hello {len(said)}")
        elif self.guest.startswith("all"):
            await context.yield_output([*said, Message("assistant", ["that was all"])])
        else:
            await context.request_info(Offer("attic", 90), Choice)
        if self.guest.startswith("two"):
            await context.request_info({"question": "breakfast?"}, str)

    @response_handler
    async def chosen(self, offer: Offer, choice: Choice, context: WorkflowContext[str, str]) -> None:
        self.inn.ledger.append(f"{self.guest}: {offer.room} {choice.nights}")
        await context.yield_output(f"{self.guest} takes the {offer.room} for {choice.nights}")

    @response_handler
    async def fed(self, asked: dict, answer: str, context: WorkflowContext[str, str]) -> None:
        self.inn.ledger.append(answer)
        await context.yield_output(f"breakfast: {answer}")

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"guest": self.guest}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.guest = state["guest"]


class Inn:
    """Builds the agent, and knows what has really been done and heard."""

    def __init__(self, **options: Any) -> None:
        self.ledger: list[str] = []
        self.heard: list[list[str]] = []
        self.options = options

    def __call__(self) -> WorkflowAgent:
        return (
            WorkflowBuilder(name="inn", start_executor=Clerk(self), output_from="all").build().as_agent(**self.options)
        )


async def _say(desk: InvocationsHost, words: Any = None, *, stream: bool = False, **body: Any) -> dict[str, Any]:
    sent = {"session_id": "s", "stream": stream, **({} if words is None else {"message": words}), **body}
    answer = await desk.post(sent)
    assert answer.status_code == 200, answer.text
    if not stream:
        return answer.json()
    return json.loads(answer.text.strip().split("data: ")[-1])


@STREAMS
async def test_a_request_waits_as_a_request_does_and_its_answer_is_typed(stream: bool) -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        await _say(desk, "hello", stream=stream)
        asked = await _say(desk, "anna", stream=stream)
        (request,) = asked["requests"]
        assert (request["data"], request["response_type"]) == ({"room": "attic", "price": 90}, "Choice")
        assert (asked["text"], asked["approvals"]) == ("", [])
        assert (await desk.get(asked["id"])).json()["requests"] == [request]
        wrong = await desk.post({"session_id": "s", "responses": {request["id"]: "certainly"}})
        assert (wrong.status_code, inn.ledger) == (400, [])
        told = await _say(desk, responses={request["id"]: YES}, stream=stream)
        assert (told["text"], told["requests"]) == ("anna takes the attic for 2", [])
        again = await desk.post({"session_id": "s", "responses": {request["id"]: YES}})
        assert (again.status_code, inn.ledger) == (400, ["anna: attic 2"])
        assert (await _say(desk, "hello again", stream=stream))["text"].startswith("hello")
        # What was asked and answered is a call and its result, and no words.
        assert inn.heard[-1] == ["hello", "hello 1", "anna", "anna takes the attic for 2", "hello again"]


@STREAMS
async def test_of_two_requests_one_is_answered_and_the_other_is_shown_again(stream: bool) -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        first, second = (await _say(desk, "two guests", stream=stream))["requests"]
        told = await _say(desk, responses={first["id"]: YES}, stream=stream)
        assert (told["text"], told["requests"]) == ("two guests takes the attic for 2", [second])
        waiting = await desk.ask("hello?", session_id="s")
        assert (waiting.status_code, waiting.json()["error"]["code"]) == (409, "answer_needed")
        assert (await _say(desk, responses={second["id"]: "eggs"}, stream=stream))["text"] == "breakfast: eggs"
        assert (await _say(desk, "hello"))["text"].startswith("hello")
    assert inn.ledger == ["two guests: attic 2", "eggs"]


@STREAMS
async def test_another_callers_session_does_not_wait(stream: bool) -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        asked = [await _say(desk, name, session_id=name, stream=stream) for name in ("anna", "ben")]
        assert (await _say(desk, "hello", session_id="cleo", stream=stream))["text"] == "hello 1"
        (annas,), (bens,) = (one["requests"] for one in asked)
        foreign = await desk.post({"session_id": "ben", "responses": {annas["id"]: YES}})
        assert (foreign.status_code, inn.ledger) == (400, [])
        for name, request in (("ben", bens), ("anna", annas)):
            told = await _say(desk, session_id=name, responses={request["id"]: YES}, stream=stream)
            assert told["text"] == f"{name} takes the attic for 2"


async def test_on_the_responses_api_a_request_is_a_call_and_its_output_the_answer() -> None:
    for how in ("create", "stream"):
        inn = Inn()
        async with open_responses(inn) as desk:
            customer = AsyncCustomer(desk)

            async def say(said: Any, how: str = how, customer: Any = customer, **more: Any) -> Any:
                made = await getattr(customer, how)(said, **more)
                return made if how == "create" else made[1]

            asked = await say("anna")
            (item,) = asked.output
            assert (item.type, item.name, asked.status) == ("function_call", "request_info", "completed")
            assert json.loads(item.arguments) == {
                "request_id": item.call_id,
                "data": {"room": "attic", "price": 90},
                "response_type": "Choice",
            }
            assert [one.arguments for one in (await customer.retrieve(asked.id)).output] == [item.arguments]
            output = {"type": "function_call_output", "call_id": item.call_id, "output": json.dumps(YES)}
            told = await say([output], previous_response_id=asked.id)
            assert told.output_text == "anna takes the attic for 2"
            then = await say("hello", previous_response_id=told.id)
            assert then.output_text.startswith("hello")
            assert inn.heard[-1] == ["anna", "anna takes the attic for 2", "hello"]
            branch = await say([output], previous_response_id=asked.id)
            assert branch.output_text == "anna takes the attic for 2"


async def test_on_the_responses_api_an_approval_is_asked_and_answered() -> None:
    mind = Mind()
    async with open_responses(lambda: mind.builder().build().as_agent()) as desk:
        customer = AsyncCustomer(desk)
        first = await customer.create("hi")
        asked = await customer.create("pay 5", previous_response_id=first.id)
        (item,) = asked.output
        answer = {"type": "mcp_approval_response", "approval_request_id": item.id, "approve": True}
        _, told = await customer.stream([answer], previous_response_id=asked.id)
        assert (item.type, told.output_text, mind.paid) == ("mcp_approval_request", "it is paid", [5])
        then = await customer.create("more", previous_response_id=told.id)
        assert then.output_text == "you said more"
    assert mind.heard[-1][:4] == ["hi", "you said hi", "pay 5", "it is paid"]


async def test_a_no_with_a_reason_goes_on_without_the_tool() -> None:
    mind = Mind()
    async with open_client(lambda: mind.builder().build().as_agent()) as desk:
        (question,) = (await _say(desk, "pay 5"))["approvals"]
        answer = await desk.post({"approval": {"id": question["id"], "approved": False, "reason": "too much"}})
        assert (answer.status_code, mind.paid) == (200, [])
        assert (await _say(desk, "so be it"))["text"] == "you said so be it"
        assert "too much" in str([message.to_dict() for message in desk.history("s")])
        assert any("rejected by user: too much" in words for words in mind.results)


async def test_a_run_in_the_background_pauses_and_is_answered() -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        queued = await desk.post({"session_id": "s", "message": "anna", "background": True})
        asked = await desk.wait_for_end(queued.json()["id"])
        (request,) = asked["requests"]
        queued = await desk.post({"session_id": "s", "responses": {request["id"]: YES}, "background": True})
        assert (await desk.wait_for_end(queued.json()["id"]))["text"] == "anna takes the attic for 2"
        assert (await _say(desk, "hello"))["text"].startswith("hello")


async def test_a_conversation_that_is_handed_out_whole_is_not_kept_twice() -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        for words in ("hello", "all of it", "all again", "hello"):
            await _say(desk, words)
    assert inn.heard[-1] == ["hello", "hello 1", "all of it", "that was all", "all again", "that was all", "hello"]


async def test_turns_that_do_not_pause_write_no_checkpoint(tmp_path: Path) -> None:
    saved: list[WorkflowCheckpoint] = []

    class Watched(InMemoryCheckpointStorage):
        async def save(self, checkpoint: WorkflowCheckpoint) -> str:
            saved.append(checkpoint)
            return await super().save(checkpoint)

    inn = Inn()
    async with open_client(inn, checkpoint_location=Watched()) as desk:
        for _ in range(3):
            await _say(desk, "hello")
        assert saved == []
        (request,) = (await _say(desk, "anna"))["requests"]
        await _say(desk, responses={request["id"]: YES})
        for _ in range(3):
            await _say(desk, "hello")
    pause, end = saved
    assert (list(pause.pending_request_info_events), end.state, end.pending_request_info_events) == (
        [request["id"]],
        {},
        {},
    )


@STREAMS
async def test_a_pause_that_cannot_be_saved_fails_its_turn(stream: bool) -> None:
    class Full(InMemoryCheckpointStorage):
        async def save(self, checkpoint: WorkflowCheckpoint) -> str:
            raise OSError("disk full")

    inn = Inn()
    async with open_client(inn, checkpoint_location=Full()) as desk:
        answer = await desk.ask("anna", session_id="s", stream=stream)
        assert "could not be saved" in answer.text
        assert "disk full" not in answer.text
        assert (await _say(desk, "hello"))["text"].startswith("hello")


@STREAMS
async def test_without_a_session_nothing_can_wait(stream: bool) -> None:
    async with open_client(Inn(), InvocationsChannel(session_mode="disabled")) as desk:
        refused = await desk.ask("anna", stream=stream)
        assert "without a session" in refused.text
        assert (await desk.ask("hello")).json()["text"] == "hello 1"


@pytest.mark.parametrize("more", [{"message": "hello"}, {}])
async def test_it_has_no_checkpoint_to_go_back_to(more: dict[str, Any]) -> None:
    inn = Inn()
    async with open_client(inn) as desk:
        asked = await _say(desk, "anna")
        refused = await desk.post({"session_id": "s", "checkpoint_id": asked["checkpoint_id"], **more})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "checkpoint_id")


async def test_what_it_cannot_take_is_refused_by_name() -> None:
    async with open_client(Inn()) as desk:
        refused = await desk.ask("hello", options={"temperature": 1})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "temperature")


async def test_its_document_says_that_it_takes_answers() -> None:
    async with open_client(Inn()) as desk:
        document = (await desk.client.get("/invocations/docs/openapi.json")).json()
    bodies = document["components"]["schemas"]["InvocationBody"]["oneOf"]
    assert [one["required"][0] for one in bodies] == ["message", "input", "approval", "responses"]
    assert not any("checkpoint_id" in one["properties"] for one in bodies)


class Remark(ContextProvider):
    """Adds a remark to what is said, and notes each end."""

    def __init__(self) -> None:
        super().__init__("remark")
        self.ends: list[str] = []

    async def before_run(self, *, context: Any, **_: Any) -> None:
        context.extend_messages(self, [Message("user", ["by the way"])])

    async def after_run(self, *, context: Any, **_: Any) -> None:
        self.ends.append(context.response.text)


async def test_providers_of_its_own_are_run_and_do_not_disturb_an_answer() -> None:
    remark = Remark()
    inn = Inn(context_providers=[remark])
    async with open_client(inn) as desk:
        (request,) = (await _say(desk, "anna"))["requests"]
        assert (await _say(desk, responses={request["id"]: YES}))["text"] == "anna takes the attic for 2"
        await _say(desk, "hello")
    assert remark.ends == ["", "anna takes the attic for 2", "hello 6"]
    assert inn.heard[0] == ["by the way", "anna"]


class Diary(HistoryProvider):
    """A history of the operator's own."""

    def __init__(self) -> None:
        super().__init__("diary")
        self.pages: dict[str | None, list[Message]] = {}

    async def get_messages(self, session_id: str | None, **_: Any) -> list[Message]:
        return list(self.pages.get(session_id, ()))

    async def save_messages(self, session_id: str | None, messages: Any, **_: Any) -> None:
        self.pages.setdefault(session_id, []).extend(messages)


async def test_a_history_of_its_own_is_the_only_one() -> None:
    inn = Inn(context_providers=[Diary()])
    async with open_client(inn) as desk:
        assert any("history provider of its own" in warning for warning in desk.host.warnings)
        for words in ("hello", "hello b", "hello c"):
            await _say(desk, words)
    assert inn.heard[-1] == ["hello", "hello 1", "hello b", "hello 3", "hello c"]


async def test_a_request_is_answered_after_a_restart_from_the_state_directory(tmp_path: Path) -> None:
    inn = Inn()
    options: Any = {"checkpoint_location": tmp_path / "checkpoints"}
    async with open_client(inn, store=SqliteStateStore(tmp_path / "a.db"), **options) as desk:
        assert desk.host.warnings == []
        first, second = (await _say(desk, "two guests"))["requests"]
    async with open_client(inn, store=SqliteStateStore(tmp_path / "a.db"), **options) as desk:
        assert (await _say(desk, responses={first["id"]: YES}))["requests"] == [second]
    async with open_client(inn, store=SqliteStateStore(tmp_path / "a.db"), **options) as desk:
        assert (await _say(desk, responses={second["id"]: "eggs"}))["text"] == "breakfast: eggs"
        assert (await _say(desk, "hello"))["text"].startswith("hello")
    assert inn.ledger == ["two guests: attic 2", "eggs"]


async def test_it_can_be_left_in_the_middle_and_the_next_one_is_well() -> None:
    inn = Inn()
    async with open_client(inn, channels=[InvocationsChannel(), ResponsesChannel()]) as desk:
        async with desk.open_stream("anna", session_id="s") as (response, _):
            assert isinstance(response, httpx.Response)
        assert (await _say(desk, "hello", session_id="t"))["text"] == "hello 1"
