"""Every kind of target answers, whole and in pieces, and nothing that it says is lost on the way."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import Content, Message, UsageDetails, tool
from pydantic import BaseModel

from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import PlainAgent, build_scripted, call, echo, parrot, spell, two_voices, voices
from tests.scenarios.desk import open_client

TARGETS: dict[str, tuple[Callable[[], Any], str]] = {
    "agent": (parrot, "you said Hi You"),
    "plain agent": (PlainAgent, "1 messages"),
    "workflow builder": (two_voices, "HI YOU 1\nhi you"),
    "function that makes a workflow": (lambda: voices, "HI YOU 1\nhi you"),
    "function that makes a builder": (lambda: two_voices, "HI YOU 1\nhi you"),
    "async function": (lambda: echo, "you said Hi You"),
    "async generator": (lambda: spell, "Hi You"),
}


@pytest.fixture(params=TARGETS.values(), ids=list(TARGETS))
def target(request: pytest.FixtureRequest) -> tuple[Any, str]:
    make, text = request.param
    return make(), text


async def test_every_target_answers_in_one_piece(target: tuple[Any, str]) -> None:
    async with open_client(target[0]) as desk:
        response = await desk.ask("Hi You")
        body = response.json()
        assert response.status_code == 200
        assert (body["object"], body["status"], body["text"]) == ("invocation", "completed", target[1])
        assert body["error"] is None
        assert body["created_at"] <= body["finished_at"]
        assert (await desk.get(body["id"])).json() == body
        assert not desk.active


async def test_every_target_answers_in_pieces(target: tuple[Any, str]) -> None:
    async with open_client(target[0]) as desk:
        events = await desk.events("Hi You")
        assert [event.number for event in events] == list(range(len(events)))
        first, *updates, last = events
        assert first.name == "started"
        assert {event.name for event in updates} == {"update"}
        assert (last.name, last.data["text"]) == ("completed", target[1])
        assert first.data == {"id": last.data["id"], "session_id": last.data["session_id"]}
        assert (await desk.get(last.data["id"])).json() == last.data
        assert not desk.active


async def test_a_workflow_shows_all_its_outputs() -> None:
    async with open_client(two_voices()) as desk:
        assert (await desk.ask("Hi")).json()["outputs"] == ["HI 1", "hi"]
        updates = [event.data for event in await desk.events("Hi") if event.name == "update"]
        assert [update["output"] for update in updates] == ["HI 1", "hi"]


@tool(approval_mode="never_require")
def weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


@tool(approval_mode="never_require")
async def clock(zone: str) -> str:
    """The time."""
    return f"noon in {zone}"


def _asks_both_tools() -> Any:
    calls = [call("weather", "call-1", city="Rome"), call("clock", "call-2", zone="UTC")]
    return build_scripted([calls, ["sunny at ", "noon"], calls, ["sunny at ", "noon"]], tools=[weather, clock])


async def test_tools_run_and_the_model_gets_their_results() -> None:
    agent = _asks_both_tools()
    async with open_client(agent) as desk:
        events = await desk.events("How is it?", session_id="s")
        assert events[-1].data["text"] == "sunny at noon"
        results = [one.result for one in agent.client.seen[-1][-1].contents]
        assert results == ["sunny in Rome", "noon in UTC"]
        stored = [content.type for message in desk.history("s") for content in message.contents]
        assert stored == ["text", "function_call", "function_call", "function_result", "function_result", "text"]


async def test_tool_calls_are_the_house_s_own_business_unless_it_shows_them() -> None:
    async with open_client(_asks_both_tools()) as desk:
        assert "weather" not in (await desk.ask("How is it?")).text
        assert "weather" not in str(await desk.events("How is it?"))
    async with open_client(_asks_both_tools(), InvocationsChannel(tool_calls="show")) as desk:
        shown = (await desk.ask("How is it?")).json()
        kinds = [content["type"] for message in shown["messages"] for content in message["contents"]]
        assert kinds[:4] == ["function_call", "function_call", "function_result", "function_result"]
        updates = [event.data for event in await desk.events("How is it?") if event.name == "update"]
        drawn = [content["type"] for update in updates for content in update.get("contents") or ()]
        assert drawn == ["function_call", "function_call", "function_result", "function_result"]


def _thinks() -> Any:
    usage = UsageDetails(input_token_count=3, output_token_count=4, total_token_count=7)
    image = Content.from_data(b"\x89PNG", "image/png")
    turn = [Content.from_text_reasoning(text="Hm."), "here: ", image, "done", Content.from_usage(usage)]
    return build_scripted([turn, turn])


async def test_reasoning_usage_and_images_come_through() -> None:
    async with open_client(_thinks()) as desk:
        whole = (await desk.ask("Draw.")).json()
        *updates, last = (event.data for event in await desk.events("Draw.") if event.name != "started")
        for body in (whole, last):
            contents = body["messages"][0]["contents"]
            assert [content["type"] for content in contents] == ["text_reasoning", "text", "data", "text"]
            assert contents[0]["text"] == "Hm."
            assert base64.b64decode(contents[2]["uri"].partition(",")[2]) == b"\x89PNG"
        assert last["usage"]["total_token_count"] == 7
        drawn = [content["type"] for update in updates for content in update.get("contents") or ()]
        assert drawn == ["text_reasoning", "data"]


async def test_the_text_is_the_same_whole_or_in_pieces() -> None:
    async with open_client(_thinks()) as desk:
        whole = (await desk.ask("Draw.")).json()
        *updates, last = (event.data for event in await desk.events("Draw.") if event.name != "started")
        assert whole["text"] == last["text"] == "".join(one.get("text", "") for one in updates) == "here: done"


async def test_images_files_and_links_reach_the_model() -> None:
    agent = build_scripted([["seen"]])
    data = base64.b64encode(b"%PDF").decode()
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "data", "data": data, "media_type": "application/pdf", "name": "a.pdf"},
        {"type": "uri", "uri": "https://example.com/cat.png", "media_type": "image/png"},
    ]
    async with open_client(agent) as desk:
        assert (await desk.ask(parts)).status_code == 200
        (message,) = agent.client.seen[0]
        text, file, link = message.contents
        assert (text.text, message.role) == ("Look:", "user")
        assert (file.type, file.media_type) == ("data", "application/pdf")
        assert file.uri == f"data:application/pdf;base64,{data}"
        assert file.additional_properties["filename"] == "a.pdf"
        assert (link.type, link.uri, link.media_type) == ("uri", "https://example.com/cat.png", "image/png")


class Weather(BaseModel):
    """What the model is asked to fill in."""

    city: str
    degrees: int


def _build_structured(answer: str) -> Any:
    return build_scripted(lambda _: [answer], default_options={"response_format": Weather})


async def test_structured_output_has_its_value() -> None:
    async with open_client(_build_structured('{"city": "Rome", "degrees": 21}')) as desk:
        whole = (await desk.ask()).json()
        last = (await desk.events())[-1].data
        assert whole["value"] == last["value"] == {"city": "Rome", "degrees": 21}
        assert (await desk.get(whole["id"])).json()["value"] == whole["value"]


async def test_options_reach_the_model_and_nothing_else_does() -> None:
    agent = build_scripted([["warm"]])
    async with open_client(agent) as desk:
        assert (await desk.ask(options={"temperature": 0.5, "stop": ["."]})).status_code == 200
        seen = agent.client.options[0]
        assert (seen["temperature"], seen["stop"]) == (0.5, ["."])
        refused = await desk.ask(options={"model": "another"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "options")
        assert len(agent.client.options) == 1


async def test_a_function_may_take_the_messages_and_return_a_value() -> None:
    async def count(messages: list[Message]) -> dict[str, int]:
        return {"messages": len(messages)}

    async with open_client(count) as desk:
        assert (await desk.ask(session_id="s")).json()["value"] == {"messages": 1}
        assert (await desk.ask(session_id="s")).json()["value"] == {"messages": 3}


async def test_metadata_comes_back() -> None:
    async with open_client(echo) as desk:
        body = (await desk.ask(metadata={"ticket": "42"})).json()
        assert body["metadata"] == {"ticket": "42"}
        assert (await desk.get(body["id"])).json()["metadata"] == {"ticket": "42"}
