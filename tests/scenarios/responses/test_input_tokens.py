"""`POST /responses/input_tokens`: an estimate that says so, made without running anything."""

from typing import Any

import pytest
from agent_framework import Content
from openai import BadRequestError, NotFoundError

from frontdesk.channels.conversations import ConversationsChannel
from frontdesk_testing.internals import get_components
from tests.scenarios.responses.cast import build_answering, parrot
from tests.scenarios.responses.desk import ResponsesHost, open_client


async def _count(desk: ResponsesHost, **body: Any) -> int:
    counted = await desk.client().responses.input_tokens.count(model="any", **body)
    assert (counted.object, counted.to_dict()["estimated"]) == ("response.input_tokens", True)
    return counted.input_tokens


async def test_the_client_is_told_an_estimate_and_nothing_runs() -> None:
    async with open_client(parrot()) as desk:
        assert await _count(desk, input="a" * 400) == 104
        said = [{"role": "user", "content": "a" * 40}, {"role": "assistant", "content": "b" * 40}]
        assert await _count(desk, input=said) == 28
        tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
        plain = await _count(desk, input="hello")
        assert await _count(desk, input="hello", instructions="c" * 40) == plain + 10
        assert await _count(desk, input="hello", tools=[tool]) > plain
        picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}
        assert await _count(desk, input=[{"role": "user", "content": [picture]}]) == 1_004
        assert desk.untouched()
        assert get_components(desk.host).target.native.client.options == []


async def test_what_is_continued_counts_too() -> None:
    async with open_client(parrot(), beside=[ConversationsChannel()]) as desk:
        alone = await _count(desk, input="and now?")
        first = (await desk.post({"input": "a" * 400})).json()
        second = (await desk.post({"input": "b" * 400, "previous_response_id": first["id"]})).json()
        after_one = await _count(desk, input="and now?", previous_response_id=first["id"])
        after_two = await _count(desk, input="and now?", previous_response_id=second["id"])
        assert alone + 200 < after_one < after_two
        conversation = (await desk.http.post("/v1/conversations", json={})).json()["id"]
        await desk.post({"input": "a" * 400, "conversation": conversation})
        assert await _count(desk, input="and now?", conversation=conversation) == after_one


async def test_a_chain_counts_back_to_what_was_deleted() -> None:
    async with open_client(parrot()) as desk:
        made: list[str] = []
        for _ in range(3):
            previous = {"previous_response_id": made[-1]} if made else {}
            made.append((await desk.post({"input": "a" * 400, **previous})).json()["id"])
        whole = await _count(desk, input="go on", previous_response_id=made[-1])
        await desk.http.delete(f"/v1/responses/{made[0]}")
        assert 0 < await _count(desk, input="go on", previous_response_id=made[-1]) < whole


async def test_nobody_has_more_read_for_a_number_than_a_body_may_hold() -> None:
    async with open_client(parrot(), beside=[ConversationsChannel()], max_body_bytes=2_000) as desk:
        conversation = (await desk.http.post("/v1/conversations", json={})).json()["id"]
        previous: dict[str, Any] = {}
        for _ in range(2):
            made = (await desk.post({"input": "a" * 1_500, **previous})).json()
            previous = {"previous_response_id": made["id"]}
        with pytest.raises(BadRequestError) as caught:
            await _count(desk, input="go on", **previous)
        assert (caught.value.code, caught.value.param) == ("unsupported", "previous_response_id")
        body = {"items": [{"role": "user", "content": "a" * 100} for _ in range(20)]}
        for _ in range(5):
            await desk.http.post(f"/v1/conversations/{conversation}/items", json=body)
        with pytest.raises(BadRequestError) as caught:
            await _count(desk, input="go on", conversation=conversation)
        assert (caught.value.code, caught.value.param) == ("unsupported", "conversation")


async def test_a_model_that_counts_is_believed() -> None:
    usage = Content.from_usage({"input_token_count": 700, "output_token_count": 50, "total_token_count": 750})
    async with open_client(build_answering(lambda _: ["fine", usage])) as desk:
        first = (await desk.post({"input": "hello"})).json()
        assert first["usage"]["total_tokens"] == 750
        assert await _count(desk, input="abcd", previous_response_id=first["id"]) == 755


async def test_what_can_not_be_asked_can_not_be_counted() -> None:
    async with open_client(parrot()) as desk:
        for body, param in (
            ({"input": "hello", "previous_response_id": "resp_of_nobody"}, "previous_response_id"),
            ({"input": [{"type": "nonsense"}]}, "input[0].type"),
            ({}, "input"),
        ):
            options: Any = body
            with pytest.raises(BadRequestError) as caught:
                await _count(desk, **options)
            assert caught.value.param == param
        answer = {"type": "mcp_approval_response", "approval_request_id": "apr_of_nobody", "approve": True}
        with pytest.raises(NotFoundError):
            await _count(desk, input=[answer])
        assert (await desk.http.get("/v1/responses/input_tokens")).status_code == 405
        assert desk.untouched()
