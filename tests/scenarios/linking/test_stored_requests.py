"""What people ask before they link is answered after it, once, if the host stores it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    AuthPolicy,
    CallableAllowlist,
    ChannelConfigurationError,
    OneTimeCodeIdentityLinker,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.access import AccessRule, AllowlistDecision, AuthorizationContext
from frontdesk_testing import EchoAgent, HostClient, serving
from tests.host.link_door import code_in as code_of_page
from tests.scenarios.desk import until
from tests.scenarios.linking.pair import Pair, code_in, open_pair
from tests.scenarios.stores import new_store

ALICE, ANN = {"x-api-key": "the-key-of-alice"}, {"x-api-key": "the-key-of-ann-long"}
QUESTION = "what is due?"


async def link(pair: Pair) -> None:
    code = code_in(await pair.red.says("/link"))
    asked = len(await pair.red.all())
    await pair.blue.says(f"/link {code}")
    await pair.blue.says("/link confirm")
    assert "has entered your code" in await pair.red.next(asked + 1)
    assert (await pair.red.says("/link confirm")).startswith("Done")


async def test_a_chat_sender_gets_the_answer_to_the_message_that_needed_a_link() -> None:
    agent = EchoAgent()
    async with open_pair(agent, default_allowlist=AuthPolicy.require_link(), max_link_request_bytes=64 * 1024) as pair:
        assert (await pair.blue.says(QUESTION)).startswith("Your code is ")
        before = len(await pair.blue.all())
        await link(pair)
        # Two replies to commands, the note about the link, and the answer.
        await pair.blue.next(before + 4)
        assert (await pair.blue.all())[before:].count(QUESTION) == 1
        assert await pair.blue.says("more") == "more"
    assert [message.text for message in agent.seen[0]] == [QUESTION]


async def test_without_the_setting_the_message_is_not_answered() -> None:
    agent = EchoAgent()
    async with open_pair(agent, default_allowlist=AuthPolicy.require_link()) as pair:
        await pair.blue.says(QUESTION)
        before = len(await pair.blue.all())
        await link(pair)
        await pair.blue.next(before + 3)
        assert await pair.blue.says("more") == "more"
        assert QUESTION not in await pair.blue.all()
    assert [message.text for message in agent.seen[0]] == ["more"]


async def test_who_is_denied_after_the_link_is_refused_and_reaches_no_agent() -> None:
    def decide(context: AuthorizationContext) -> AllowlistDecision:
        linked = context.phase == "post_link"
        return AllowlistDecision.DENY if linked else AllowlistDecision.ABSTAIN

    agent, rule = EchoAgent(), AccessRule(allowlist=CallableAllowlist(decide), require_link=True)
    async with open_pair(agent, default_allowlist=rule, max_link_request_bytes=4096) as pair:
        await pair.blue.says(QUESTION)
        before = len(await pair.blue.all())
        await link(pair)
        await pair.blue.next(before + 4)
        assert any("not allowed" in text or "can't" in text for text in (await pair.blue.all())[before:])
    assert agent.seen == []


@asynccontextmanager
async def http_host(agent: Any, **options: Any) -> AsyncIterator[HostClient]:
    """Alice is a caller of Responses and Invocations, and Ann of a channel that she reaches without a link."""
    auth, other = ApiKeyAuth({"alice": "the-key-of-alice"}), ApiKeyAuth({"ann": "the-key-of-ann-long"})
    channels = [
        ResponsesChannel(auth=auth, allowlist=AuthPolicy.require_link()),
        InvocationsChannel(auth=auth),
        InvocationsChannel(name="other", path="/other", auth=other),
    ]
    linker = OneTimeCodeIdentityLinker()
    host = AgentFrameworkHost(agent, channels=channels, store=new_store(), linker=linker, **options)
    async with serving(host) as client:
        yield client


async def say(client: HostClient, path: str, headers: dict[str, str], message: str) -> str:
    answer = await client.http.post(path, json={"message": message}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["text"]


async def link_over_http(client: HostClient) -> None:
    code = code_of_page(await say(client, "/invocations", ALICE, "/link"))
    await say(client, "/other", ANN, f"/link {code}")
    await say(client, "/other", ANN, "/link confirm")
    said = [await say(client, "/invocations", ALICE, "/link confirm") for _ in range(2)]
    assert any("share one conversation now" in text for text in said)


async def response(client: HostClient, run_id: str, status: str) -> Any:
    """Return a response once it has a status."""
    found: Any = None

    async def reached() -> bool:
        nonlocal found
        answer = await client.http.get(f"/v1/responses/{run_id}", headers=ALICE)
        found = answer.json()
        return answer.status_code == 200 and found["status"] == status

    await until(reached)
    return found


async def test_a_background_request_over_http_runs_after_the_link() -> None:
    agent = EchoAgent()
    async with http_host(agent, max_link_request_bytes=4096) as client:
        body = {"input": QUESTION, "model": "m", "background": True}
        refused = await client.http.post("/v1/responses", json=body, headers=ALICE)
        assert refused.status_code == 403
        error = refused.json()["error"]
        assert error["code"] == "link_required"
        run_id = error["message"].rstrip(".").rpartition(" ")[2]
        assert run_id.startswith("resp_")
        # One that is not a background request is not stored: its caller does not come back for it.
        plain = await client.http.post("/v1/responses", json={**body, "background": False}, headers=ALICE)
        assert plain.json()["error"]["message"] == "Link your account first."
        await link_over_http(client)
        done = await response(client, run_id, "completed")
        assert done["output"][0]["content"][0]["text"] == QUESTION
    assert [[message.text for message in messages] for messages in agent.seen] == [[QUESTION]]


async def test_a_stored_request_with_an_idempotency_key_is_found_by_repeating_it() -> None:
    agent = EchoAgent()
    async with http_host(agent, max_link_request_bytes=4096) as client:
        body, headers = {"input": QUESTION, "model": "m", "background": True}, {**ALICE, "Idempotency-Key": "one"}
        refused = await client.http.post("/v1/responses", json=body, headers=headers)
        assert "Repeat it to get its answer." in refused.json()["error"]["message"]
        await link_over_http(client)
        repeated = await client.http.post("/v1/responses", json=body, headers=headers)
        assert repeated.status_code == 200, repeated.text
        await response(client, repeated.json()["id"], "completed")
    assert len(agent.seen) == 1


async def test_by_default_no_request_over_http_is_stored() -> None:
    agent = EchoAgent()
    async with http_host(agent) as client:
        body = {"input": QUESTION, "model": "m", "background": True}
        refused = await client.http.post("/v1/responses", json=body, headers=ALICE)
        assert refused.json()["error"]["message"] == "Link your account first."
        await link_over_http(client)
        answer = await client.http.post("/v1/responses", json={"input": "more", "model": "m"}, headers=ALICE)
        assert answer.status_code == 200
    assert [[message.text for message in messages] for messages in agent.seen] == [["more"]]


@pytest.mark.parametrize(
    ("most", "finding"),
    [
        (0, "max_link_request_bytes must be at least 1"),
        (True, "max_link_request_bytes must be a whole number, got bool"),
        (65537, "max_link_request_bytes must be at most 65536, got 65537"),
    ],
)
def test_a_wrong_size_is_a_finding(most: Any, finding: str) -> None:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(
            EchoAgent(),
            channels=[InvocationsChannel()],
            linker=OneTimeCodeIdentityLinker(),
            max_link_request_bytes=most,
        )
    assert finding in caught.value.findings


def test_a_size_without_a_linker_is_a_finding() -> None:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], max_link_request_bytes=1024)
    assert caught.value.findings == (
        "max_link_request_bytes: the host has no linker=, so no request can wait for a link",
    )
