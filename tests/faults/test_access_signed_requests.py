"""Access by signature, over the wire: what was altered, replayed or left out elsewhere, and accepted."""

import json
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from frontdesk import AgentFrameworkHost, ApiKeyAuth, HmacAuth
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, HostClient, serving

SECRET = "a secret that both sides know"
KEY = "a-key-for-everyone-else"
BODY = b'{"message": "hello"}'
LONG = {"content-type": "application/json"}


def host_of(auth: Any, agent: EchoAgent | None = None) -> AgentFrameworkHost:
    channels = [InvocationsChannel(auth=auth), ResponsesChannel(auth=auth), ConversationsChannel(auth=auth)]
    return AgentFrameworkHost(agent or EchoAgent(), channels=channels)


async def send(
    client: HostClient, headers: dict[str, str], body: bytes = BODY, path: str = "/invocations"
) -> httpx.Response:
    return await client.http.post(path, content=body, headers={**LONG, **headers})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/invocations", BODY),
        ("/invocations?agent_session_id=a-b", BODY),
        ("/v1/responses", b'{"input": "hello"}'),
        ("/v1/conversations", b"{}"),
        ("/v1/conversations", b""),
    ],
)
async def test_a_signed_request_is_served(path: str, body: bytes) -> None:
    auth = HmacAuth({"alice": SECRET}, max_ahead_seconds=0)
    async with serving(host_of(auth)) as client:
        answer = await send(client, auth.sign("alice", "POST", path, body), body, path)
        assert answer.status_code == 200, answer.text


async def test_a_body_was_exchanged_behind_a_good_signature() -> None:
    auth, agent = HmacAuth({"alice": SECRET}, max_ahead_seconds=0), EchoAgent()
    async with serving(host_of(auth, agent)) as client:
        for path, body in (
            ("/invocations", BODY),
            ("/v1/responses", b'{"input": "hello"}'),
            ("/v1/conversations", b"{}"),
        ):
            headers = auth.sign("alice", "POST", path, body)
            answer = await send(client, headers, body.replace(b"}", b" }"), path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "body_altered"), path
    assert not agent.seen


async def test_a_request_was_replayed() -> None:
    auth, agent = HmacAuth({"alice": SECRET}, max_ahead_seconds=0), EchoAgent()
    async with serving(host_of(auth, agent)) as client:
        headers = auth.sign("alice", "POST", "/invocations", BODY)
        assert (await send(client, headers)).status_code == 200
        again = await send(client, headers)
        assert (again.status_code, again.json()["error"]["code"]) == (401, "signature_replayed")
        elsewhere = await send(client, auth.sign("alice", "POST", "/invocations", BODY), path="/invocations?x=1")
        assert elsewhere.status_code == 401
    assert len(agent.seen) == 1


async def test_what_is_signed_by_one_is_not_seen_by_another() -> None:
    auth = HmacAuth({"alice": SECRET, "bob": "another secret of another one"}, max_ahead_seconds=0)
    async with serving(host_of(auth)) as client:
        made = (await send(client, auth.sign("alice", "POST", "/invocations", BODY))).json()
        path = f"/invocations/{made['id']}"
        found = [
            (await client.http.get(path, headers=auth.sign(who, "GET", path))).status_code for who in ("alice", "bob")
        ]
    assert found == [200, 404]


async def test_a_socket_is_opened_by_a_signed_handshake_once() -> None:
    auth = HmacAuth({"alice": SECRET}, max_ahead_seconds=0)
    async with serving(host_of(auth)) as client:
        url = client.base_url.replace("http", "ws") + "/v1/responses"
        headers = auth.sign("alice", "GET", "/v1/responses")
        async with connect(url, additional_headers=headers, proxy=None) as socket:
            for _ in range(2):
                # The handshake has counted; what is said on the connection is not a replay of it.
                await socket.send(json.dumps({"type": "response.create", "input": "hello there"}))
                while (event := json.loads(await socket.recv()))["type"] not in ("response.completed", "error"):
                    pass
                assert event["type"] == "response.completed", event
        for refused in (headers, auth.sign("alice", "GET", "/v1/responses", b"a body"), {}):
            with pytest.raises(InvalidStatus) as caught:
                async with connect(url, additional_headers=refused, proxy=None):
                    pass
            assert caught.value.response.status_code == 401


async def test_a_key_and_a_signature_are_offered_together() -> None:
    signing = HmacAuth({"alice": SECRET}, max_ahead_seconds=0)
    async with serving(host_of([signing, ApiKeyAuth({"alice": KEY})])) as client:
        signed = (await send(client, signing.sign("alice", "POST", "/invocations", BODY))).json()
        keyed = (await send(client, {"x-api-key": KEY})).json()
        path = f"/invocations/{signed['id']}"
        # Both are called alice, and are not the same.
        assert (await client.http.get(path, headers={"x-api-key": KEY})).status_code == 404
        assert (await client.http.get(path, headers=signing.sign("alice", "GET", path))).status_code == 200
        path = f"/invocations/{keyed['id']}"
        assert (await client.http.get(path, headers={"x-api-key": KEY})).status_code == 200
        # A wrong signature is not made good by a key.
        wrong = {**signing.sign("alice", "GET", path), "x-signature": "v2=" + "0" * 64, "x-api-key": KEY}
        assert (await client.http.get(path, headers=wrong)).status_code == 401
        # Whoever names the hash of a body means it, whichever way they came in.
        assert (await send(client, {"x-api-key": KEY, "x-content-sha256": "0" * 64})).status_code == 401
