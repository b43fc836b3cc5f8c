"""A hook sees what came over the wire, on every channel: the payload, and on HTTP what surrounds it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import connect

from frontdesk import ChannelRequest
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.cast import echo
from tests.scenarios.desk import InvocationsHost, open_client
from tests.scenarios.messages.chat import open_chat


class Notes:
    """A hook that writes down what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
        self.seen.append(protocol_request)
        return request


BODIES = {
    "/invocations": {"message": "hello", "metadata": {"shop": "7"}},
    "/responses": {"input": "hello", "hosting": {"app_user_id": "alice"}},
    "/v1/conversations": {"metadata": {"shop": "7"}, "items": []},
}


@pytest.mark.parametrize("path", BODIES)
async def test_the_body_of_a_request_could_not_be_read_by_a_hook(path: str) -> None:
    notes, body = Notes(), BODIES[path]
    channels = [kind(run_hook=notes) for kind in (InvocationsChannel, ResponsesChannel, ConversationsChannel)]
    async with open_client(echo, channels=channels) as desk:
        answer = await desk.client.post(path, json=body, params={"a": "b"}, headers={"x-shop": "7"})
    assert answer.status_code == 200, answer.text
    (seen,) = notes.seen
    assert seen == body
    assert json.loads(json.dumps(seen)) == body
    assert (seen.headers["x-shop"], seen.url.path, seen.query_params["a"]) == ("7", path, "b")
    assert seen.request.method == "POST"


async def test_a_message_on_a_socket_could_not_be_read_by_a_hook() -> None:
    notes, sent = Notes(), {"type": "response.create", "input": "hello", "shop": "7"}
    async with (
        open_client(echo, channels=[ResponsesChannel(run_hook=notes)]) as desk,
        connect(f"ws://127.0.0.1:{desk.port}/responses", additional_headers={"x-shop": "7"}) as socket,
    ):
        await socket.send(json.dumps(sent))
        while json.loads(await socket.recv())["type"] != "response.completed":
            pass
    (seen,) = notes.seen
    assert (seen, seen.headers["x-shop"]) == (sent, "7")


async def test_a_hook_of_a_chat_was_shown_nothing() -> None:
    notes = Notes()
    async with open_chat(echo, run_hook=notes) as chat:
        ann = await chat.platform.user("Ann")
        event = await chat.platform.say(ann, "hello")
        await chat.wait_for_answers(ann.chat_id)
    (seen,) = notes.seen
    assert (seen["event_id"], seen["sender"]["name"], seen["message"]["text"]) == (event.event_id, "Ann", "hello")


async def test_a_chat_without_a_hook_keeps_no_payload() -> None:
    kept: list[Any] = []

    async def note(text: str) -> str:
        return text

    async with open_chat(note) as chat:
        prepare = chat.channel.prepare

        async def noting(item: Any) -> Any:
            kept.append(item.payload)
            return await prepare(item)

        chat.channel.prepare = noting
        ann = await chat.platform.user("Ann")
        await chat.platform.say(ann, "hello")
        await chat.wait_for_answers(ann.chat_id)
    assert kept == [None]


def _order(request: ChannelRequest, **_: Any) -> ChannelRequest:
    return replace(request, input=f"an order of {request.attributes['customer_id']}")


def _open(**options: Any) -> InvocationsChannel:
    return InvocationsChannel(extra_fields="attributes", **options)


async def _read_refusal(desk: InvocationsHost, body: Any) -> tuple[int, str]:
    answer = await desk.post(body)
    return answer.status_code, answer.json()["error"]["param"]


async def test_the_fields_of_a_deployment_were_refused() -> None:
    async with open_client(echo, _open(run_hook=_order)) as desk:
        answer = await desk.post({"customer_id": "c-1", "options": None})
    assert (answer.status_code, answer.json()["text"]) == (200, "you said an order of c-1")


async def test_extra_fields_stand_beside_those_of_the_protocol() -> None:
    async with open_client(echo, _open(run_hook=lambda request, **_: request)) as desk:
        answer = await desk.post({"message": "hello", "customer_id": "c-1"})
        assert answer.json()["text"] == "you said hello"
        # What the protocol knows is as strict as ever.
        assert await _read_refusal(desk, {"message": "hello", "stream": "yes"}) == (400, "stream")
        assert await _read_refusal(desk, {"message": "hello", "options": {"model": "x"}}) == (400, "options")
        # Nobody has made an input of it.
        assert (await desk.post({"customer_id": "c-1"})).status_code == 400
        assert (await desk.post({})).status_code == 400


async def test_extra_fields_are_refused_unless_a_channel_takes_them() -> None:
    async with open_client(echo, InvocationsChannel(run_hook=_order)) as desk:
        assert (await desk.post({"message": "hello", "customer_id": "c-1"})).status_code == 400


async def test_the_document_says_that_there_may_be_other_fields() -> None:
    async with open_client(echo, _open()) as desk:
        document = (await desk.client.get("/invocations/docs/openapi.json")).json()
    kinds = document["components"]["schemas"]["InvocationBody"]["oneOf"]
    assert all(kind["additionalProperties"] for kind in kinds)
    assert kinds[-1]["required"] == []


@pytest.mark.parametrize("path", ["/public/responses", "/public"])
async def test_a_path_that_ends_in_responses_was_a_prefix(path: str) -> None:
    async with open_client(echo, channels=[ResponsesChannel(path=path)]) as desk:
        answer = await desk.client.post("/public/responses", json={"input": "hello"})
        assert answer.status_code == 200
        found = await desk.client.get(f"/public/responses/{answer.json()['id']}")
        assert found.json()["output"][0]["content"][0]["text"] == "you said hello"
        assert (await desk.client.post("/public/responses/responses", json={"input": "hello"})).status_code != 200
