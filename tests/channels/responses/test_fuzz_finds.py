"""What the fuzzer has found, so that it stays mended."""

from typing import Any

import pytest

from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.cast import parrot
from tests.scenarios.desk import open_client

PATH = "/v1/responses"


@pytest.mark.parametrize("kind", [[], [None], {}, {"a": 1}, 0, 1, False, True, "", "nonsense"])
async def test_the_type_of_an_item_was_not_a_text(kind: Any) -> None:
    async with open_client(parrot(), channels=[ResponsesChannel()]) as desk:
        item = {"type": kind, "role": "user", "content": "hello"}
        response = await desk.client.post(PATH, json={"input": [item]})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "input[0].type")
        assert desk.untouched()


@pytest.mark.parametrize(
    ("query", "status", "param"),
    [
        ("limit=%C2%B2", 400, "limit"),
        ("limit=" + "9" * 5_000, 400, "limit"),
        ("limit=", 400, "limit"),
        ("limit=1.0", 400, "limit"),
        ("order=", 400, "order"),
        ("after=", 404, "after"),
    ],
)
async def test_a_page_was_asked_for_in_odd_words(query: str, status: int, param: str) -> None:
    async with open_client(parrot(), channels=[ResponsesChannel()]) as desk:
        run_id = (await desk.client.post(PATH, json={"input": "hello"})).json()["id"]
        response = await desk.client.get(f"{PATH}/{run_id}/input_items?{query}")
        assert (response.status_code, response.json()["error"]["param"]) == (status, param)


@pytest.mark.parametrize("kind", [None, [], [None], 1, "thing"])
async def test_the_type_of_a_schema_was_none(kind: Any) -> None:
    async with open_client(parrot(), channels=[ResponsesChannel()]) as desk:
        form = {"type": "json_schema", "name": "x", "schema": {"type": kind}}
        response = await desk.client.post(PATH, json={"input": "hello", "text": {"format": form}})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "text.format.schema.type")
        assert desk.untouched()


@pytest.mark.parametrize(
    ("item", "param"),
    [
        (
            {"role": "user", "content": [{"type": "input_file", "file_data": "aGk=", "filename": 7}]},
            "content[0].filename",
        ),
        ({"type": "reasoning", "summary": [], "encrypted_content": {}}, "encrypted_content"),
    ],
)
async def test_a_field_of_the_wrong_type_was_taken_for_none(item: Any, param: str) -> None:
    async with open_client(parrot(), channels=[ResponsesChannel()]) as desk:
        response = await desk.client.post(PATH, json={"input": [item]})
        assert (response.status_code, response.json()["error"]["param"]) == (400, f"input[0].{param}")


async def test_the_parameter_had_a_name_that_the_api_does_not_know() -> None:
    async with open_client(parrot(), channels=[ResponsesChannel()]) as desk:
        response = await desk.client.post(PATH, json={"input": "hello", "previous_response_id": "resp_nobody"})
        assert response.json()["error"]["param"] == "previous_response_id"
