"""Parameters that were ignored in silence, or refused although the API has them."""

from typing import Any

import pytest
from agent_framework import Content

from frontdesk_testing.internals import get_components
from tests.scenarios.responses.cast import Till, agent, build_answering, call, parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": True}

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"prompt": {"id": "pmpt_1"}}, "prompt"),
    ({"moderation": {"model": "m", "policy": {"input": {"mode": "block"}}}}, "moderation"),
    ({"moderation": {"model": "m", "policy": {"output": {"mode": "block"}}}}, "moderation"),
    ({"prompt_cache_options": {"prewarm": True}}, "prompt_cache_options.prewarm"),
    ({"generate": False}, "generate"),
    ({"context_management": [{"type": "compaction", "compact_threshold": 1000}]}, "context_management"),
    ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
    ({"reasoning": {"context": "current_turn"}}, "reasoning.context"),
    ({"tool_choice": {"type": "function", "name": "look"}}, "tool_choice"),
    ({"tools": [LOOK], "tool_choice": {"type": "function", "name": "add"}}, "tool_choice"),
    ({"tools": [LOOK], "tool_choice": {"type": "function", "name": "nothing"}}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    (
        {"tools": [LOOK], "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "add"}]}},
        "tool_choice",
    ),
    ({"metadata": {"fine": "x", "count": 7}}, "metadata.count"),
]
TAKEN: list[dict[str, Any]] = [
    {"reasoning": {"effort": "max"}},
    {"reasoning": {"mode": "standard", "context": "auto"}},
    {"service_tier": "fast"},
    {"service_tier": "ultrafast"},
    {"safety_identifier": "x" * 128},
    {"moderation": {"model": "omni", "policy": {"input": {"mode": "score"}}}},
    {"prompt_cache_options": {"mode": "implicit", "prewarm": False}},
    {"context_management": []},
    {"prompt": None, "generate": True},
    {"tools": [LOOK], "tool_choice": {"type": "function", "name": "look"}},
    {"tools": [LOOK], "tool_choice": "required"},
    {"tool_choice": "none"},
]


@pytest.mark.parametrize(("asked", "param"), REFUSED)
async def test_what_means_something_and_is_not_served_was_ignored(asked: dict[str, Any], param: str) -> None:
    async with open_client(Till().agent()) as desk:
        refused = await desk.post({"input": "hello", **asked})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
        assert desk.untouched()


@pytest.mark.parametrize("asked", TAKEN)
async def test_what_the_api_has_was_refused(asked: dict[str, Any]) -> None:
    async with open_client(Till().agent(["fine"])) as desk:
        taken = await desk.post({"input": "hello", **asked})
        assert (taken.status_code, taken.json()["status"]) == (200, "completed"), taken.text


async def test_a_caller_may_force_a_tool_of_the_hosts_only_where_that_is_set() -> None:
    till = Till()
    target = till.agent([call("add", a=1, b=2)], ["3"], ["fine"])
    forced = {"input": "?", "tool_choice": {"type": "function", "name": "add"}}
    async with open_client(target, force_host_tools=True) as desk:
        assert (await desk.post(forced)).json()["output"][0]["content"][0]["text"] == "3"
        assert target.client.options[0]["tool_choice"] == {"mode": "required", "required_function_name": "add"}
        unknown = {"input": "?", "tool_choice": {"type": "function", "name": "subtract"}}
        assert (await desk.post(unknown)).status_code == 400


async def test_a_tool_that_is_strict_reached_the_target_as_one_that_is_not() -> None:
    target = build_answering(lambda _: ["fine"])
    async with open_client(target) as desk:
        shown = (await desk.post({"input": "hello", "tools": [LOOK]})).json()["tools"]
        (offered,) = target.client.options[0]["tools"]
        assert (shown[0]["strict"], offered.additional_properties["strict"]) == (True, True)


async def test_the_detail_of_a_picture_was_dropped() -> None:
    target = build_answering(lambda _: ["seen"])
    picture = {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"}
    async with open_client(target) as desk:
        said = {"input": [{"role": "user", "content": [picture]}]}
        response = (await desk.post(said)).json()
        (heard,) = target.client.seen[0][-1].contents
        assert heard.additional_properties["detail"] == "low"
        items = (await desk.http.get(f"/v1/responses/{response['id']}/input_items")).json()["data"]
        assert items[0]["content"][0]["detail"] == "low"
        wrong = {"input": [{"role": "user", "content": [{**picture, "detail": "enormous"}]}]}
        refused = await desk.post(wrong)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[0].content[0].detail")


async def test_a_compaction_without_a_model_was_made() -> None:
    async with open_client(parrot(), compactor=lambda _: "short") as desk:
        refused = await desk.http.post("/v1/responses/compact", json={"input": "one"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "model")
        made = await desk.http.post("/v1/responses/compact", json={"input": "one", "model": None})
        assert made.status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_the_text_of_a_thought_was_shown_as_its_summary(stream: bool) -> None:
    raw = {"reasoning_text": "so"}
    said = [
        Content.from_text_reasoning(id="t", text="In short."),
        Content.from_text_reasoning(id="t", text="First ", additional_properties=raw),
        Content.from_text_reasoning(id="t", text="this.", additional_properties=raw),
        "done",
    ]
    async with open_client(agent(said, ["fine"])) as desk:
        customer = AsyncCustomer(desk)
        response: Any = (await customer.stream("?"))[1] if stream else await customer.create("?")
        thought = response.output[0]
        assert [part.text for part in thought.summary] == ["In short."]
        assert [(part.type, part.text) for part in thought.content] == [("reasoning_text", "First this.")]
        # Sent again, it is heard as what it was.
        again: Any = [thought.to_dict(), {"role": "user", "content": "go on"}]
        await customer.create(again)
        heard = get_components(desk.host).target.native.client.seen[-1][0].contents
        assert [(one.text, "reasoning_text" in one.additional_properties) for one in heard] == [
            ("In short.", False),
            ("First this.", True),
        ]


async def test_the_events_of_the_text_of_a_thought() -> None:
    said = [Content.from_text_reasoning(text="So.", additional_properties={"openai": {"reasoning_text": "So."}}), "ok"]
    async with open_client(agent(said)) as desk:
        events = await AsyncCustomer(desk).events("?")
        assert [event.type for event in events[2:8]] == [
            "response.output_item.added",
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
            "response.output_item.done",
        ]


async def test_what_was_to_be_included_in_a_response_that_is_fetched_was_left_out() -> None:
    said = [Content.from_text_reasoning(text="hm", protected_data="sealed"), "done"]
    async with open_client(agent(said)) as desk:
        client = desk.client()
        made = await client.responses.create(model="any", input="?")
        assert not made.output[0].to_dict().get("encrypted_content")
        found = await client.responses.retrieve(made.id, include=["reasoning.encrypted_content"])
        assert found.output[0].to_dict()["encrypted_content"] == "sealed"
        for where in (made.id, f"{made.id}/input_items"):
            refused = await desk.http.get(f"/v1/responses/{where}?include[]=everything")
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "include[0]")


async def test_an_answer_had_no_request_id() -> None:
    async with open_client(parrot()) as desk:
        made = await desk.post({"input": "hello"})
        about = f"/v1/responses/{made.json()['id']}"
        answers = [
            made,
            await desk.post({"input": "hello", "stream": True}),
            await desk.post({"input": 7}),
            await desk.http.get(about),
            await desk.http.get(f"{about}/input_items"),
            await desk.http.delete(about),
            await desk.http.get(about),
            await desk.http.get("/v1/models"),
            await desk.http.get("/v1/nothing"),
            await desk.http.put("/v1/responses"),
        ]
        ids = [answer.headers["x-request-id"] for answer in answers]
        assert all(ids)
        own = await desk.http.get("/v1/models", headers={"x-request-id": "mine"})
        assert own.headers["x-request-id"] == "mine"
        assert (await desk.client().responses.create(model="any", input="?"))._request_id
