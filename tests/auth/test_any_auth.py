"""Several kinds of credentials at one door."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost, AnyAuth, ApiKeyAuth, HmacAuth, PlatformAuth, Principal, TrustedEnvironment
from frontdesk.auth.any_auth import as_auth
from frontdesk.auth.verifier import HttpVerifier
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import UnauthenticatedError
from frontdesk_testing import EchoAgent

KEY = "a-key-that-is-long-enough"
SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "client": ("8.8.8.8", 1)}


class Tokens:
    """Something of the operator's own: a token is the name of its owner."""

    name = "token"

    async def authenticate(self, headers: Any) -> Principal | None:
        token = headers.get(b"x-token")
        if token == b"wrong":
            raise UnauthenticatedError
        return None if token is None else Principal(id=token.decode(), claims={"of": "tokens"})


def both(**options: Any) -> AnyAuth:
    return AnyAuth([ApiKeyAuth({"alice": KEY}), Tokens()], **options)


async def ask(auth: AnyAuth, **headers: str) -> Principal | None:
    given = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    found = await auth.authenticate_request(SCOPE, given)
    assert found == await auth.recheck(SCOPE, given)
    return found


async def test_each_kind_is_known_and_named_by_its_kind() -> None:
    assert await ask(both(), x_api_key=KEY) == Principal(id="api_key:alice")
    assert await ask(both(), x_token="alice") == Principal(id="token:alice", claims={"of": "tokens"})
    assert await ask(both()) is None
    assert both().name == "api_key or token"


async def test_the_ids_of_one_kind_can_stay_as_they_were() -> None:
    auth = both(keep_ids_of="api_key")
    assert await ask(auth, x_api_key=KEY) == Principal(id="alice")
    assert await ask(auth, x_token="alice") == Principal(id="token:alice", claims={"of": "tokens"})


@pytest.mark.parametrize("lasting", [True, False])
def test_callers_are_not_renamed_in_silence(lasting: bool, tmp_path: Path) -> None:
    def told(auth: Any) -> list[str]:
        state: Any = {"state_dir": tmp_path} if lasting else {}
        host = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel(auth=auth)], **state)
        return [warning for warning in host.warnings if "keep_ids_of" in warning]

    kinds = [ApiKeyAuth({"alice": KEY}), Tokens()]
    for undecided in (kinds, AnyAuth(kinds)):
        assert len(told(undecided)) == (1 if lasting else 0)
    for decided in (kinds[0], AnyAuth(kinds, keep_ids_of=None), AnyAuth(kinds, keep_ids_of="token")):
        assert told(decided) == []


async def test_a_name_that_passes_for_one_of_another_kind_is_refused() -> None:
    with pytest.raises(UnauthenticatedError):
        await ask(both(keep_ids_of="token"), x_token="api_key:alice")


@pytest.mark.parametrize("headers", [{"x_api_key": "wrong-key-of-nobody"}, {"x_token": "wrong"}])
async def test_wrong_ones_are_wrong(headers: dict[str, str]) -> None:
    with pytest.raises(UnauthenticatedError):
        await ask(both(), **headers)


async def test_a_wrong_key_is_not_made_good_by_a_token() -> None:
    with pytest.raises(UnauthenticatedError):
        await ask(both(), x_api_key="wrong-key-of-nobody", x_token="alice")


async def test_the_first_that_is_there_decides() -> None:
    assert await ask(both(), x_api_key=KEY, x_token="bob") == Principal(id="api_key:alice")


async def test_nobody_passes_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnauthenticatedError):
        await HttpVerifier("web", both(), allow_anonymous=True).verify({**SCOPE, "client": ("127.0.0.1", 1)}, {})


def test_those_inside_are_shown_the_environment_and_sign_bodies() -> None:
    platform = PlatformAuth(trusted=TrustedEnvironment("X"))
    auth = AnyAuth([platform, HmacAuth({"alice": KEY})])
    auth.look({"X": "1"}.get)
    assert platform._trusted.trusts({}, {})
    assert auth.body_header == b"x-content-sha256"
    assert HttpVerifier("web", auth).body_header == b"x-content-sha256"
    assert HttpVerifier("web", both()).body_header is None


def test_claims_come_from_the_kinds_that_have_them() -> None:
    assert both().gives_claims
    assert not AnyAuth([ApiKeyAuth({"alice": KEY}), HmacAuth({"alice": KEY})]).gives_claims


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: AnyAuth([]), "must be unique"),
        (lambda: AnyAuth([ApiKeyAuth({"a": KEY}), ApiKeyAuth({"b": KEY})]), "must be unique"),
        (lambda: both(keep_ids_of="bearer"), "must be one of"),
    ],
)
def test_what_is_wrong_is_found_at_once(build: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        build()


class Slip:
    """Meant to be an `HttpAuth`; one letter is missing."""

    name = "slip"

    async def authenticat(self, headers: Any) -> Principal | None:
        return None


@pytest.mark.parametrize("given", [Slip(), [Slip()], "api_key", object()])
@pytest.mark.parametrize("channel", [InvocationsChannel, ResponsesChannel, ConversationsChannel])
def test_a_slip_does_not_open_the_door(given: Any, channel: Any) -> None:
    with pytest.raises((TypeError, AttributeError)):
        channel(auth=given)


def test_a_slip_does_not_open_the_verifier() -> None:
    slip: Any = Slip()
    with pytest.raises(TypeError, match="Slip"):
        HttpVerifier("web", slip)


def test_a_list_is_several_and_one_is_itself() -> None:
    key = ApiKeyAuth({"alice": KEY})
    assert as_auth(None) is None
    assert as_auth(key) is key
    assert isinstance(as_auth([key, Tokens()]), AnyAuth)
    several = InvocationsChannel(auth=[key, Tokens()]).auth
    assert several is not None
    assert several.name == "api_key or token"


@given(st.text(min_size=1), st.text(min_size=1), st.sampled_from([None, "first", "second"]))
async def test_two_kinds_never_mean_the_same_one(one: str, other: str, kept: str | None) -> None:
    def kind(name: str, who: str) -> Any:
        class Kind:
            async def authenticate(self, headers: Any) -> Principal | None:
                return Principal(id=who) if name.encode() in headers else None

        made: Any = Kind()
        made.name = name
        return made

    auth = AnyAuth([kind("first", one), kind("second", other)], keep_ids_of=kept)
    ids = []
    for name in ("first", "second"):
        try:
            found = await auth.authenticate_request(SCOPE, {name.encode(): b"1"})
        except UnauthenticatedError:
            continue
        assert found is not None
        ids.append(found.id)
    assert len(set(ids)) == len(ids)
