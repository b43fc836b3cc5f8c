"""A conversation is compacted: what comes back stands for it in later requests, and for its caller only."""

from typing import Any

import httpx
import pytest
from agent_framework import Content, Message
from openai import BadRequestError, InternalServerError

from frontdesk import ApiKeyAuth
from frontdesk.errors import InvalidRequestError
from frontdesk.models.request import ChannelRequest
from tests.scenarios.responses.cast import Till, agent, build_answering, call, parrot
from tests.scenarios.responses.desk import ResponsesHost, open_client
from tests.scenarios.responses.test_socket import listener

ONE, OTHER = "the-key-of-one-caller", "the-key-of-another-one"
AUTH = ApiKeyAuth({"one": ONE, "other": OTHER})
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def shortener(messages: list[Message]) -> str:
    """An operator's own function."""
    return f"{len(messages)} messages, last: {messages[-1].text}"


async def _compact(desk: ResponsesHost, key: str = ONE, **body: Any) -> Any:
    return await desk.client(key).responses.compact(model="Concierge", **body)


def _items(compacted: Any) -> list[Any]:
    return compacted.model_dump(mode="json", exclude_none=True, warnings=False)["output"]


async def _ask(desk: ResponsesHost, items: list[Any], key: str = ONE, **body: Any) -> Any:
    said = [*items, {"role": "user", "content": "go on"}]
    return await desk.client(key).responses.create(model="Concierge", input=said, **body)


@pytest.mark.parametrize("store", [True, False])
async def test_a_compacted_conversation_goes_on(store: bool) -> None:
    target = listener()
    async with open_client(target, compactor=shortener) as desk:
        said: list[Any] = [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "heard one"},
            {"role": "user", "content": "two"},
        ]
        compacted = await _compact(desk, input=said)
        assert (compacted.object, compacted.usage.total_tokens) == ("response.compaction", 0)
        kinds = [(item["type"], item.get("role")) for item in _items(compacted)]
        assert kinds == [("message", "user"), ("message", "user"), ("compaction", None)]
        response = await _ask(desk, _items(compacted), store=store)
        assert response.output_text == "heard one, two, go on"
        assert [role for role, _ in target.client.said()] == ["user", "user", "assistant", "user"]
        assert "3 messages, last: two" in target.client.said()[2][1]
        assert "heard one" not in str(target.client.said())


async def test_a_stored_conversation_is_compacted_by_its_last_response() -> None:
    target = listener()
    async with open_client(target, compactor=shortener) as desk:
        api = desk.client(ONE)
        first = await api.responses.create(model="Concierge", input="one")
        second = await api.responses.create(model="Concierge", input="two", previous_response_id=first.id)
        await api.responses.create(model="Concierge", input="later", previous_response_id=second.id)
        compacted = await _compact(desk, previous_response_id=second.id, input="three")
        assert [item["content"][0]["text"] for item in _items(compacted)[:-1]] == ["one", "two", "three"]
        await _ask(desk, _items(compacted)[-1:])
        assert "5 messages, last: three" in target.client.said()[0][1]
        with pytest.raises(BadRequestError) as caught:
            await _compact(desk, previous_response_id="resp_0000")
        assert caught.value.code == "previous_response_not_found"


async def test_a_compaction_is_compacted_again() -> None:
    async with open_client(listener(), compactor=shortener) as desk:
        first = await _compact(desk, input="one")
        second = await _compact(desk, input=[*_items(first), {"role": "user", "content": "two"}])
        texts = [item["content"][0]["text"] for item in _items(second)[:-1]]
        assert texts == ["one", "two"]


async def test_the_client_of_the_agent_makes_it_when_the_operator_names_nobody() -> None:
    target = build_answering(lambda messages: ["the summary" if "<record>" in messages[-1].text else "fine"])
    async with open_client(target) as desk:
        said: list[Any] = [
            {"role": "user", "content": [{"type": "input_text", "text": "look"}, _picture()]},
            {"type": "function_call", "call_id": "c", "name": "see", "arguments": '{"where":"here"}'},
            {"type": "function_call_output", "call_id": "c", "output": "a cat"},
        ]
        compacted = await _compact(desk, input=said, instructions="In verse.")
        asked = target.client.seen[-1]
        assert asked[0].role == "system"
        assert "In verse." in asked[0].text
        record = asked[1].text
        assert 'user: look\n[image/png]\n\nassistant: [calls see with {"where":"here"}]' in record
        assert "tool: [result: a cat]" in record
        assert not target.client.options[-1].get("tools")
        content = _items(compacted)[0]["content"]
        assert [part["type"] for part in content] == ["input_text", "input_image"]
        assert content[1]["image_url"] == PIXEL
        await _ask(desk, _items(compacted))
        assert "the summary" in str(target.client.said())


def _picture() -> Any:
    return {"type": "input_image", "image_url": PIXEL, "detail": "auto"}


@pytest.mark.parametrize("kind", ["agent", "coroutine", "message"])
async def test_the_operator_names_who_makes_it(kind: str) -> None:
    async def written(messages: list[Message]) -> str:
        return "a summary"

    named: dict[str, Any] = {
        "agent": agent(["a summary"]),
        "coroutine": written,
        "message": lambda messages: Message("assistant", ["a summary"]),
    }
    target = parrot()
    async with open_client(target, compactor=named[kind]) as desk:
        await _ask(desk, _items(await _compact(desk, input="one")))
        assert target.client.said()[1] == ("assistant", "Summary of the conversation so far:\na summary")


async def test_the_tokens_are_counted() -> None:
    usage = Content.from_usage({"input_token_count": 7, "output_token_count": 3, "total_token_count": 10})
    async with open_client(parrot(), compactor=agent(["short", usage])) as desk:
        compacted = await _compact(desk, input="one")
        assert (compacted.usage.input_tokens, compacted.usage.output_tokens) == (7, 3)
        assert compacted.usage.total_tokens == 10


async def test_with_nobody_to_make_it_the_error_says_so() -> None:
    async def echo(text: str) -> str:
        return text

    async with open_client(echo) as desk:
        with pytest.raises(InternalServerError) as caught:
            await _compact(desk, input="one")
        assert (caught.value.status_code, caught.value.code) == (501, "unsupported")
        assert "compactor" in caught.value.message
        assert desk.untouched()


def test_what_can_not_make_it_is_found_when_the_host_is_built() -> None:
    from frontdesk.channels.responses import ResponsesChannel

    assert ResponsesChannel(compactor=5).findings() == ["compactor must be an agent or a function, not int"]
    assert ResponsesChannel(compactor=shortener).findings() == []


@pytest.mark.parametrize("bad", [RuntimeError("the secret reason"), "", None])
async def test_a_summary_that_fails_is_an_error_and_leaves_nothing(bad: Any) -> None:
    def compactor(messages: list[Message]) -> Any:
        if isinstance(bad, Exception):
            raise bad
        return bad

    async with open_client(parrot(), compactor=compactor) as desk:
        with pytest.raises(InternalServerError) as caught:
            await _compact(desk, input="one")
        assert (caught.value.status_code, caught.value.code) == (500, "target_failed")
        assert "secret" not in caught.value.message
        assert desk.runs() == []


async def test_a_summary_that_is_refused_keeps_its_own_error() -> None:
    def compactor(messages: list[Message]) -> str:
        raise InvalidRequestError("Too short to be compacted.", param="input")

    async with open_client(parrot(), compactor=compactor) as desk:
        with pytest.raises(BadRequestError, match="Too short"):
            await _compact(desk, input="one")


async def test_another_s_a_forged_and_a_deleted_one_are_bad_requests() -> None:
    async with open_client(parrot(), compactor=shortener, auth=AUTH) as desk:
        compacted = await _compact(desk, input="one")
        item = _items(compacted)[-1]
        seal = item["encrypted_content"]
        response = await desk.client(ONE).responses.create(model="Concierge", input="one")
        mark, run_id, key = seal.split(".")
        forged = [
            "",
            "x",
            seal[:-1],
            seal + "x",
            f"{mark}.{run_id}",
            f"{mark}.{run_id}.",
            f"{mark}.{response.id}.{key}",
            f"{mark}.{response.id}.",
            f"fd2.{run_id}.{key}",
            f"{mark}.../{run_id}.{key}",
            f"{mark}.{run_id}.{key[:-1]}é",
        ]
        for content in forged:
            await _check_refused(desk, {**item, "encrypted_content": content})
        await _check_refused(desk, item, OTHER)
        assert (await _ask(desk, [item])).status == "completed"
        await desk.client(ONE).responses.delete(compacted.id)
        await _check_refused(desk, item)


async def _check_refused(desk: ResponsesHost, item: Any, key: str = ONE) -> None:
    with pytest.raises(BadRequestError) as caught:
        await _ask(desk, [{"role": "user", "content": "one"}, item], key)
    assert (caught.value.code, caught.value.param) == ("invalid_encrypted_content", "input[1].encrypted_content")


async def test_a_summary_is_not_in_the_item() -> None:
    async with open_client(parrot(), compactor=lambda _: "the summary") as desk:
        assert "the summary" not in str(_items(await _compact(desk, input="one")))


async def test_a_compaction_is_read_and_deleted_as_a_response_is_but_not_continued() -> None:
    async with open_client(parrot(), compactor=shortener, auth=AUTH) as desk:
        compacted = await _compact(desk, input="one")
        key = {"authorization": f"Bearer {ONE}"}
        read = await desk.http.get(f"/v1/responses/{compacted.id}", headers=key)
        assert read.json()["output"] == _items(compacted)
        listed = await desk.client(ONE).responses.input_items.list(compacted.id)
        assert [item.type for item in listed.data] == ["message"]
        stranger = await desk.http.get(f"/v1/responses/{compacted.id}", headers={"authorization": f"Bearer {OTHER}"})
        assert stranger.status_code == 404
        with pytest.raises(BadRequestError) as caught:
            await desk.client(ONE).responses.create(model="x", input="x", previous_response_id=compacted.id)
        assert caught.value.code == "previous_response_not_found"


async def test_the_input_of_a_response_shows_the_compaction_and_not_the_summary() -> None:
    async with open_client(parrot(), compactor=lambda _: "the summary") as desk:
        item = _items(await _compact(desk, input="one"))[-1]
        response = await _ask(desk, [item])
        read = await desk.http.get(f"/v1/responses/{response.id}/input_items", params={"order": "asc"})
        assert read.json()["data"][0] == item
        assert "the summary" not in read.text


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "x"}, "input"),
        ({"model": "x", "input": []}, "input"),
        ({"model": "x", "input": 5}, "input"),
        ({"model": "x", "input": [{"type": "nothing"}]}, "input[0].type"),
        ({"model": "x", "input": "x", "previous_response_id": "a b"}, "previous_response_id"),
        ({"model": 5, "input": "x"}, "model"),
        ({"model": "x", "input": [{"type": "compaction"}]}, "input[0].encrypted_content"),
        (
            {"model": "x", "input": [{"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}]},
            "input",
        ),
    ],
)
async def test_whatever_is_wrong_is_named(body: Any, param: str) -> None:
    async with open_client(parrot(), compactor=shortener) as desk:
        answer: httpx.Response = await desk.http.post("/responses/compact", json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
        assert not desk.runs()


async def test_instructions_are_refused_where_the_host_sets_them_itself() -> None:
    async with open_client(parrot(), compactor=shortener, instructions="refuse") as desk:
        with pytest.raises(BadRequestError) as caught:
            await _compact(desk, input="one", instructions="shout")
        assert caught.value.param == "instructions"


async def test_a_hook_sees_what_is_compacted() -> None:
    def hook(request: ChannelRequest, *, protocol_request: Any, **_: Any) -> ChannelRequest:
        if request.input[0].text == "secret":
            raise InvalidRequestError("Not that.", param="input")
        assert protocol_request.url.path == "/v1/responses/compact"
        return request

    async with open_client(parrot(), compactor=shortener, run_hook=hook) as desk:
        assert (await _compact(desk, input="open")).object == "response.compaction"
        with pytest.raises(BadRequestError, match="Not that"):
            await _compact(desk, input="secret")


async def test_tools_of_the_host_are_in_the_record_and_not_in_what_comes_back() -> None:
    till = Till()
    seen: list[list[Message]] = []

    def compactor(messages: list[Message]) -> str:
        seen.append(messages)
        return "added"

    async with open_client(till.agent([call("add", "c", a=1, b=2)], ["three"]), compactor=compactor) as desk:
        response = await desk.client().responses.create(model="x", input="add")
        compacted = await _compact(desk, previous_response_id=response.id)
        assert [item["type"] for item in _items(compacted)] == ["message", "compaction"]
        assert [message.role for message in seen[0]] == ["user", "assistant", "tool", "assistant"]
