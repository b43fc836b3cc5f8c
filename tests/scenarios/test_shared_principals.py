"""One API key on several channels is one person, with the real clients of both APIs."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from frontdesk import (
    AgentFrameworkHost,
    AnyAuth,
    ApiKeyAuth,
    AuthPolicy,
    ChannelIdentity,
    ExplicitAllowList,
    HmacAuth,
    OneTimeCodeIdentityLinker,
    SameConfidentialityTierOnly,
)
from frontdesk.access.principals import PrincipalRule, StoredRule
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.clock import SystemClock
from frontdesk.ids import RandomIds
from frontdesk.interfaces.channel import Channel
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import HostClient, serving
from tests.scenarios.cast import PlainAgent

KEYS = {"alice": "the-key-of-alice", "bob": "the-key-of-bob-long"}
ALICE, BOB = ({"x-api-key": key} for key in KEYS.values())


def host(store: Any, channels: Sequence[Channel], **options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(PlainAgent(), channels=list(channels), store=store, **options)


def pair(auth: Any, other: Any = None, **options: Any) -> list[Channel]:
    return [ResponsesChannel(auth=auth, **options), InvocationsChannel(auth=other or auth)]


def openai(client: HostClient, key: str = KEYS["alice"]) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key=key, max_retries=0)


async def invoke(client: HostClient, headers: Any = ALICE, **body: Any) -> dict[str, Any]:
    answer = await client.http.post("/invocations", json={"message": "hi", **body}, headers=headers)
    assert answer.status_code in (200, 202), answer.text
    return answer.json()


async def status(client: HostClient, run_id: str, headers: Any = ALICE) -> int:
    return (await client.http.get(f"/invocations/{run_id}", headers=headers)).status_code


async def is_shared(client: HostClient) -> bool:
    """Whether alice finds over Invocations what she has asked over Responses, and the other way round."""
    async with openai(client) as api:
        made = await api.responses.create(input="hi", model="m")
        seen = await status(client, made.id)
        run = await invoke(client)
        other = await client.http.get(f"/v1/responses/{run['id']}", headers=ALICE)
    assert (seen, other.status_code) in ((200, 200), (404, 404))
    return seen == 200


async def test_an_api_key_is_one_person_on_responses_and_invocations() -> None:
    auth = ApiKeyAuth(KEYS)
    channels = [*pair(auth), ConversationsChannel(auth=auth)]
    async with serving(host(InMemoryStateStore(), channels)) as client, openai(client) as api:
        made = await api.responses.create(input="hi", model="m")
        assert await status(client, made.id) == 200
        assert await status(client, made.id, BOB) == 404
        run = await invoke(client, session_id="s")
        assert (await api.responses.retrieve(run["id"])).id == run["id"]
        later = await api.responses.create(input="hi", model="m", previous_response_id=run["id"])
        assert later.output_text == "3 messages"
        conversation = await api.conversations.create()
        await api.responses.create(input="hi", model="m", conversation=conversation.id)
        queued = await api.responses.create(input="hi", model="m", background=True)
        cancelled = await client.http.post(f"/invocations/{queued.id}/cancel", headers=ALICE)
        assert cancelled.status_code == 200
        bob = openai(client, KEYS["bob"])
        with pytest.raises(Exception, match="404"):
            await bob.responses.retrieve(run["id"])
        await bob.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_two_auth_objects_with_the_same_keys_are_two_people(kind: str, tmp_path: Path) -> None:
    store = InMemoryStateStore() if kind == "memory" else SqliteStateStore(tmp_path / "state.db")
    async with serving(host(store, pair(ApiKeyAuth(KEYS), ApiKeyAuth(KEYS)))) as client:
        assert not await is_shared(client)


async def test_a_list_of_the_same_objects_is_one_auth() -> None:
    keys, signed = ApiKeyAuth(KEYS), HmacAuth({"alice": "the secret of another alice"})
    for first, second, shared in (
        ([keys, signed], [keys, signed], True),
        (AnyAuth([keys, signed], keep_ids_of="api_key"), AnyAuth([keys, signed], keep_ids_of="api_key"), True),
        (AnyAuth([keys, signed], keep_ids_of="api_key"), AnyAuth([keys, signed], keep_ids_of="hmac"), False),
        (AnyAuth([keys, signed], keep_ids_of="api_key"), keys, False),
    ):
        async with serving(host(InMemoryStateStore(), pair(first, second))) as client:
            assert await is_shared(client) == shared


async def test_anonymous_callers_of_two_channels_are_not_joined() -> None:
    async with serving(host(InMemoryStateStore(), pair(None))) as client:
        run = await client.http.post("/invocations", json={"message": "hi"})
        assert (await client.http.get(f"/v1/responses/{run.json()['id']}")).status_code == 404


async def test_an_operator_s_resolver_decides_by_itself() -> None:
    seen: list[str] = []

    def resolve(identity: ChannelIdentity) -> str:
        seen.append(identity.channel)
        return f"{identity.channel}-{identity.native_id}"

    async with serving(host(InMemoryStateStore(), pair(ApiKeyAuth(KEYS)), identity_resolver=resolve)) as client:
        assert not await is_shared(client)
    assert set(seen) == {"responses", "invocations"}


@pytest.mark.parametrize(
    ("policy", "tiers", "shared"),
    [
        (None, ("public", "internal"), True),
        (SameConfidentialityTierOnly(), ("internal", "internal"), True),
        (SameConfidentialityTierOnly(), ("public", "internal"), False),
        (SameConfidentialityTierOnly(), (None, "internal"), False),
        (ExplicitAllowList([("responses", "invocations")]), ("public", "internal"), True),
        (ExplicitAllowList(allowed_pairs=[("public", "internal")]), ("public", "internal"), False),
    ],
)
async def test_the_link_policy_is_asked_about_channels_of_other_tiers(policy: Any, tiers: Any, shared: bool) -> None:
    auth = ApiKeyAuth(KEYS)
    channels = [
        ResponsesChannel(auth=auth, confidentiality_tier=tiers[0]),
        InvocationsChannel(auth=auth, confidentiality_tier=tiers[1]),
    ]
    async with serving(host(InMemoryStateStore(), channels, link_policy=policy)) as client:
        assert await is_shared(client) == shared


async def test_a_policy_that_fails_shares_nothing() -> None:
    def broken(context: Any) -> bool:
        raise RuntimeError("no")

    async with serving(host(InMemoryStateStore(), pair(ApiKeyAuth(KEYS)), link_policy=broken)) as client:
        assert not await is_shared(client)


async def test_the_home_survives_other_orders_and_a_channel_that_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    auth = ApiKeyAuth(KEYS)
    async with serving(host(SqliteStateStore(path), pair(auth))) as client:
        run = await invoke(client)
    for channels in (
        list(reversed(pair(auth))),
        [InvocationsChannel(auth=auth)],
        [InvocationsChannel(auth=auth), InvocationsChannel(name="second", path="/second", auth=auth)],
        pair(auth),
    ):
        async with serving(host(SqliteStateStore(path), channels)) as client:
            assert await status(client, run["id"]) == 200
            assert await status(client, run["id"], BOB) == 404


async def test_channels_that_get_other_auths_share_no_more(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with serving(host(SqliteStateStore(path), pair(ApiKeyAuth(KEYS)))) as client:
        run = await invoke(client)
    two = [ApiKeyAuth(KEYS), ApiKeyAuth(KEYS)]
    async with serving(host(SqliteStateStore(path), pair(*two))) as client:
        # Invocations is the channel that is known by another one's name: its principals are strangers now.
        assert await status(client, run["id"]) == 404
        assert not await is_shared(client)
    # Nobody knows which of the two the channel that was removed belonged to.
    others = [InvocationsChannel(auth=two[0]), InvocationsChannel(name="second", path="/second", auth=two[1])]
    async with serving(host(SqliteStateStore(path), others)) as client:
        made = await invoke(client)
        assert (await client.http.get(f"/second/{made['id']}", headers=ALICE)).status_code == 404


async def test_an_existing_state_keeps_its_people_apart(tmp_path: Path) -> None:
    """A state from before the rule: there are people, and nothing says how channels share them."""
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    async with serving(host(store, [InvocationsChannel(auth=ApiKeyAuth(KEYS))])) as client:
        run = await invoke(client)
    await forget_rule(path)
    for _ in range(2):
        async with serving(host(SqliteStateStore(path), pair(ApiKeyAuth(KEYS)))) as client:
            assert await status(client, run["id"]) == 200
            assert not await is_shared(client)


async def test_a_rule_that_cannot_be_read_shares_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "state.db"
    async with serving(host(SqliteStateStore(path), pair(ApiKeyAuth(KEYS)))) as client:
        assert await is_shared(client)
    await forget_rule(path, b'{"format":2,"joined":true}')
    async with serving(host(SqliteStateStore(path), pair(ApiKeyAuth(KEYS)))) as client:
        assert not await is_shared(client)
    assert any("principal rule cannot be decoded" in record.message for record in caplog.records)


async def forget_rule(path: Path, data: bytes | None = None) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        if data is None:
            connection.execute("DELETE FROM channel_values WHERE channel = ''")
        else:
            connection.execute("UPDATE channel_values SET data = ? WHERE channel = ''", (data,))


async def test_two_hosts_at_once_make_one_rule() -> None:
    store = InMemoryStateStore()
    rules = [StoredRule(store, SystemClock(), RandomIds()) for _ in range(2)]
    wrote = await asyncio.gather(*(rule.write(PrincipalRule(joined=True), None) for rule in rules))
    assert sorted(wrote) == [False, True]


async def test_allowlists_of_each_channel_see_its_own_name() -> None:
    auth = ApiKeyAuth(KEYS)
    channels = [
        ResponsesChannel(auth=auth, allowlist=AuthPolicy.native_allowlist(["alice", "bob"], channel="responses")),
        InvocationsChannel(auth=auth, allowlist=AuthPolicy.native_allowlist(["alice"], channel="invocations")),
    ]
    async with serving(host(InMemoryStateStore(), channels)) as client:
        assert await is_shared(client)
        refused = await client.http.post("/invocations", json={"message": "hi"}, headers=BOB)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "denied")
        assert (await client.http.post("/v1/responses", json={"input": "hi"}, headers=BOB)).status_code == 200


async def test_an_operator_may_name_a_principal_by_any_of_the_channels() -> None:
    one = host(InMemoryStateStore(), pair(ApiKeyAuth(KEYS)), linker=OneTimeCodeIdentityLinker())
    async with serving(one) as client:
        run = await invoke(client, background=True)
        for channel in ("responses", "invocations"):
            alice = ChannelIdentity(channel=channel, native_id="alice")
            assert (await one.get_continuation(run["id"], identity=alice)).run_id == run["id"]
        target = {"kind": "identities", "identities": [{"channel": "invocations", "native_id": "alice"}]}
        answer = await client.http.post(
            "/invocations", json={"message": "hi", "response_target": target}, headers=ALICE
        )
        assert answer.status_code == 200, answer.text
