"""The judges of the other tests: what they let pass is worth what they find when something is wrong."""

import copy
from typing import Any

import pytest
from openai.types.responses.response_format_text_json_schema_config import ResponseFormatTextJSONSchemaConfig
from pydantic import ValidationError

from tests.scenarios.responses.cast import build_answering, parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client
from tests.scenarios.responses.published import VARIABLE, find_schema, load_schema
from tests.scenarios.responses.sequence import wrong_sequence
from tests.scenarios.responses.tap import judge_event, judge_response


def test_the_published_schema_was_found() -> None:
    if find_schema() is None:
        pytest.skip(f"The strict check was not run: the Open Responses schema is not here, and {VARIABLE} names none")


async def _collect() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    async with open_client(parrot()) as desk:
        customer = AsyncCustomer(desk)
        await customer.create("hello")
        await customer.events("hello")
        whole, streamed = desk.tap.exchanges
        response = whole.response
        assert response is not None
        return response, streamed.events


async def test_a_field_that_is_missing_or_of_another_type_is_seen() -> None:
    response, events = await _collect()
    assert judge_response(response) == []
    for name in ("output", "tools", "parallel_tool_calls", "created_at"):
        assert judge_response({key: value for key, value in response.items() if key != name})
    assert judge_response({**response, "created_at": "today"})
    assert judge_response({**response, "output": [{**response["output"][0], "type": "massage"}]})
    for event in events:
        assert judge_event(event) == []
        assert judge_event({**event, "type": "response.made_up"})
        assert judge_event({key: value for key, value in event.items() if key != "sequence_number"})


async def test_every_nullable_field_is_missed() -> None:
    response, _ = await _collect()
    # The published schema has no conversations.
    for name in response.keys() - {"conversation"} if find_schema() is not None else ():
        assert judge_response({key: value for key, value in response.items() if key != name}), name


async def test_a_sequence_with_a_fault_is_seen() -> None:
    _, events = await _collect()
    assert wrong_sequence(events) == []
    for place in range(len(events)):
        without = [*events[:place], *events[place + 1 :]]
        assert wrong_sequence(without)
        assert wrong_sequence([{**event, "sequence_number": number} for number, event in enumerate(without)])
        twice = [*events[: place + 1], *events[place:]]
        assert wrong_sequence([{**event, "sequence_number": number} for number, event in enumerate(twice)])
    for name in ("output_index", "content_index", "item_id", "delta", "text"):
        for place, event in enumerate(events):
            if name in event:
                changed = copy.deepcopy(events)
                changed[place][name] = 7 if name.endswith("index") else "other"
                assert wrong_sequence(changed), (name, event)


async def test_a_host_that_says_something_wrong_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="unknown event"):
        async with open_client(parrot()) as desk:
            desk.tap.wrong.append("unknown event 'x'")


async def test_no_form_of_a_schema_in_text_format_suits_both_judges() -> None:
    """The published schema takes null and nothing else, the package anything but null: the response says null."""
    async with open_client(build_answering(lambda _: ["{}"])) as desk:
        form: Any = {"type": "json_schema", "name": "Room", "schema": {"type": "object"}, "strict": True}
        await AsyncCustomer(desk).create("hello", text={"format": form})
        response = desk.tap.exchanges[0].response
        assert response is not None
        shown = response["text"]["format"]
        assert shown["schema"] is None
        published = load_schema()
        for value in (None, {}, {"type": "object"}, "", False):
            body = {**response, "text": {"format": {**shown, "schema": value}}}
            accepted = published is None or not published.response(body)
            assert accepted == (published is None or value is None)
            assert _package_takes(value) == isinstance(value, dict)
        without = {name: value for name, value in shown.items() if name != "schema"}
        if published is not None:
            assert published.response({**response, "text": {"format": without}})


def _package_takes(schema: Any) -> bool:
    try:
        ResponseFormatTextJSONSchemaConfig.model_validate({"type": "json_schema", "name": "Room", "schema": schema})
    except ValidationError:
        return False
    return True
