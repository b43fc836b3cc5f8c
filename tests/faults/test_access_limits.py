"""Too much of everything: what a caller may ask for, over the wire and in each channel's words."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI, RateLimitError
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ChannelConfigurationError, HttpLimits, RateLimit
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, GatedAgent, HostClient, serving
from tests.docs.test_examples import direct
from tests.scenarios.desk import until

ALICE, BOB = {"x-api-key": "the key of alice, long enough"}, {"x-api-key": "the key of bob, long enough"}
AUTH = ApiKeyAuth({"alice": ALICE["x-api-key"], "bob": BOB["x-api-key"]})
# Slow enough that nothing comes back while a test runs.
TWO = HttpLimits(per_caller=RateLimit(2, 3_600))


def host_of(target: Any, limits: HttpLimits | None, **options: Any) -> AgentFrameworkHost:
    settings = {"auth": AUTH, "limits": limits}
    channels = [
        InvocationsChannel(**settings),
        ResponsesChannel(**settings, **options),
        ConversationsChannel(**settings),
    ]
    return AgentFrameworkHost(target, channels=channels)


async def post(client: HostClient, path: str, headers: dict[str, str], **body: Any) -> httpx.Response:
    return await client.http.post(path, json=body, headers=headers)


@pytest.mark.parametrize(
    ("path", "body"),
    [("/invocations", {"message": "hi"}), ("/v1/responses", {"input": "hi"}), ("/v1/conversations", {})],
)
async def test_whoever_asks_too_often_is_told_when_to_come_back(path: str, body: dict[str, Any]) -> None:
    async with serving(host_of(EchoAgent(), TWO)) as client:
        told = [await post(client, path, ALICE, **body) for _ in range(3)]
        assert [one.status_code for one in told] == [200, 200, 429]
        error, headers = told[2].json()["error"], told[2].headers
        assert error["code"] == "rate_limit_exceeded"
        assert 0 < int(headers["retry-after"]) <= 1_800
        assert headers["x-ratelimit-limit-requests"] == "2"
        assert headers["x-ratelimit-remaining-requests"] == "0"
        # Others are not hurt, and the other channels count for themselves.
        assert (await post(client, path, BOB, **body)).status_code == 200
        other = ("/v1/conversations", {}) if path != "/v1/conversations" else ("/invocations", {"message": "hi"})
        assert (await post(client, other[0], ALICE, **other[1])).status_code == 200


async def test_a_stranger_does_not_use_up_what_others_have() -> None:
    async with serving(host_of(EchoAgent(), HttpLimits(per_channel=RateLimit(2, 3_600)))) as client:
        for _ in range(10):
            assert (await post(client, "/invocations", {"x-api-key": "wrong"}, message="hi")).status_code == 401
        assert (await post(client, "/invocations", ALICE, message="hi")).status_code == 200


async def test_it_is_asked_before_the_body_is_read() -> None:
    agent = EchoAgent()
    async with serving(host_of(agent, TWO)) as client:
        for _ in range(2):
            await post(client, "/invocations", ALICE, message="hi")
        broken = await client.http.post("/invocations", content=b"{" * 100, headers=ALICE)
        assert broken.status_code == 429
    assert len(agent.seen) == 2


async def test_polls_count_like_everything_else() -> None:
    async with serving(host_of(EchoAgent(), TWO)) as client:
        made = (await post(client, "/invocations", ALICE, message="hi")).json()
        found = [(await client.http.get(f"/invocations/{made['id']}", headers=ALICE)).status_code for _ in range(2)]
        assert found == [200, 429]


async def test_the_openai_client_knows_what_to_do() -> None:
    async with serving(host_of(EchoAgent(), TWO)) as client:
        key = ALICE["x-api-key"]
        api = AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key=key, http_client=direct(), max_retries=0)
        async with api:
            for _ in range(2):
                await api.responses.create(model="any", input="hi")
            with pytest.raises(RateLimitError) as caught:
                await api.responses.create(model="any", input="hi")
        assert caught.value.code == "rate_limit_exceeded"
        assert caught.value.type == "rate_limit_error"


@pytest.mark.parametrize("path", ["/invocations", "/v1/responses"])
@pytest.mark.parametrize("stream", [True, False])
async def test_so_many_answers_are_made_at_once(path: str, stream: bool) -> None:
    agent = GatedAgent()
    body = {"message" if path == "/invocations" else "input": "one two", "stream": stream}
    limits = HttpLimits(max_running_per_caller=1, max_running=2)
    async with serving(host_of(agent, limits)) as client:
        held = asyncio.create_task(post(client, path, ALICE, **body))
        await agent.started.wait()
        refused = await post(client, path, ALICE, **body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
        assert refused.headers["retry-after"] == "1"
        # Looking is not running.
        assert (await client.http.get("/v1/models", headers=ALICE)).status_code == 200
        other = asyncio.create_task(post(client, path, BOB, **body))
        await until(lambda: agent.running == 2)
        assert (await post(client, path, BOB, **body)).status_code == 429
        agent.release.set()
        assert [(await one).status_code for one in (held, other)] == [200, 200]
        # What has ended makes room.
        assert (await post(client, path, ALICE, **body)).status_code == 200
    assert agent.most_at_once == 2


async def test_a_client_that_hangs_up_gives_its_place_back() -> None:
    agent = GatedAgent()
    async with serving(host_of(agent, HttpLimits(max_running_per_caller=1))) as client:
        async with client.http.stream("POST", "/invocations", json={"message": "a b", "stream": True}, headers=ALICE):
            await agent.started.wait()
        await agent.cancelled.wait()
        agent.release.set()

        async def fits() -> bool:
            return (await post(client, "/invocations", ALICE, message="hi")).status_code == 200

        await until(fits)


async def test_a_run_that_goes_on_without_its_client_still_counts() -> None:
    agent = GatedAgent()
    async with serving(host_of(agent, HttpLimits(max_running_per_caller=1), finish_abandoned=True)) as client:
        body = {"input": "one two", "stream": True}
        async with client.http.stream("POST", "/v1/responses", json=body, headers=ALICE):
            await agent.started.wait()
        for _ in range(3):
            assert (await post(client, "/v1/responses", ALICE, input="hi")).status_code == 429
        agent.release.set()

        async def fits() -> bool:
            return (await post(client, "/v1/responses", ALICE, input="hi")).status_code == 200

        await until(fits)
    assert agent.most_at_once == 1


async def say(socket: Any, **fields: Any) -> dict[str, Any]:
    await socket.send(json.dumps({"type": "response.create", "input": "hi there", **fields}))
    while (event := json.loads(await socket.recv()))["type"] not in ("response.completed", "error"):
        pass
    return event


async def test_messages_on_a_socket_count_too() -> None:
    async with serving(host_of(EchoAgent(), HttpLimits(per_caller=RateLimit(3, 3_600)))) as client:
        url = client.base_url.replace("http", "ws") + "/v1/responses"
        # The handshake is one.
        async with connect(url, additional_headers=ALICE, proxy=None) as socket:
            kinds = [(await say(socket))["type"] for _ in range(2)]
            refused = await say(socket)
        assert kinds == ["response.completed"] * 2
        assert (refused["status"], refused["error"]["code"]) == (429, "rate_limit_exceeded")
        assert refused["error"]["headers"]["x-ratelimit-limit-requests"] == "3"
        assert (await post(client, "/v1/responses", ALICE, input="hi")).status_code == 429


async def test_answers_on_a_socket_are_counted_while_they_are_made() -> None:
    agent = GatedAgent()
    async with serving(host_of(agent, HttpLimits(max_running_per_caller=1))) as client:
        url = client.base_url.replace("http", "ws") + "/v1/responses"
        async with connect(url, additional_headers=ALICE, proxy=None) as socket:
            await socket.send(json.dumps({"type": "response.create", "input": "one two", "stream_id": "a"}))
            await agent.started.wait()
            await socket.send(json.dumps({"type": "response.create", "input": "one two", "stream_id": "b"}))
            while (event := json.loads(await socket.recv()))["type"] != "error":
                pass
            assert (event["status"], event["stream_id"]) == (429, "b")
            agent.release.set()
            while (event := json.loads(await socket.recv()))["type"] != "response.completed":
                pass
            assert (await say(socket))["type"] == "response.completed"


def test_wrong_limits_are_found_at_build() -> None:
    wrong: Any = {"limits": HttpLimits(per_caller=RateLimit(0), max_running=0)}
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel(**wrong), ResponsesChannel(**wrong)])
    found = ["limits: per_caller: requests must be at least 1", "limits: max_running must be at least 1"]
    named = [f"channel {name!r}: {one}" for name in ("invocations", "responses") for one in found]
    assert list(caught.value.findings) == named
