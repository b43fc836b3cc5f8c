"""Sentences of the pages about the Responses API that were false once: each is asked of a started host."""

from typing import Any, get_args

import pytest
from openai.types.responses.service_tier import ServiceTier

from frontdesk.channels.conversations import ConversationsChannel
from frontdesk_testing import EchoAgent, FailingAgent
from tests.docs.pages import tables
from tests.docs.test_reference import spans
from tests.docs.test_responses_reference import PAGE
from tests.scenarios.responses.cast import Till, agent, build_answering, call, parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client
from tests.scenarios.responses.sockets import dial


def _row(heading: str, name: str) -> str:
    return next(row[1] for row in tables(PAGE)[heading] if spans(row[0])[0] == name)


async def test_a_get_with_stream_reads_the_events_if_they_were_kept() -> None:
    assert "`?stream=true` reads its stored [events](#background)" in _row("Routes", "GET /responses/{id}")
    async with open_client(parrot()) as desk:
        customer = AsyncCustomer(desk)
        events = await customer.events("hello", background=True)
        kept = await desk.http.get(f"/v1/responses/{events[0].response.id}?stream=true")
        assert (kept.status_code, kept.text.count("event: response.completed")) == (200, 1)
        plain = await customer.create("hello")
        refused = await desk.http.get(f"/v1/responses/{plain.id}?stream=true")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "no_events")


async def test_every_tier_of_the_api_is_taken_and_shown_as_the_api_shows_it() -> None:
    tiers = get_args(get_args(ServiceTier)[0])
    row = _row("What goes in", "service_tier")
    assert set(spans(row.partition(".")[0])) == set(tiers)
    shown = {tier: tier for tier in tiers} | {"auto": "default", "fast": "priority"}
    async with open_client(build_answering(lambda _: ["fine"]), forward=["service_tier"]) as desk:
        answers = {tier: (await desk.post({"input": "hello", "service_tier": tier})).json() for tier in tiers}
        assert {tier: answer["service_tier"] for tier, answer in answers.items()} == shown
    async with open_client(build_answering(lambda _: ["fine"])) as desk:
        assert (await desk.post({"input": "hello", "service_tier": "flex"})).json()["service_tier"] == "default"


class _Unopened(EchoAgent):
    """Fails before there is a stream."""

    def run(self, *args: Any, **options: Any) -> Any:
        raise ValueError("a secret")


@pytest.mark.parametrize("target", [_Unopened, FailingAgent])
async def test_a_failed_run_is_a_response_on_a_websocket_and_no_error(target: type[Any]) -> None:
    async with open_client(target()) as desk, dial(desk) as line:
        answer = (await desk.post({"input": "hello"})).json()
        assert answer["status"] == "failed"
        last = await line.ask("hello")
        assert (last["type"], last["response"]["error"]) == ("response.failed", answer["error"])
        assert {run.run_id for run in desk.runs()} == {answer["id"], last["response"]["id"]}


async def test_a_call_of_the_hosts_in_a_history_is_not_told() -> None:
    shown = {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "look",
        "arguments": "{}",
        "server_label": "desk",
        "output": "x",
    }
    target = build_answering(lambda _: ["fine"])
    async with open_client(target) as desk:
        said = [{"role": "user", "content": "look"}, shown, {"role": "user", "content": "and now?"}]
        assert (await desk.post({"input": said})).json()["status"] == "completed"
        assert [text for _, text in target.client.said()] == ["look", "and now?"]


async def test_an_answer_before_a_call_of_the_hosts_counts_as_given_earlier() -> None:
    till = Till()
    async with open_client(till.agent([call("pay", amount=5)], ["paid"])) as desk:
        (question,) = (await desk.post({"input": "pay 5"})).json()["output"]
        answer = {"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": True}
        made = {"type": "mcp_call", "id": "mcp_1", "name": "pay", "arguments": "{}", "server_label": "desk"}
        later = {"role": "user", "content": "thanks"}
        assert (await desk.post({"input": [question, answer, made, later]})).status_code == 200
        assert till.ran == []


async def test_an_item_is_found_by_the_id_of_the_hosts_and_by_no_other() -> None:
    async with open_client(parrot(), beside=[ConversationsChannel()]) as desk:

        async def status(item_id: str, **more: Any) -> int:
            named = {"type": "item_reference", "id": item_id}
            return (await desk.post({"input": [named, {"role": "user", "content": "go on"}], **more})).status_code

        own = {"type": "message", "role": "user", "id": "msg_of_mine", "content": "hello"}
        stored = (await desk.post({"input": [own]})).json()
        unstored = (await desk.post({"input": "hello", "store": False})).json()
        assert await status(stored["output"][0]["id"]) == 200
        assert await status("msg_of_mine") == 404
        assert await status(unstored["output"][0]["id"]) == 404
        body = {"items": [{"type": "message", "role": "user", "content": "hello"}]}
        conversation = (await desk.http.post("/v1/conversations", json=body)).json()["id"]
        (item,) = (await desk.http.get(f"/v1/conversations/{conversation}/items")).json()["data"]
        assert await status(item["id"], conversation=conversation) == 200
        assert await status(item["id"]) == 404


async def test_a_response_repeats_what_was_forwarded_and_has_defaults_for_the_rest() -> None:
    def hotter(request: Any, **_: Any) -> Any:
        return request.replace(options={**request.options, "temperature": 1.5})

    target = agent(["fine"], ["fine"], default_options={"top_p": 0.1})
    async with open_client(target, run_hook=hotter) as desk:
        shown = (await desk.post({"input": "hello", "temperature": 0.5, "truncation": "auto"})).json()
        assert target.client.options[-1]["temperature"] == 1.5
        assert target.client.options[-1]["top_p"] == 0.1
        assert (shown["temperature"], shown["top_p"], shown["truncation"]) == (0.5, 1.0, "disabled")


async def test_background_may_be_false_on_a_websocket_and_not_true() -> None:
    async with open_client(parrot()) as desk, dial(desk) as line:
        assert (await line.response("hello", background=False))["status"] == "completed"
        assert (await line.error("hello", background=True))["param"] == "background"
        assert (await line.error("hello", generate=False))["param"] == "generate"
