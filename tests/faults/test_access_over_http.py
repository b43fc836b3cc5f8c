"""Access over HTTP: who came in elsewhere and should not have, and what they read there."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost, ApiKeyAuth, AuthPolicy, BearerAuth, ChannelConfigurationError, ResponseTarget
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import ForbiddenError
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ChannelRequest
from frontdesk_testing import EchoAgent, FakeClock, HostClient, serving
from tests.access_matrix.issuer import AUDIENCE, Issuers, serve_issuers
from tests.scenarios.cast import PlainAgent
from tests.scenarios.pausing import Inn


def _doors(auth: Any) -> list[Any]:
    return [ResponsesChannel(auth=auth), ConversationsChannel(auth=auth), InvocationsChannel(auth=auth)]


@asynccontextmanager
async def _tokens(target: Any) -> AsyncIterator[tuple[HostClient, Issuers]]:
    async with serve_issuers() as issuers:
        auth = BearerAuth(issuer=issuers.url("north"), audience=AUDIENCE)
        async with serving(AgentFrameworkHost(target, channels=_doors(auth))) as client:
            yield client, issuers


def _as(issuers: Issuers, subject: str | None) -> dict[str, str]:
    token = issuers.token("north", sub=subject) if subject else issuers.token("north", without=("sub",))
    return {"authorization": f"Bearer {token}"}


async def test_a_valid_token_read_other_users_sessions() -> None:
    async with _tokens(PlainAgent()) as (client, issuers):
        alice, bob = _as(issuers, "alice"), _as(issuers, "bob")
        made = await client.invoke("secret", session_id="s", headers=alice)
        assert (await client.invoke("mine", session_id="s", headers=bob))["text"] == "1 messages"
        for path in (f"/invocations/{made['id']}", f"/v1/responses/{made['id']}"):
            assert (await client.http.get(path, headers=bob)).status_code == 404
        assert (await client.invoke("more", session_id="s", headers=alice))["text"] == "3 messages"


async def test_a_token_without_a_subject_saw_everything() -> None:
    agent = EchoAgent()
    async with _tokens(agent) as (client, issuers):
        made = await client.invoke("secret", session_id="s", headers=_as(issuers, "alice"))
        for method, path, body in (
            ("GET", f"/invocations/{made['id']}", None),
            ("POST", "/invocations", {"message": "and?", "session_id": "s"}),
            ("POST", "/v1/responses", {"input": "and?"}),
            ("POST", "/v1/conversations", {}),
            ("GET", "/v1/models", None),
        ):
            refused = await client.http.request(method, path, json=body, headers=_as(issuers, None))
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_token"), path
            assert "secret" not in refused.text
    assert len(agent.seen) == 1


async def test_an_id_that_was_resumed_took_over_a_strangers_conversation() -> None:
    auth = ApiKeyAuth({"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"})
    alice, bob = {"x-api-key": "the-key-of-alice"}, {"x-api-key": "the-key-of-bob-long"}
    agent = PlainAgent()
    async with serving(AgentFrameworkHost(agent, channels=_doors(auth))) as client:
        run = await client.invoke("secret", headers=alice)
        response = (await client.http.post("/responses", json={"input": "secret"}, headers=alice)).json()
        items = [{"type": "message", "role": "user", "content": "secret"}]
        conversation = (await client.http.post("/conversations", json={"items": items}, headers=alice)).json()
        await client.invoke("hello", headers=bob)
        for path, body in (
            ("/invocations", {"message": "go on", "session_id": run["session_id"]}),
            ("/invocations", {"message": "go on", "session_id": response["id"]}),
            ("/responses", {"input": "go on", "previous_response_id": response["id"]}),
            ("/responses", {"input": "go on", "previous_response_id": run["id"]}),
            ("/responses", {"input": "go on", "conversation": conversation["id"]}),
            ("/responses", {"input": "go on", "conversation": run["session_id"]}),
        ):
            answer = await client.http.post(path, json=body, headers=bob)
            # A session's name is the caller's own: whoever says the same one means another session.
            assert answer.status_code in ((200,) if path == "/invocations" else (400, 404)), body
    assert [heard for heard in agent.heard if "go on" in heard] == [["go on"], ["go on"]]


async def test_a_checkpoint_of_anothers_was_restored() -> None:
    auth = ApiKeyAuth({"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"})
    inn = Inn()
    async with serving(AgentFrameworkHost(inn, channels=[InvocationsChannel(auth=auth)])) as client:
        headers = {"x-api-key": "the-key-of-alice"}
        asked = await client.invoke("Ada", session_id="s", headers=headers)
        (question,) = asked["requests"]
        answers = {question["id"]: {"accepted": True, "nights": 2}}
        for body in (
            {"session_id": "s", "responses": answers},
            {"session_id": asked["session_id"], "responses": answers},
            {"session_id": "s", "checkpoint_id": asked["checkpoint_id"] or "cp_1"},
            {"session_id": "s", "checkpoint_id": asked["checkpoint_id"] or "cp_1", "responses": answers},
        ):
            refused = await client.http.post("/invocations", json=body, headers={"x-api-key": "the-key-of-bob-long"})
            assert refused.is_client_error, body
            assert "Ada" not in refused.text
        assert inn.ledger == []


async def test_sends_to_others_ignored_the_list() -> None:
    agent = EchoAgent()
    host = AgentFrameworkHost(agent, channels=[InvocationsChannel()])
    alice = ChannelIdentity(channel="invocations", native_id="alice")
    bob = ChannelIdentity(channel="invocations", native_id="bob")
    async with serving(host):
        context = host._get_context("invocations")
        for target in (ResponseTarget.identity(bob), ResponseTarget.identities([alice, bob])):
            request = ChannelRequest(channel="invocations", input="for bob", response_target=target)
            for call in (context.run, context.stream, context.submit):
                with pytest.raises(ForbiddenError, match="only list identities of the caller"):
                    await call(request, Caller(identity=alice))
    assert agent.seen == []


async def test_a_denied_caller_read_what_the_agent_is_called() -> None:
    channels = [ResponsesChannel(), InvocationsChannel()]
    agent = EchoAgent(name="confidential")
    host = AgentFrameworkHost(agent, channels=channels, default_allowlist=AuthPolicy.native_allowlist(["bob"]))
    async with serving(host) as client:
        for path in ("/v1/models", "/v1/models/confidential", "/invocations/docs/openapi.json"):
            refused = await client.http.get(path)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "denied")
            assert "confidential" not in refused.text


async def test_a_run_was_put_off_that_goes_on_from_anothers() -> None:
    auth = ApiKeyAuth({"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"})
    async with serving(AgentFrameworkHost(EchoAgent(), channels=[ResponsesChannel(auth=auth)])) as client:
        made = await client.http.post("/responses", json={"input": "x"}, headers={"x-api-key": "the-key-of-alice"})
        bob = {"x-api-key": "the-key-of-bob-long"}
        await client.http.post("/responses", json={"input": "I was here"}, headers=bob)
        body = {"input": "go on", "background": True, "previous_response_id": made.json()["id"]}
        refused = await client.http.post("/responses", json=body, headers=bob)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "previous_response_not_found")


UNPROVED = [{}, {"email_verified": False}, {"email_verified": "true"}, {"xms_edov": False}]


@pytest.mark.parametrize("claims", UNPROVED, ids=str)
@pytest.mark.parametrize("used_as", ["a claim on the list", "a claim that is required", "the subject"])
async def test_an_address_that_nobody_had_verified_was_believed(used_as: str, claims: dict[str, Any]) -> None:
    """In some directories everyone can write any address into their own account."""
    options: dict[str, Any] = {
        "a claim that is required": {"required_claims": {"email": "boss@example.com"}},
        "the subject": {"subject_claim": "email"},
    }.get(used_as, {})
    rule = AuthPolicy.linked_claim_allowlist("email", "boss@example.com") if used_as == "a claim on the list" else None
    async with serve_issuers() as issuers:
        auth = BearerAuth(issuer=issuers.url("north"), audience=AUDIENCE, **options)
        host = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel(auth=auth)], default_allowlist=rule)
        async with serving(host) as client:
            told: list[int] = []
            proved: dict[str, Any] = {"email_verified": True}
            for more in (claims, proved):
                token = issuers.token("north", email="boss@example.com", **more)
                headers = {"authorization": f"Bearer {token}"}
                told.append(
                    (await client.http.post("/invocations", json={"message": "x"}, headers=headers)).status_code
                )
    assert told == [401 if used_as == "the subject" else 403, 200]


async def test_a_token_that_had_ended_went_on_over_an_open_websocket() -> None:
    clock, agent = FakeClock(time.time()), EchoAgent()
    async with serve_issuers() as issuers:
        auth = BearerAuth(issuer=issuers.url("north"), audience=AUDIENCE, clock=clock)
        async with serving(AgentFrameworkHost(agent, channels=[ResponsesChannel(auth=auth)])) as client:
            url = client.base_url.replace("http", "ws") + "/v1/responses"
            async with connect(url, additional_headers=_as(issuers, "alice"), proxy=None) as socket:
                told: list[Any] = []
                for _ in range(2):
                    await socket.send(json.dumps({"type": "response.create", "input": "hello"}))
                    event = json.loads(await socket.recv())
                    while event["type"] not in ("response.completed", "error"):
                        event = json.loads(await socket.recv())
                    told.append(event["type"] if event["type"] != "error" else event["error"]["code"])
                    clock.advance(7_200)
    assert told == ["response.completed", "invalid_token"]
    assert len(agent.seen) == 1


PUBLIC = ["0.0.0.0", "::", "", "192.168.7.9", "203.0.113.9", "concierge.example"]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_host_was_bound_to_all_interfaces_without_a_password(address: str) -> None:
    host = AgentFrameworkHost(EchoAgent(), channels=_doors(None))
    with pytest.raises(ChannelConfigurationError) as caught:
        host.serve(address)
    assert len(caught.value.findings) == 3


async def test_another_server_bound_the_host_to_all_interfaces() -> None:
    """Nobody asks the host about its address then; it looks at where each caller comes from."""
    agent = EchoAgent()
    host = AgentFrameworkHost(agent, channels=_doors(None))
    async with host.app.router.lifespan_context(host.app):
        transport = httpx.ASGITransport(app=host.app, client=("203.0.113.9", 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            for path, body in (("/invocations", {"message": "x"}), ("/v1/responses", {"input": "x"})):
                assert (await client.post(path, json=body)).status_code == 401
            assert (await client.post("/v1/conversations", json={})).status_code == 401
    assert agent.seen == []
