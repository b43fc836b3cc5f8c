"""Tools of the client's: a call ends the answer, and comes back with its output in the next request."""

import json
from typing import Any

import pytest
from openai import BadRequestError

from tests.scenarios.chat_completions.desk import HI, open_client
from tests.scenarios.responses.cast import Till, agent, build_answering, call, piece

PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
LOOK: Any = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": PLACE}}
PATCH: Any = {
    "type": "custom",
    "custom": {
        "name": "patch",
        "description": "Patches.",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "x"'}},
    },
}


def build_messages(message: Any, *outputs: tuple[str, str]) -> list[Any]:
    """The conversation with an answer that has calls, and with their outputs."""
    results = [{"role": "tool", "tool_call_id": call_id, "content": output} for call_id, output in outputs]
    return [*HI, message.model_dump(exclude_none=True), *results]


async def test_calls_go_out_together_and_their_outputs_come_back() -> None:
    target = agent([call("look", "a", place="garden"), call("look", "b", place="roof")], ["two cats"])
    async with open_client(target) as desk:
        asked = (await desk.create(tools=[LOOK])).choices[0]
        assert (asked.finish_reason, asked.message.content) == ("tool_calls", None)
        called = [(one.id, one.function.name, json.loads(one.function.arguments)) for one in asked.message.tool_calls]
        assert called == [("a", "look", {"place": "garden"}), ("b", "look", {"place": "roof"})]
        answer = await desk.create(build_messages(asked.message, ("a", "A"), ("b", "B")), tools=[LOOK])
        assert answer.choices[0].message.content == "two cats"
        given = [one for message in target.client.seen[-1] for one in message.contents if one.type == "function_result"]
        assert {one.call_id: one.result for one in given} == {"a": "A", "b": "B"}
        assert desk.is_untouched()


async def test_a_streamed_call_comes_in_pieces() -> None:
    pieces = [piece("a", '{"place": ', "look"), piece("b", "", "look"), piece("a", '"garden"}'), piece("b", "{}")]
    async with open_client(agent(["let me see", *pieces])) as desk:
        async with desk.client.chat.completions.stream(model="m", messages=HI, tools=[LOOK]) as stream:
            events = [event.type async for event in stream]
            final = await stream.get_final_completion()
        assert "tool_calls.function.arguments.delta" in events
        (choice,) = final.choices
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "let me see")
        calls: Any = choice.message.tool_calls
        assert [(one.id, one.function.arguments) for one in calls] == [("a", '{"place": "garden"}'), ("b", "{}")]


async def test_a_tool_that_takes_a_text_is_called_with_a_text() -> None:
    script: Any = [call("patch", "p", input="x")]
    target = agent(script, ["done"], script)
    async with open_client(target) as desk:
        asked = (await desk.create(tools=[PATCH])).choices[0].message
        (called,) = asked.tool_calls
        assert (called.type, called.custom.name, called.custom.input) == ("custom", "patch", "x")
        answer = await desk.create(build_messages(asked, ("p", "patched")), tools=[PATCH])
        assert answer.choices[0].message.content == "done"
        sent = [one for message in target.client.seen[-1] for one in message.contents if one.type == "function_call"]
        assert json.loads(sent[0].arguments) == {"input": "x"}
        # A model that knows only functions is told the grammar in words.
        (offered,) = target.client.options[-1]["tools"]
        assert 'lark grammar:\nstart: "x"' in offered.description
        raw = await desk.post({"messages": HI, "tools": [PATCH], "stream": True})
        assert '"custom":{"name":"patch","input":"x"}' in raw.text


async def test_a_choice_of_tools_reaches_the_model() -> None:
    target = build_answering(lambda _: ["ok"])
    async with open_client(target) as desk:
        named: Any = {"type": "function", "function": {"name": "look"}}
        allowed: Any = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}
        for choice, expected in (
            ("none", "none"),
            ("required", "required"),
            (named, {"mode": "required", "required_function_name": "look"}),
            (allowed, {"mode": "auto", "allowed_tools": ["look"]}),
        ):
            await desk.create(tools=[LOOK], tool_choice=choice, parallel_tool_calls=False)
            assert target.client.options[-1]["tool_choice"] == expected
            assert target.client.options[-1]["allow_multiple_tool_calls"] is False


async def test_a_tool_of_the_hosts_can_be_neither_chosen_nor_answered() -> None:
    till = Till()
    async with open_client(till.agent(["ok"])) as desk:
        named: Any = {"type": "function", "function": {"name": "add"}}
        faked = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "Add"}}]}
        faked["tool_calls"][0]["function"]["arguments"] = "{}"  # type: ignore[index]
        for body, message in (
            ({"tool_choice": named}, "Tool 'add' is not in"),
            ({"tool_choice": "required"}, "requires `tools`"),
            ({"messages": [*HI, faked, {"role": "tool", "tool_call_id": "a", "content": "9"}]}, "reserved tool name"),
            ({"tools": [{"type": "function", "function": {"name": "add"}}]}, "add"),
        ):
            with pytest.raises(BadRequestError, match=message):
                await desk.create(**body)
        assert (till.ran, desk.is_untouched()) == ([], True)


async def test_of_a_host_call_and_a_client_call_only_the_clients_is_handed_out() -> None:
    till = Till()
    target = till.agent([call("add", "host", a=1, b=2), call("look", "client", place="roof")], ["3 cats"])
    async with open_client(target) as desk:
        asked = (await desk.create(tools=[LOOK])).choices[0].message
        assert [one.id for one in asked.tool_calls] == ["client"]
        answer = await desk.create(build_messages(asked, ("client", "a cat")), tools=[LOOK])
        assert answer.choices[0].message.content == "3 cats"
