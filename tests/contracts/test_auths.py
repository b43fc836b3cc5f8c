"""Everything that comes with the house as `auth` keeps the contract, and the contract notices what does not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from frontdesk import (
    AnyAuth,
    ApiKeyAuth,
    HmacAuth,
    PlatformAuth,
    Principal,
    Secret,
    TrustedPeers,
    TrustedSecret,
)
from frontdesk.auth.api_keys import StoredKey, append
from frontdesk.auth.bearer import BearerAuth
from frontdesk_testing import AuthContract
from tests.access_matrix.issuer import AUDIENCE, Issuers, serve_issuers

ONE, TWO = "the first secret, long enough", "the second secret, long enough"
USERS = [{"x-agent-user-isolation-key": "u-1", "x-agent-chat-isolation-key": "c"}, {"x-agent-user-id": "u-2"}]


class TestApiKeys(AuthContract):
    secrets = (ONE, TWO)

    @pytest.fixture
    def auth(self) -> ApiKeyAuth:
        return ApiKeyAuth({"alice": ONE, "bob": Secret(TWO)})

    def right(self, auth: Any) -> list[dict[str, str]]:
        return [{"x-api-key": ONE}, {"authorization": f"Bearer {TWO}"}]

    def wrong(self, auth: Any) -> list[dict[str, str]]:
        return [{"x-api-key": "wrong"}, {"api-key": ONE[:-1]}, {"authorization": "Bearer wrong"}]


class TestKeysOfAFile(TestApiKeys):
    @pytest.fixture
    def auth(self, tmp_path: Path) -> ApiKeyAuth:
        for name, key in (("alice", ONE), ("bob", TWO)):
            append(tmp_path / "keys.jsonl", StoredKey(id=f"key_{name}", principal=name, hash=ApiKeyAuth.hash(key)))
        return ApiKeyAuth.from_file(tmp_path / "keys.jsonl")


class TestSignatures(AuthContract):
    secrets = (ONE, TWO)

    @pytest.fixture
    def auth(self) -> HmacAuth:
        return HmacAuth({"alice": ONE, "bob": TWO}, max_ahead_seconds=0)

    def right(self, auth: Any) -> list[dict[str, str]]:
        return [auth.sign(who, self.method, self.path, b"body") for who in ("alice", "bob")]

    def wrong(self, auth: Any) -> list[dict[str, str]]:
        good = self.right(auth)[0]
        return [{**good, "x-signature-principal": "bob"}, {"x-signature": good["x-signature"]}]


class TestPeers(AuthContract):
    secrets = ("there are none",)

    @pytest.fixture
    def auth(self) -> PlatformAuth:
        return PlatformAuth(trusted=TrustedPeers("127.0.0.1"))

    def right(self, auth: Any) -> list[dict[str, str]]:
        return USERS

    def wrong(self, auth: Any) -> list[dict[str, str]]:
        return [{"x-agent-user-id": "a b"}]

    async def test_a_header_that_is_missing_or_noise_makes_nobody_else_of_anyone(self, auth: Any) -> None:
        # The header is the user: whoever is trusted may name anybody.
        return


class TestPlatformSecret(TestPeers):
    secrets = (ONE,)

    @pytest.fixture
    def auth(self) -> PlatformAuth:
        return PlatformAuth(trusted=TrustedSecret(ONE))

    def right(self, auth: Any) -> list[dict[str, str]]:
        return [{**one, "x-platform-secret": ONE} for one in USERS]

    def wrong(self, auth: Any) -> list[dict[str, str]]:
        return [{**one, "x-platform-secret": "wrong"} for one in USERS]


class TestSeveral(AuthContract):
    secrets = (ONE, TWO)

    @pytest.fixture
    def auth(self) -> AnyAuth:
        return AnyAuth([HmacAuth({"alice": ONE}, max_ahead_seconds=0), ApiKeyAuth({"alice": TWO})])

    def right(self, auth: Any) -> list[dict[str, str]]:
        return [HmacAuth({"alice": ONE}, max_ahead_seconds=0).sign("alice", self.method, self.path), {"x-api-key": TWO}]

    def wrong(self, auth: Any) -> list[dict[str, str]]:
        return [{"x-api-key": "wrong"}, {"x-signature": "v2=wrong", "x-api-key": TWO}]


class TestBearerTokens(AuthContract):
    secrets = ("eyJ",)
    issuers: Issuers

    @pytest_asyncio.fixture
    async def auth(self) -> AsyncIterator[BearerAuth]:
        async with serve_issuers() as self.issuers:
            yield BearerAuth(issuer=self.issuers.url("north"), audience=AUDIENCE)

    def right(self, auth: Any) -> list[dict[str, str]]:
        return [{"authorization": f"Bearer {self.issuers.token('north', sub=who)}"} for who in ("alice", "bob")]

    def wrong(self, auth: Any) -> list[dict[str, str]]:
        return [{"authorization": f"Bearer {self.right(auth)[0]['authorization'][7:-4]}AAAA"}]


class Believing:
    """Takes everybody's word."""

    name = "believing"

    async def authenticate(self, headers: Any) -> Principal | None:
        return Principal(id=headers.get(b"x-mine", b"").decode("latin-1"))


class Talkative(Believing):
    def __init__(self) -> None:
        self.secret = ONE


class Forgetful(Believing):
    async def authenticate(self, headers: Any) -> Principal | None:
        return None


class TestTheContractBites:
    @pytest.mark.parametrize(
        ("auth", "question"),
        [
            (Believing(), "test_nobody_is_nobody"),
            (Believing(), "test_wrong_ones_are_refused_without_a_word_too_much"),
            (Believing(), "test_a_header_that_is_missing_or_noise_makes_nobody_else_of_anyone"),
            (Forgetful(), "test_the_right_ones_say_who_it_is"),
            (Talkative(), "test_no_secret_is_shown"),
            (object(), "test_it_can_be_asked"),
        ],
    )
    async def test_what_is_broken_is_noticed(self, auth: Any, question: str) -> None:
        class Asked(AuthContract):
            secrets = (ONE,)

            def right(self, auth: Any) -> list[dict[str, str]]:
                return [{"x-mine": "alice"}, {"x-mine": "bob"}]

            def wrong(self, auth: Any) -> list[dict[str, str]]:
                return [{"x-mine": "wrong"}]

        with pytest.raises((AssertionError, pytest.fail.Exception)):
            await getattr(Asked(), question)(auth)
