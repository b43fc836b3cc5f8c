"""Callers with tokens of an identity provider, on every HTTP channel, and how they meet people who chat."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    BearerAuth,
    ChannelIdentity,
    LinkProof,
    OAuthIdentityLinker,
    Oidc,
)
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import HostClient, serving
from tests.oidc import CLIENT_ID, CLIENT_SECRET, OidcProvider, oidc_provider

KEY = "a-key-that-is-long-enough"


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with oidc_provider() as one:
        yield one


async def count(messages: list[Any]) -> str:
    return f"message {len(messages)}"


def bearer(provider: OidcProvider) -> BearerAuth:
    return BearerAuth(issuer=provider.issuer, audience="api://desk")


def build_headers(provider: OidcProvider, **claims: Any) -> dict[str, str]:
    return {"authorization": f"Bearer {provider.sign(provider.claims(**claims))}"}


@pytest.mark.parametrize(
    ("path", "body"),
    [("/invocations", {"message": "hello"}), ("/v1/responses", {"input": "hello"}), ("/v1/conversations", {})],
)
async def test_a_wrong_token_is_refused_in_the_channel_s_shape(
    provider: OidcProvider, path: str, body: dict[str, str]
) -> None:
    auth = bearer(provider)
    channels = [InvocationsChannel(auth=auth), ResponsesChannel(auth=auth), ConversationsChannel(auth=auth)]
    async with serving(AgentFrameworkHost(count, channels=channels)) as client:
        good = await client.http.post(path, json=body, headers=build_headers(provider))
        assert good.status_code == 200, good.text
        for headers, challenge in (
            ({}, "Bearer"),
            ({"authorization": "Bearer nonsense"}, "Bearer"),
            ({"authorization": "Bearer a.b.c"}, 'Bearer error="invalid_token"'),
            (build_headers(provider, aud="api://other"), 'Bearer error="invalid_token"'),
            (build_headers(provider, exp=1), 'Bearer error="invalid_token"'),
        ):
            refused = await client.http.post(path, json=body, headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == challenge
            assert refused.json()["error"]["message"]


async def test_what_one_subject_makes_does_not_exist_for_another(provider: OidcProvider) -> None:
    host = AgentFrameworkHost(count, channels=[InvocationsChannel(auth=bearer(provider))])
    async with serving(host) as client:
        made = await client.invoke("hello", headers=build_headers(provider), session_id="desk")
        more = await client.invoke("hello", headers=build_headers(provider, jti="another token"), session_id="desk")
        other = await client.invoke("hello", headers=build_headers(provider, sub="u-2"), session_id="desk")
        found = [
            (await client.http.get(f"/invocations/{made['id']}", headers=headers)).status_code
            for headers in (
                build_headers(provider),
                build_headers(provider, sub="u-2"),
                build_headers(provider, sub=None),
            )
        ]
    assert [one["text"] for one in (made, more, other)] == ["message 1", "message 3", "message 1"]
    assert found == [200, 404, 401]


@pytest.mark.parametrize("order", [1, -1])
async def test_tokens_and_keys_are_offered_together(provider: OidcProvider, order: int) -> None:
    auths = [ApiKeyAuth({"u-1": KEY}), bearer(provider)][::order]
    async with serving(AgentFrameworkHost(count, channels=[InvocationsChannel(auth=auths)])) as client:
        key, token = {"authorization": f"Bearer {KEY}"}, build_headers(provider)
        for headers in (key, token):
            # A subject and a principal of one name are two.
            assert (await client.invoke("hello", headers=headers, session_id="desk"))["text"] == "message 1"
        for headers in (
            {"authorization": "Bearer a.b.c"},
            build_headers(provider, aud="x"),
            {"x-api-key": "wrong" * 5},
        ):
            assert (await client.http.post("/invocations", json={"message": "x"}, headers=headers)).status_code == 401


async def test_a_provider_that_is_away_is_said_so(provider: OidcProvider) -> None:
    provider.away = True
    host = AgentFrameworkHost(count, channels=[InvocationsChannel(auth=bearer(provider))])
    async with serving(host) as client:
        answer = await client.http.post("/invocations", json={"message": "x"}, headers=build_headers(provider))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "provider_unavailable")
    assert answer.headers["retry-after"]


async def test_a_token_of_a_linked_account_is_that_person(provider: OidcProvider) -> None:
    linker = OAuthIdentityLinker(
        Oidc(provider.issuer), client_id=CLIENT_ID, client_secret=CLIENT_SECRET, public_url="https://desk.example"
    )
    host = AgentFrameworkHost(
        count,
        channels=[InvocationsChannel(auth=bearer(provider)), ResponsesChannel(auth=bearer(provider))],
        linker=linker,
    )

    async def ask(client: HostClient, **claims: Any) -> None:
        await client.invoke("hello", headers=build_headers(provider, **claims))

    async with serving(host) as client:
        provider.client.redirect_uris = {"https://desk.example/link/callback"}
        await ask(client)
        here = ChannelIdentity(channel="invocations", native_id="u-1")
        chat = ChannelIdentity(channel="telegram", native_id="42")
        desk = linker._host
        # Somebody with this account has linked their chat.
        await desk.join(LinkProof(linker="oauth", identity=chat, subject=f"{provider.issuer}|u-1"))
        await ask(client)
        await ask(client, sub="u-2")
        linked, other = await linker.resolve(here), await linker.resolve(here.replace(native_id="u-2"))
        known = await linker.resolve(chat)
    assert linked is not None
    assert known is not None
    assert linked.isolation_key == known.isolation_key
    assert other is None
