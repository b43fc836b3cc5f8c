"""Responses one after another on one WebSocket, and what the connection remembers between them."""

from typing import Any

import pytest
from agent_framework import Message

from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.models.request import ChannelRequest
from frontdesk_testing import GatedAgent
from tests.scenarios.cast import two_voices
from tests.scenarios.desk import until
from tests.scenarios.responses.cast import Till, agent, build_answering, call, parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import ResponsesHost, open_client
from tests.scenarios.responses.sockets import LAST, Line, dial, extract_text

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}


def listener() -> Any:
    """An agent that says what it has heard from the user."""
    return build_answering(lambda messages: ["heard ", ", ".join(one.text for one in messages if one.role == "user")])


@pytest.mark.parametrize("path", ["/responses", "/v1/responses"])
async def test_responses_come_one_after_another(path: str) -> None:
    async with open_client(parrot()) as desk, dial(desk, path) as line:
        for said in ("one", "two", "three"):
            await line.create(said)
            events = await line.until(*LAST)
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            assert extract_text(events[-1]["response"]) == f"you said {said}"
        assert len(desk.runs()) == 3


async def test_what_is_stored_is_continued_from_anywhere() -> None:
    async with open_client(listener()) as desk, dial(desk) as line:
        customer = AsyncCustomer(desk)
        first = await customer.create("one")
        second = await line.response("two", previous_response_id=first.id)
        assert (extract_text(second), second["previous_response_id"]) == ("heard one, two", first.id)
        assert (await customer.retrieve(second["id"])).output_text == "heard one, two"
        third = await customer.create("three", previous_response_id=second["id"])
        assert third.output_text == "heard one, two, three"


async def test_what_is_not_stored_is_continued_on_its_own_connection_and_only_there() -> None:
    async with open_client(listener()) as desk, dial(desk) as line, dial(desk) as other:
        first = await line.response("one", store=False)
        second = await line.response("two", store=False, previous_response_id=first["id"])
        branch = await line.response("other", store=False, previous_response_id=first["id"])
        assert (extract_text(second), extract_text(branch)) == ("heard one, two", "heard one, other")
        assert (second["previous_response_id"], second["store"]) == (first["id"], False)
        for lost in (first, second):
            error = await other.error("three", previous_response_id=lost["id"])
            assert (error["status"], error["code"]) == (400, "previous_response_not_found")
            assert error["param"] == "previous_response_id"
            answer = await desk.post({"input": "three", "previous_response_id": lost["id"]})
            assert answer.json()["error"]["code"] == "previous_response_not_found"
        assert (desk.runs(), desk.ledger.kept_sessions) == ([], {})


async def test_what_begins_at_a_stored_response_goes_on_without_being_stored_and_is_stored_at_last() -> None:
    async with open_client(listener()) as desk, dial(desk) as line:
        first = await line.response("one")
        aside = await line.response("two", store=False, previous_response_id=first["id"])
        further = await line.response("three", store=False, previous_response_id=aside["id"])
        assert extract_text(further) == "heard one, two, three"
        kept = await line.response("four", previous_response_id=further["id"])
        assert extract_text(kept) == "heard one, two, three, four"
        assert kept["previous_response_id"] == further["id"]
        customer = AsyncCustomer(desk)
        read = await customer.retrieve(kept["id"])
        assert (read.previous_response_id, read.output_text) == (further["id"], extract_text(kept))
        last = await customer.create("five", previous_response_id=kept["id"])
        assert last.output_text == "heard one, two, three, four, five"
        assert (await customer.create("six", previous_response_id=first["id"])).output_text == "heard one, six"


async def test_a_channel_that_keeps_no_conversations_remembers_none() -> None:
    async with open_client(listener(), session_mode="disabled") as desk, dial(desk) as line:
        first = await line.response("one", store=False)
        assert extract_text(await line.response("two", store=False, previous_response_id=first["id"])) == "heard two"


async def test_an_unknown_response_is_not_continued_and_the_connection_goes_on() -> None:
    async with open_client(parrot()) as desk, dial(desk) as line:
        error = await line.error("one", previous_response_id="resp_0123456789")
        assert (error["status"], error["code"]) == (400, "previous_response_not_found")
        assert extract_text(await line.response("two")) == "you said two"


@pytest.mark.parametrize("store", [True, False])
async def test_a_failed_continuation_forgets_the_response_it_named(store: bool) -> None:
    def answer(messages: list[Message]) -> Any:
        return [RuntimeError("no")] if messages[-1].text == "fail" else ["fine"]

    async with open_client(build_answering(answer)) as desk, dial(desk) as line:
        for bad in ({"input": "fail"}, {"input": "x", "temperature": 99}, {"input": [{"type": "nothing"}]}):
            first = await line.response("one", store=False)
            assert (await line.response("two", store=False, previous_response_id=first["id"]))["status"] == "completed"
            await line.send({"type": "response.create", "store": store, "previous_response_id": first["id"], **bad})
            last = (await line.until(*LAST))[-1]
            assert last["type"] in ("response.failed", "error")
            error = await line.error("three", previous_response_id=first["id"])
            assert error["code"] == "previous_response_not_found"


async def test_a_failed_continuation_leaves_what_is_stored() -> None:
    async with open_client(parrot()) as desk, dial(desk) as line:
        first = await line.response("one")
        assert (await line.error("two", previous_response_id=first["id"], temperature=99))["param"] == "temperature"
        assert extract_text(await line.response("three", previous_response_id=first["id"])) == "you said three"


@pytest.mark.parametrize("store", [True, False])
async def test_a_function_of_the_client_s_is_called_and_answered(store: bool) -> None:
    target = agent([call("weather", "call_9")], ["it is ", "sunny"], ["still sunny"])
    async with open_client(target) as desk, dial(desk) as line:
        asked = await line.response("weather?", tools=[WEATHER], store=store)
        (item,) = asked["output"]
        assert (item["type"], item["call_id"]) == ("function_call", "call_9")
        output = {"type": "function_call_output", "call_id": "call_9", "output": "sun"}
        told = await line.response([output], tools=[WEATHER], store=store, previous_response_id=asked["id"])
        assert extract_text(told) == "it is sunny"
        assert [message.role for message in target.client.seen[-1]] == ["user", "assistant", "tool"]
        await line.response("and now?", tools=[WEATHER], store=store, previous_response_id=told["id"])
        roles = [message.role for message in target.client.seen[-1]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_an_output_answers_a_stored_call_in_a_turn_that_is_not_stored() -> None:
    target = agent([call("weather", "call_9")], ["sunny"], ["still"])
    async with open_client(target) as desk, dial(desk) as line:
        asked = await line.response("weather?", tools=[WEATHER])
        output = {"type": "function_call_output", "call_id": "call_9", "output": "sun"}
        aside = await line.response([output], store=False, previous_response_id=asked["id"])
        assert extract_text(await line.response("and?", store=False, previous_response_id=aside["id"])) == "still"
        roles = [message.role for message in target.client.seen[-1]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_only_a_call_that_waits_takes_an_output() -> None:
    target = build_answering(lambda messages: [call("weather", "call_9")])
    async with open_client(target) as desk, dial(desk) as line:
        for items, said in (
            ([{"type": "function_call_output", "call_id": "call_8", "output": "x"}], "call_8"),
            ([{"role": "user", "content": "never mind"}], "call_9"),
        ):
            asked = await line.response("weather?", tools=[WEATHER], store=False)
            error = await line.error(items, store=False, previous_response_id=asked["id"])
            assert (error["status"], error["param"]) == (400, "input")
            assert said in error["message"]


async def test_a_tool_waits_for_a_human() -> None:
    till = Till()
    target = till.agent([call("pay", "c", amount=5)], ["done"], ["thanks"])
    async with open_client(target) as desk, dial(desk) as line:
        asked = await line.response("pay 5")
        (question,) = asked["output"]
        assert (question["type"], till.ran) == ("mcp_approval_request", [])
        answer = {"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": True}
        told = await line.response([answer], previous_response_id=asked["id"])
        assert (extract_text(told), till.ran) == ("done", [("pay", 5)])
        again = await line.ask([answer], previous_response_id=asked["id"])
        assert again["type"] == "error"
        assert till.ran == [("pay", 5)]


async def test_a_tool_has_nowhere_to_wait_in_a_response_that_is_not_stored() -> None:
    till = Till()
    async with open_client(till.agent([call("pay", "c", amount=5)], ["hello"])) as desk, dial(desk) as line:
        last = await line.ask("pay 5", store=False)
        assert (last["type"], till.ran) == ("response.failed", [])


async def test_tools_of_the_host_stay_in_what_a_connection_remembers() -> None:
    till = Till()
    target = till.agent([call("add", "c", a=1, b=2)], ["three"], ["yes"])
    async with open_client(target) as desk, dial(desk) as line:
        first = await line.response("add", store=False)
        await line.response("sure?", store=False, previous_response_id=first["id"])
        contents = [one for message in target.client.seen[-1] for one in message.contents]
        assert [one.type for one in contents] == ["text", "function_call", "function_result", "text", "text"]
        assert till.ran == [("add", 1, 2)]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("store", [True, False])
async def test_a_response_is_cancelled(named: bool, store: bool) -> None:
    gated = GatedAgent()
    async with open_client(gated) as desk, dial(desk) as line:
        await line.create("one two", store=store)
        begun = await line.until("response.output_text.delta")
        response_id = begun[0]["response"]["id"]
        await line.send({"type": "response.cancel", **({"response_id": response_id} if named else {})})
        last = (await line.until(*LAST))[-1]
        assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")
        assert gated.cancelled.is_set()
        # What has ended stays as it is, and nothing is said about it.
        await line.send({"type": "response.cancel", "response_id": response_id})
        await line.send({"type": "response.cancel"})
        gated.release.set()
        assert extract_text(await line.response("three")) == "three"
        await line.send({"type": "response.cancel", "response_id": "resp_unknown"})
        assert (await line.receive())["status"] == 404


@pytest.mark.parametrize("finish", [True, False])
async def test_a_response_that_has_not_begun_is_cancelled(finish: bool) -> None:
    gated = GatedAgent()
    async with open_client(gated, finish_abandoned=finish) as desk, dial(desk) as line:
        await line.create("one two")
        await line.send({"type": "response.cancel"})
        events = await line.until(*LAST)
        assert events[-1]["response"]["status"] == "cancelled"
        (run,) = desk.runs()
        assert run.status == "cancelled"
        gated.release.set()
        assert extract_text(await line.response("three")) == "three"


@pytest.mark.parametrize("way", ["finish_abandoned", "background"])
async def test_a_response_that_would_outlive_its_connection_is_cancelled(way: str) -> None:
    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(background=way == "background")

    gated = GatedAgent()
    async with open_client(gated, finish_abandoned=way != "background", run_hook=hook) as desk, dial(desk) as line:
        await line.create("one two")
        await line.until("response.output_text.delta")
        await line.send({"type": "response.cancel"})
        last = (await line.until(*LAST))[-1]
        assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")
        await gated.cancelled.wait()
        await until(lambda: not desk.active)


async def test_a_cancelled_response_is_not_continued_but_the_one_before_it_is() -> None:
    gated = GatedAgent()
    gated.release.set()
    async with open_client(gated) as desk, dial(desk) as line:
        first = await line.response("one", store=False)
        gated.release.clear()
        await line.create("two three", store=False, previous_response_id=first["id"])
        begun = await line.until("response.output_text.delta")
        await line.send({"type": "response.cancel"})
        await line.until(*LAST)
        gated.release.set()
        error = await line.error("four", previous_response_id=begun[0]["response"]["id"])
        assert error["code"] == "previous_response_not_found"
        assert (await line.response("five", store=False, previous_response_id=first["id"]))["status"] == "completed"


async def test_two_creates_at_once_run_one_after_the_other() -> None:
    async with open_client(parrot()) as desk, dial(desk) as line:
        for said in ("one", "two", "three"):
            await line.create(said)
        heard = [extract_text((await line.until(*LAST))[-1]["response"]) for _ in range(3)]
        assert heard == ["you said one", "you said two", "you said three"]
        assert len(desk.runs()) == 3


async def test_lanes_run_side_by_side_and_say_which_they_are() -> None:
    gated = GatedAgent()
    async with open_client(gated) as desk, dial(desk) as line:
        await line.create("slow one", stream_id="a")
        slow = await line.until("response.output_text.delta")
        assert all(event["stream_id"] == "a" for event in slow)
        gated.release.set()
        await line.create("two", stream_id="b")
        ended = await _wait_for_ends(line, 2)
        assert sorted((event["stream_id"], extract_text(event["response"])) for event in ended) == [
            ("a", "slow one"),
            ("b", "two"),
        ]
        assert (await _ask_on_lane(line, "c", temperature=99))["type"] == "error"


async def _wait_for_ends(line: Line, count: int) -> list[dict[str, Any]]:
    return [(await line.until(*LAST))[-1] for _ in range(count)]


async def _ask_on_lane(line: Line, lane: str, **body: Any) -> dict[str, Any]:
    event = await line.ask("x", stream_id=lane, **body)
    assert event["stream_id"] == lane
    return event


async def test_hooks_see_what_they_see_over_http() -> None:
    seen: list[Any] = []

    def hook(request: ChannelRequest, *, protocol_request: Any, **_: Any) -> ChannelRequest:
        seen.append((request.attributes, protocol_request.headers["x-mine"]))
        return request.replace(store=bool(request.attributes.get("keep")))

    async with open_client(parrot(), run_hook=hook) as desk, dial(desk, additional_headers={"x-mine": "yes"}) as line:
        first = await line.response("one", keep=False, stream_id="a")
        assert first["store"] is False
        second = await line.response("two", keep=True, previous_response_id=first["id"])
        assert second["store"] is True
    assert seen == [({"keep": False}, "yes"), ({"keep": True}, "yes")]


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_hook_can_move_a_response_to_the_background(leaves: bool) -> None:
    gated = GatedAgent()
    async with open_client(gated, run_hook=lambda request, **_: request.replace(background=True)) as desk:
        async with dial(desk) as line:
            await line.create("one two")
            begun = await line.until("response.output_text.delta")
            if not leaves:
                gated.release.set()
                assert extract_text((await line.until(*LAST))[-1]["response"]) == "one two"
        gated.release.set()
        await _wait_for_success(desk, begun[0]["response"]["id"])


async def test_a_hook_can_leave_the_result_of_a_response_to_be_fetched() -> None:
    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(background=True, stream=False)

    async with open_client(parrot(), run_hook=hook) as desk, dial(desk) as line:
        await line.create("one")
        created, queued = await line.until("response.queued")
        assert created["type"] == "response.created"
        assert queued["response"]["status"] == "queued"
        await _wait_for_success(desk, queued["response"]["id"])


async def _wait_for_success(desk: ResponsesHost, response_id: str) -> None:
    client = desk.client()

    async def look() -> bool:
        return (await client.responses.retrieve(response_id)).status == "completed"

    await until(look)


async def test_targets_that_hear_only_what_is_said_now() -> None:
    async def echo(text: str) -> str:
        return f"you said {text}"

    for target in (echo, two_voices()):
        async with open_client(target) as desk, dial(desk) as line:
            first = await line.response("one", store=False)
            second = await line.response("two", store=False, previous_response_id=first["id"])
            assert "one" not in extract_text(second).lower()


async def test_a_function_of_messages_hears_them_all() -> None:
    async def count(messages: list[Message]) -> str:
        return " ".join(message.text for message in messages)

    async with open_client(count) as desk, dial(desk) as line:
        first = await line.response("one", store=False)
        second = await line.response("two", store=False, previous_response_id=first["id"])
        assert extract_text(second) == "one one two"


async def test_a_compaction_is_opened_on_a_socket() -> None:
    target = listener()
    async with open_client(target, compactor=lambda _: "the summary") as desk, dial(desk) as line:
        compacted = (await desk.http.post("/responses/compact", json={"model": "any", "input": "one"})).json()
        said = [*compacted["output"], {"role": "user", "content": "two"}]
        first = await line.response(said, store=False)
        assert extract_text(first) == "heard one, two"
        assert "the summary" in str(target.client.said())
        await line.response("three", store=False, previous_response_id=first["id"])
        assert "the summary" in str(target.client.said())


async def test_a_conversation_goes_on_over_a_socket() -> None:
    async with open_client(listener(), beside=[ConversationsChannel()]) as desk, dial(desk) as line:
        conversation = await desk.client().conversations.create()
        for said, heard in (("one", "heard one"), ("two", "heard one, two")):
            assert extract_text(await line.response(said, conversation=conversation.id)) == heard
        aside = await line.response("three", conversation=conversation.id, store=False)
        assert extract_text(aside) == "heard one, two, three"
        # What the conversation holds is not the connection's to say again.
        assert (await line.error("four", previous_response_id=aside["id"]))["code"] == "previous_response_not_found"
        assert extract_text(await line.response("five", conversation=conversation.id)) == "heard one, two, five"
