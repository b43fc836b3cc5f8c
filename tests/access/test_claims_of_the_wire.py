"""Claims come from what verifies a caller, and from nothing that the caller sends."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost, AuthorizationContext, LinkedClaimAllowlist, Principal
from frontdesk.access.allowlists import evaluate
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.access import AllowlistDecision
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest
from tests.examples import examples
from tests.scenarios.cast import echo

WANTED = {"tid": "ours"}
NAMES = [
    "claims",
    "claim_source",
    "verified_claims",
    "caller",
    "principal",
    "identity",
    "user",
    "metadata",
    "attributes",
    "options",
    "forwarded_props",
    "isolation_key",
    "session",
    "hosting",
    "tid",
    "x-claims",
    "x-verified-claims",
    "x-ms-client-principal",
    "x-ms-token-aad-id-token",
    "x-forwarded-user",
    "cookie",
]


class Watched:
    """Notes every context that it is asked with, and wants a claim."""

    def __init__(self) -> None:
        self.asked: list[AuthorizationContext] = []
        self._wanted = LinkedClaimAllowlist("tid", "ours")

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        self.asked.append(context)
        return await evaluate(self._wanted, context)


class Proved:
    """Credentials that prove some claims, whatever is sent."""

    name = "proved"

    def __init__(self, claims: Mapping[str, Any]) -> None:
        self._claims = claims

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal:
        return Principal(id="alice", claims=self._claims)


def build_watched_host(claims: Mapping[str, Any]) -> tuple[Watched, AgentFrameworkHost]:
    watched, auth = Watched(), Proved(claims)
    channels = [InvocationsChannel(auth=auth), ResponsesChannel(auth=auth), ConversationsChannel(auth=auth)]
    return watched, AgentFrameworkHost(echo, channels=channels, default_allowlist=watched)


BODIES = {"/invocations": {"message": "hi"}, "/responses": {"input": "hi"}, "/conversations": {}}
SENT = st.sampled_from([WANTED, {"claims": WANTED}, "ours", '{"tid": "ours"}', [WANTED]])


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("proved", [{}, {"sub": "alice"}], ids=str)
@examples(60)
@given(
    body=st.dictionaries(st.sampled_from(NAMES), SENT, max_size=5),
    query=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["ours", "tid:ours"]), max_size=3),
    headers=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["ours", '{"tid":"ours"}']), max_size=3),
)
async def test_nothing_that_is_sent_sets_a_claim(
    path: str, proved: dict[str, Any], body: dict[str, Any], query: dict[str, str], headers: dict[str, str]
) -> None:
    watched, host = build_watched_host(proved)
    transport = httpx.ASGITransport(host.app, client=("127.0.0.1", 1))
    async with host.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        response = await client.post(path, json={**body, **BODIES[path]}, params=query, headers=headers)
    # A body that the protocol does not allow is refused before anybody is asked.
    assert response.status_code in (400, 403)
    for context in watched.asked:
        assert context.verified_claims == proved
        assert context.claim_source == ("channel" if proved else "none")


@pytest.mark.parametrize("path", BODIES)
async def test_what_was_verified_lets_in(path: str) -> None:
    watched, host = build_watched_host(WANTED)
    transport = httpx.ASGITransport(host.app, client=("127.0.0.1", 1))
    async with host.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.post(path, json=BODIES[path])).status_code == 200
    assert [one.verified_claims for one in watched.asked] == [WANTED]


def test_a_request_has_no_field_for_claims() -> None:
    fields = set(ChannelRequest.__struct_fields__)
    assert not fields & {"claims", "claim_source", "verified_claims", "caller"}
    assert {"claims", "claim_source"} <= set(Caller.__struct_fields__)
