"""A platform's headers: whose they are, and from whom they count."""

from typing import Any

import pytest

from frontdesk import (
    ISOLATION_HEADER_CHAT,
    ISOLATION_HEADER_USER,
    IsolationKeys,
    PlatformAuth,
    Principal,
    TrustedEnvironment,
    TrustedPeers,
    TrustedSecret,
)
from frontdesk.errors import UnauthenticatedError

SECRET = "what the platform and we know"
FIRST = {ISOLATION_HEADER_USER.encode(): b"user-1", ISOLATION_HEADER_CHAT.encode(): b"chat-1"}
SECOND = {b"x-agent-user-id": b"user-2", b"x-agent-foundry-call-id": b"call-2"}
KEYS = IsolationKeys(user_key="user-1", chat_key="chat-1")


async def ask(auth: PlatformAuth, headers: dict[bytes, bytes], peer: Any = ("10.1.2.3", 4242)) -> Principal | None:
    return await auth.authenticate_request({"type": "http", "client": peer}, headers)


def build_trusting() -> PlatformAuth:
    return PlatformAuth(trusted="anyone_who_can_connect")


class TestHeaders:
    async def test_the_first_generation(self) -> None:
        assert await ask(build_trusting(), FIRST) == Principal(id="user-1", isolation=KEYS)

    async def test_the_second_generation(self) -> None:
        keys = IsolationKeys(user_key="user-2", call_id="call-2")
        assert await ask(build_trusting(), SECOND) == Principal(id="user-2", isolation=keys)

    async def test_both_may_name_the_same_user(self) -> None:
        keys = IsolationKeys(user_key="user-2", chat_key="chat-1", call_id="call-2")
        both = {**FIRST, **SECOND, ISOLATION_HEADER_USER.encode(): b"user-2"}
        assert await ask(build_trusting(), both) == Principal(id="user-2", isolation=keys)

    @pytest.mark.parametrize("other", [b"user-1", b"USER-2", b"anonymous"])
    async def test_the_user_id_was_believed_where_the_isolation_key_named_another(self, other: bytes) -> None:
        with pytest.raises(UnauthenticatedError, match="different users") as caught:
            await ask(build_trusting(), {**SECOND, ISOLATION_HEADER_USER.encode(): other})
        assert "user-2" not in caught.value.message

    @pytest.mark.parametrize(
        ("header", "user"), [("x-agent-user-id", "user-2"), ("x-agent-user-isolation-key", "user-1")]
    )
    async def test_the_operator_says_which_header_counts(self, header: Any, user: str) -> None:
        auth = PlatformAuth(trusted="anyone_who_can_connect", user_header=header)
        found = await ask(auth, {**FIRST, **SECOND})
        assert found is not None
        assert (found.id, found.isolation and found.isolation.user_key) == (user, user)
        # Where it is missing, the other does not take its place.
        left = {name: value for name, value in {**FIRST, **SECOND}.items() if name != header.encode()}
        assert await ask(auth, left) is None

    @pytest.mark.parametrize("user", [b"", b"anonymous"])
    async def test_who_is_nobody_to_the_platform_is_nobody_here(self, user: bytes) -> None:
        assert await ask(build_trusting(), {ISOLATION_HEADER_USER.encode(): user}) is None
        assert await ask(build_trusting(), {ISOLATION_HEADER_CHAT.encode(): b"chat-1"}) is None

    @pytest.mark.parametrize("value", [b"a b", b"a\nb", b"\xff", b"x" * 513, b"\x00"], ids=lambda one: repr(one)[:12])
    @pytest.mark.parametrize("name", [*FIRST, *SECOND])
    async def test_what_no_platform_sends_is_refused(self, name: bytes, value: bytes) -> None:
        headers = {**SECOND, name: value} if name in SECOND else {**FIRST, name: value}
        with pytest.raises(UnauthenticatedError):
            await ask(build_trusting(), headers)

    @pytest.mark.parametrize("name", [*FIRST, *SECOND])
    async def test_a_header_that_comes_twice_is_refused(self, name: bytes) -> None:
        # The first was sent by a client, and the platform has added its own behind it, or before it.
        headers = {**FIRST, **SECOND, b"x-agent-user-id": b"user-1"}
        scope = {"type": "http", "headers": [*headers.items(), (name, b"somebody-else")]}
        with pytest.raises(UnauthenticatedError, match="duplicate"):
            await build_trusting().authenticate_request(scope, headers)
        single = {"type": "http", "headers": [*headers.items(), (b"accept", b"a"), (b"accept", b"b")]}
        assert await build_trusting().authenticate_request(single, headers)


class TestTrust:
    @pytest.mark.parametrize(("peer", "known"), [("10.1.2.3", True), ("::ffff:10.1.2.3", True), ("10.2.0.1", False)])
    async def test_peers(self, peer: str, known: bool) -> None:
        found = await ask(PlatformAuth(trusted=TrustedPeers("10.1.0.0/16", "::1")), FIRST, (peer, 1))
        assert (found is not None) is known

    @pytest.mark.parametrize("peer", [None, ("", 0), ("unix:/run/desk.sock", 0), ("10.1.2.3.evil.example", 1)])
    async def test_a_peer_without_an_address_is_not_one_of_them(self, peer: Any) -> None:
        assert await ask(PlatformAuth(trusted=TrustedPeers("10.1.0.0/16")), FIRST, peer) is None

    async def test_a_secret(self) -> None:
        auth = PlatformAuth(trusted=TrustedSecret(SECRET))
        assert await ask(auth, {**FIRST, b"x-platform-secret": SECRET.encode()}) == Principal(
            id="user-1", isolation=KEYS
        )
        assert await ask(auth, FIRST) is None
        for wrong in (b"", b"wrong", SECRET.encode() + b"x", b"\xff"):
            with pytest.raises(UnauthenticatedError) as caught:
                await ask(auth, {**FIRST, b"x-platform-secret": wrong})
            assert SECRET not in caught.value.message
        assert SECRET not in repr(vars(auth)) + repr(vars(auth._trusted))

    @pytest.mark.parametrize(("environment", "known"), [({}, False), ({"X": ""}, False), ({"X": "1"}, True)])
    async def test_the_environment(self, environment: dict[str, str], known: bool) -> None:
        auth = PlatformAuth(trusted=TrustedEnvironment("X"))
        assert await ask(auth, FIRST) is None
        auth.look(environment.get)
        assert (await ask(auth, FIRST) is not None) is known
        assert await auth.recheck({"type": "websocket"}, FIRST) == await ask(auth, FIRST)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: PlatformAuth(trusted=True), "trusted= must be"),  # pyright: ignore[reportArgumentType]
        (lambda: PlatformAuth(trusted=None), "trusted= must be"),  # pyright: ignore[reportArgumentType]
        (lambda: PlatformAuth(trusted="anyone"), "trusted= must be"),  # pyright: ignore[reportArgumentType]
        (lambda: PlatformAuth(trusted="anyone_who_can_connect", user_header="x-user"), "user_header"),  # pyright: ignore[reportArgumentType]
        (lambda: TrustedSecret(""), "shorter than"),
        (lambda: TrustedSecret("short"), "shorter than"),
        (lambda: TrustedSecret(SECRET, header="X-Secret"), "lower-case"),
        (lambda: TrustedPeers(), "list specific networks"),
        (lambda: TrustedPeers("0.0.0.0/0"), "list specific networks"),
        (lambda: TrustedPeers("::/0"), "list specific networks"),
        (lambda: TrustedPeers("10.1.0.1/16"), "host bits"),
        (lambda: TrustedPeers("platform.example"), "does not appear"),
        (lambda: TrustedEnvironment(""), "name of a variable"),
    ],
)
def test_trust_that_is_not_said_clearly_is_refused(build: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        build()
