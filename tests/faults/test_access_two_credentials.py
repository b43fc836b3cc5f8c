"""Requests with two credentials: a proxy before the host may have checked the one that does not count."""

from collections.abc import Mapping
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, AnyAuth, ApiKeyAuth, HmacAuth, PlatformAuth, TrustedSecret
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.auth import Principal
from frontdesk_testing import serving
from tests.scenarios.cast import echo
from tests.scenarios.telegram.bot import SECRET, open_bot

ALICE, BOB = "the key of alice, long enough", "the key of bob, long enough"
KEYS = ApiKeyAuth({"alice": ALICE, "bob": BOB})
SIGNED = HmacAuth({"alice": ALICE, "bob": BOB}, max_ahead_seconds=0)
PLATFORM = PlatformAuth(trusted=TrustedSecret(ALICE))


class OwnTokens:
    """An auth of the operator's own, with a header that the host has never heard of."""

    name = "own"

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        token = headers.get(b"x-own-token")
        return None if token is None else Principal(id=token.decode())


Sent = list[tuple[str, str]]


def twice(name: str, first: str, second: str) -> Sent:
    return [(name, first), (name, second)]


REPEATED: dict[str, tuple[Any, Sent]] = {
    "x-api-key": (KEYS, twice("x-api-key", BOB, ALICE)),
    "x-api-key, the second is wrong": (KEYS, twice("x-api-key", ALICE, "wrong")),
    "x-api-key, the first is wrong": (KEYS, twice("x-api-key", "wrong", ALICE)),
    "x-api-key, the same": (KEYS, twice("x-api-key", ALICE, ALICE)),
    "x-api-key, in capitals": (KEYS, [("x-api-key", BOB), ("X-API-Key", ALICE)]),
    "api-key": (KEYS, twice("api-key", BOB, ALICE)),
    "authorization": (KEYS, twice("authorization", f"Bearer {BOB}", f"Bearer {ALICE}")),
    "signature": (SIGNED, twice("x-signature", "v2=1", "v2=2")),
    "signer": (SIGNED, twice("x-signature-principal", "alice", "bob")),
    "platform secret": (PLATFORM, twice("x-platform-secret", "wrong", ALICE)),
    "own header": (OwnTokens(), twice("x-own-token", "alice", "bob")),
    "one of several kinds": (AnyAuth([SIGNED, OwnTokens(), KEYS]), twice("x-api-key", BOB, ALICE)),
    "own header among several": (AnyAuth([KEYS, OwnTokens()]), twice("x-own-token", "alice", "bob")),
}


@pytest.mark.parametrize("case", REPEATED)
async def test_a_repeated_credential_was_accepted(case: str) -> None:
    auth, headers = REPEATED[case]
    host = AgentFrameworkHost(echo, channels=[InvocationsChannel(auth=auth), ResponsesChannel(auth=auth)])
    async with serving(host) as client:
        for path, body in (("/invocations", {"message": "hi"}), ("/v1/responses", {"input": "hi"})):
            answer = await client.http.post(path, json=body, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "repeated_header")


@pytest.mark.parametrize(
    "headers",
    [
        [("x-api-key", ALICE), ("api-key", BOB)],
        [("x-api-key", ALICE), ("api-key", "wrong")],
        [("x-api-key", ALICE), ("authorization", f"Bearer {BOB}")],
        [("api-key", ALICE), ("authorization", f"Bearer {BOB}")],
    ],
)
async def test_two_keys_in_different_headers_were_accepted(headers: Sent) -> None:
    async with serving(AgentFrameworkHost(echo, channels=[InvocationsChannel(auth=KEYS)])) as client:
        answer = await client.http.post("/invocations", json={"message": "hi"}, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "several_credentials")


@pytest.mark.parametrize(
    "headers",
    [
        [("x-api-key", ALICE), ("api-key", ALICE), ("authorization", f"Bearer {ALICE}")],
        # A token for a proxy before the host.
        [("x-api-key", ALICE), ("authorization", "Bearer of-the-proxy")],
        # Only headers that are read as credentials count.
        [("x-api-key", ALICE), ("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "5.6.7.8"), ("x-own-token", "a")],
    ],
)
async def test_one_credential_is_enough(headers: Sent) -> None:
    async with serving(AgentFrameworkHost(echo, channels=[InvocationsChannel(auth=KEYS)])) as client:
        answer = await client.http.post("/invocations", json={"message": "hi"}, headers=headers)
        assert answer.status_code == 200


async def test_of_two_secrets_of_a_webhook_the_last_counted() -> None:
    async with open_bot(echo) as bot:
        path, secret = f"{bot.base_url}/telegram/webhook", b"x-telegram-bot-api-secret-token"
        for values in ((b"wrong", SECRET.encode()), (SECRET.encode(), b"wrong")):
            headers = [(secret, value) for value in values]
            answer = await bot.http.post(path, json={"update_id": 1}, headers=headers)
            assert answer.status_code == 401
        answer = await bot.http.post(path, json={"update_id": 1}, headers=[(secret, SECRET.encode())])
        assert answer.status_code == 200
