"""`/link`, `/unlink` and `/whoami` as the text of an invocation, and what a link changes for a shared principal."""

from typing import Any

import pytest
from openai import AsyncOpenAI

from frontdesk import AgentFrameworkHost, ApiKeyAuth, OneTimeCodeIdentityLinker
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import EchoAgent, HostClient, parse_sse, serving
from tests.host.link_door import code_in

ALICE, ANN = {"x-api-key": "the-key-of-alice"}, {"x-api-key": "the-key-of-ann-long"}


def host(agent: Any, **options: Any) -> AgentFrameworkHost:
    """Alice is known to Responses and Invocations, and Ann to a channel with keys of its own."""
    auth, other = ApiKeyAuth({"alice": "the-key-of-alice"}), ApiKeyAuth({"ann": "the-key-of-ann-long"})
    channels = [
        ResponsesChannel(auth=auth),
        InvocationsChannel(auth=auth),
        InvocationsChannel(name="other", path="/other", auth=other),
    ]
    return AgentFrameworkHost(agent, channels=channels, store=InMemoryStateStore(), **options)


async def say(client: HostClient, path: str, headers: dict[str, str], message: Any, **body: Any) -> str:
    answer = await client.http.post(path, json={"message": message, **body}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "completed"
    return answer.json()["text"]


async def link(client: HostClient) -> None:
    code = code_in(await say(client, "/invocations", ALICE, "/link"))
    assert "If that is you, answer /link confirm" in await say(client, "/other", ANN, f"/link {code}")
    await say(client, "/other", ANN, "/link confirm")
    said = [await say(client, "/invocations", ALICE, "/link confirm") for _ in range(2)]
    assert any("share one conversation now" in text for text in said)


async def test_accounts_are_linked_and_separated_by_the_text_of_an_invocation() -> None:
    agent = EchoAgent()
    async with (
        serving(host(agent, linker=OneTimeCodeIdentityLinker())) as client,
        AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="the-key-of-alice") as api,
    ):
        await link(client)
        assert agent.seen == []
        assert "Linked with" in await say(client, "/invocations", ALICE, "/whoami")
        # What is linked is the person, on all channels that share the auth object.
        made = await api.responses.create(input="hi", model="m")
        assert (await client.http.get(f"/other/{made.id}", headers=ANN)).status_code == 200
        run = (await client.http.post("/other", json={"message": "hi"}, headers=ANN)).json()
        assert (await api.responses.retrieve(run["id"])).id == run["id"]
        assert "no longer linked" in await say(client, "/other", ANN, "/unlink")
        assert (await client.http.get(f"/invocations/{made.id}", headers=ALICE)).status_code == 200
        later = await api.responses.create(input="hi", model="m")
        assert (await client.http.get(f"/other/{later.id}", headers=ANN)).status_code == 404
        assert (await client.http.get(f"/invocations/{later.id}", headers=ALICE)).status_code == 200


async def test_a_command_is_answered_as_a_stream_if_one_is_asked_for() -> None:
    agent = EchoAgent()
    async with serving(host(agent, linker=OneTimeCodeIdentityLinker())) as client:
        answer = await client.http.post("/invocations", json={"message": "/whoami", "stream": True}, headers=ALICE)
        events = list(parse_sse(answer.content))
        assert [event.event for event in events][-1] == "completed"
        assert "Not linked" in answer.text
    assert agent.seen == []


async def test_other_texts_and_other_hosts_reach_the_agent() -> None:
    agent = EchoAgent()
    async with serving(host(agent, linker=OneTimeCodeIdentityLinker())) as client:
        for message in ("/help", "/linked", "please /link", "/ link", [{"type": "text", "text": "/link"}]):
            await say(client, "/invocations", ALICE, message)
        answer = await client.http.post("/v1/responses", json={"input": "/link"}, headers=ALICE)
        assert answer.status_code == 200
    assert len(agent.seen) == 6
    async with serving(host(agent)) as client:
        assert await say(client, "/invocations", ALICE, "/link") == "/link"


async def test_a_command_that_is_hidden_reaches_the_agent_and_the_names_can_be_others() -> None:
    agent = EchoAgent()
    one = InvocationsChannel(auth=ApiKeyAuth({"alice": "the-key-of-alice"}))
    one.link_commands = {"link": "verbinden", "connect": None}
    two = AgentFrameworkHost(agent, channels=[one], linker=OneTimeCodeIdentityLinker())
    async with serving(two) as client:
        assert code_in(await say(client, "/invocations", ALICE, "/verbinden"))
        await say(client, "/invocations", ALICE, "/link")
    assert len(agent.seen) == 1


async def test_who_has_to_link_first_can_and_who_may_not_come_in_can_not() -> None:
    auth = ApiKeyAuth({"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"})
    channel = InvocationsChannel(auth=auth, require_link=True)
    one = AgentFrameworkHost(EchoAgent(), channels=[channel], linker=OneTimeCodeIdentityLinker())
    async with serving(one) as client:
        refused = await client.http.post("/invocations", json={"message": "hi"}, headers=ALICE)
        assert refused.json()["error"]["code"] == "link_required"
        assert code_in(await say(client, "/invocations", ALICE, "/link"))
        nobody = await client.http.post("/invocations", json={"message": "/link"}, headers={"x-api-key": "wrong" * 5})
        assert nobody.status_code == 401


async def test_a_caller_without_credentials_has_nothing_to_link() -> None:
    one = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], linker=OneTimeCodeIdentityLinker())
    async with serving(one) as client:
        refused = await client.http.post("/invocations", json={"message": "/link"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_wrong_code_is_an_answer_and_no_error(stream: bool) -> None:
    async with serving(host(EchoAgent(), linker=OneTimeCodeIdentityLinker())) as client:
        body = {"message": "/link AAAA-AAAAAA", "stream": stream}
        answer = await client.http.post("/invocations", json=body, headers=ALICE)
        assert answer.status_code == 200
        assert "code" in answer.text
