"""Keys, addresses and origins: who an HTTP caller is."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.auth.api_keys import MIN_KEY_LENGTH, ApiKeyAuth
from frontdesk.auth.verifier import HttpVerifier
from frontdesk.errors import ForbiddenError, UnauthenticatedError
from frontdesk.interfaces.auth import Principal
from frontdesk.models.identity import ANONYMOUS, Caller

KEY = "a-key-that-is-long-enough"
OTHER_KEY = "another-key-long-enough"


class TestApiKeys:
    @pytest.mark.parametrize("header", [b"x-api-key", b"api-key"])
    async def test_a_key_stands_for_its_principal(self, header: bytes) -> None:
        auth = ApiKeyAuth({"alice": KEY, "bob": [OTHER_KEY]})
        assert await auth.authenticate({header: KEY.encode()}) == Principal(id="alice")
        assert await auth.authenticate({header: OTHER_KEY.encode()}) == Principal(id="bob")

    @pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer  {} "])
    async def test_a_bearer_token_is_a_key_too(self, form: str) -> None:
        auth = ApiKeyAuth({"alice": KEY})
        assert await auth.authenticate({b"authorization": form.format(KEY).encode()}) == Principal(id="alice")

    async def test_a_principal_can_have_several_keys_in_both_forms(self) -> None:
        auth = ApiKeyAuth({"alice": [KEY, ApiKeyAuth.hash(OTHER_KEY)]})
        for key in (KEY, OTHER_KEY):
            assert await auth.authenticate({b"x-api-key": key.encode()}) == Principal(id="alice")

    def test_the_hashed_form_is_what_any_tool_computes(self) -> None:
        assert ApiKeyAuth.hash(KEY) == "sha256:" + hashlib.sha256(KEY.encode()).hexdigest()

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {b"authorization": b""},
            {b"authorization": b"Bearer"},
            {b"authorization": b"Bearer "},
            {b"authorization": b"Basic YTpi"},
            {b"authorization": KEY.encode()},
            {b"cookie": KEY.encode()},
        ],
        ids=repr,
    )
    async def test_no_key_is_nobody(self, headers: dict[bytes, bytes]) -> None:
        assert await ApiKeyAuth({"alice": KEY}).authenticate(headers) is None

    @pytest.mark.parametrize(
        "presented",
        [
            b"",
            b"wrong",
            KEY.encode()[:-1],
            KEY.encode() + b"x",
            KEY.upper().encode(),
            ApiKeyAuth.hash(KEY).encode(),
            hashlib.sha256(KEY.encode()).digest(),
            hashlib.sha256(KEY.encode()).hexdigest().encode(),
            b"\xff\xfe\x00",
            b"x" * 100_000,
        ],
        ids=lambda value: repr(value)[:30],
    )
    async def test_a_wrong_key_is_an_error(self, presented: bytes) -> None:
        auth = ApiKeyAuth({"alice": KEY, "bob": ApiKeyAuth.hash(OTHER_KEY)})
        with pytest.raises(UnauthenticatedError) as caught:
            await auth.authenticate({b"x-api-key": presented})
        assert KEY not in caught.value.message

    async def test_a_wrong_key_is_not_made_good_by_another_header(self) -> None:
        auth = ApiKeyAuth({"alice": KEY})
        for wrong in (b"wrong", b""):
            with pytest.raises(UnauthenticatedError):
                await auth.authenticate({b"x-api-key": wrong, b"authorization": f"Bearer {KEY}".encode()})

    @pytest.mark.parametrize(
        ("keys", "reason"),
        [
            ({}, "at least one key"),
            ({"alice": []}, "at least one key"),
            ({"alice": ""}, "shorter than"),
            ({"alice": [KEY, ""]}, "shorter than"),
            ({"alice": "x" * (MIN_KEY_LENGTH - 1)}, "shorter than"),
            ({"alice": "sha256:"}, "hexadecimal"),
            ({"alice": "sha256:abcd"}, "hexadecimal"),
            ({"alice": "sha256:" + "z" * 64}, "hexadecimal"),
            ({"alice": ApiKeyAuth.hash("")}, "an empty key"),
            ({"": KEY}, "has a reserved or invalid name"),
            ({ANONYMOUS: KEY}, "has a reserved or invalid name"),
            ({"alice": KEY, "bob": KEY}, "the same key"),
            ({"alice": KEY, "bob": ApiKeyAuth.hash(KEY)}, "the same key"),
        ],
    )
    def test_bad_keys_are_found_at_once(self, keys: Any, reason: str) -> None:
        with pytest.raises(ValueError, match=reason) as caught:
            ApiKeyAuth(keys)
        assert KEY not in str(caught.value)

    @pytest.mark.parametrize("value", ["alice", ["alice", KEY], [], KEY])
    def test_audit_288_a_key_in_the_place_of_the_name_was_printed(self, value: Any) -> None:
        key = "sk-live-4f9a0c2b7d1e8a6f3b5c9d0e"
        with pytest.raises(ValueError, match="looks like a key; the names come first") as caught:
            ApiKeyAuth({key: value})
        assert "4f9a" not in str(caught.value)

    def test_the_same_key_twice_for_one_principal_is_fine(self) -> None:
        ApiKeyAuth({"alice": [KEY, KEY, ApiKeyAuth.hash(KEY)]})

    def test_the_shortest_key_is_taken(self) -> None:
        ApiKeyAuth({"alice": "x" * MIN_KEY_LENGTH})

    def test_no_key_is_shown_or_kept(self) -> None:
        auth = ApiKeyAuth({"alice": KEY})
        assert KEY not in repr(auth)
        assert KEY not in repr(vars(auth))
        assert KEY.encode() not in repr(vars(auth)).encode()

    @given(presented=st.binary())
    async def test_nothing_but_the_key_gets_in(self, presented: bytes) -> None:
        auth = ApiKeyAuth({"alice": KEY})
        if presented == KEY.encode():
            return
        with pytest.raises(UnauthenticatedError):
            await auth.authenticate({b"x-api-key": presented})


async def verify(
    *,
    address: str | None = "127.0.0.1",
    host: str | None = "127.0.0.1:8000",
    origin: str | None = None,
    **settings: Any,
) -> Caller:
    headers = {b"host": host, b"origin": origin}
    scope: Any = {"type": "http", "client": None if address is None else (address, 4242)}
    verifier = HttpVerifier("web", settings.pop("auth", None), **settings)
    given = {name: value.encode("latin-1") for name, value in headers.items() if value is not None}
    return await verifier.verify(scope, given)


class TestWithoutCredentials:
    @pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9", "::1"])
    @pytest.mark.parametrize(
        "host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "localhost:8000", "[::1]", "[::1]:8000", "127.9.9.9:1"]
    )
    async def test_this_machine_is_let_in(self, address: str, host: str) -> None:
        caller = await verify(address=address, host=host)
        assert caller.anonymous
        assert caller.may_name_sessions
        assert caller.identity.key == ("web", ANONYMOUS)

    @pytest.mark.parametrize(
        "address", ["10.0.0.1", "192.168.1.2", "8.8.8.8", "fe80::1", "2001:db8::1", "0.0.0.0", "::", "", "unix", None]
    )
    async def test_other_machines_are_not(self, address: str | None) -> None:
        with pytest.raises(UnauthenticatedError):
            await verify(address=address)

    @pytest.mark.parametrize(
        "host",
        [
            None,
            "",
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example@127.0.0.1",
            "127.0.0.1@evil.example",
            "127.0.0.1:8000:evil",
            "10.0.0.1:8000",
            "0.0.0.0:8000",
            "[::]:8000",
            "[::1",
            "[::1].evil.example",
            "\xe9vil",
        ],
    )
    async def test_a_name_that_only_points_to_this_machine_is_not_let_in(self, host: str | None) -> None:
        with pytest.raises(UnauthenticatedError):
            await verify(host=host)

    async def test_anybody_is_let_in_where_the_operator_says_so_but_names_no_sessions(self) -> None:
        stranger = await verify(address="8.8.8.8", host="public.example", allow_anonymous=True)
        assert stranger.anonymous
        assert not stranger.may_name_sessions
        assert (await verify(allow_anonymous=True)).may_name_sessions


class TestOrigins:
    @pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "https://127.0.0.1:8000"])
    async def test_the_hosts_own_pages_may_call(self, origin: str) -> None:
        assert await verify(origin=origin)

    @pytest.mark.parametrize(
        "origin",
        [
            "http://evil.example",
            "http://127.0.0.1",
            "http://127.0.0.1:8001",
            "http://127.0.0.1:8000.evil.example",
            "http://localhost:8000",
            "null",
            "",
            "127.0.0.1:8000",
            "file://",
            "chrome-extension://abc",
        ],
    )
    async def test_other_pages_may_not(self, origin: str) -> None:
        with pytest.raises(ForbiddenError) as caught:
            await verify(origin=origin)
        assert caught.value.code == "origin_refused"

    async def test_other_pages_may_where_the_operator_says_so(self) -> None:
        allowed = ["https://app.example", "null"]
        for origin in allowed:
            assert await verify(origin=origin, allowed_origins=allowed)
        with pytest.raises(ForbiddenError):
            await verify(origin="https://app.example.evil.example", allowed_origins=allowed)

    async def test_the_origin_counts_whatever_the_credentials_are(self) -> None:
        with pytest.raises(ForbiddenError):
            await verify(origin="http://evil.example", auth=ApiKeyAuth({"alice": KEY}))


class TestWithCredentials:
    async def test_a_principal_is_who_the_key_says_on_any_address(self) -> None:
        verifier = HttpVerifier("web", ApiKeyAuth({"alice": KEY}))
        scope: Any = {"type": "http", "client": ("8.8.8.8", 1)}
        caller = await verifier.verify(scope, {b"x-api-key": KEY.encode()})
        assert caller.identity.key == ("web", "alice")
        assert not caller.anonymous
        assert caller.may_name_sessions

    @pytest.mark.parametrize("settings", [{}, {"allow_anonymous": True}])
    async def test_without_them_not_even_this_machine_is_let_in(self, settings: dict[str, Any]) -> None:
        with pytest.raises(UnauthenticatedError):
            await verify(auth=ApiKeyAuth({"alice": KEY}), **settings)

    @pytest.mark.parametrize("name", ["", ANONYMOUS])
    async def test_nobody_is_not_somebody_with_credentials(self, name: str) -> None:
        class Careless:
            name = "careless"

            async def authenticate(self, headers: Any) -> Principal:
                return Principal(id=name)

        with pytest.raises(UnauthenticatedError):
            await verify(auth=Careless())

    async def test_many_principals_are_told_apart_and_not_all_kept(self) -> None:
        class Anyone:
            name = "anyone"

            async def authenticate(self, headers: Any) -> Principal:
                return Principal(id=headers[b"who"].decode())

        verifier = HttpVerifier("web", Anyone())
        for number in [*range(3_000), 0, 1, 2]:
            caller = await verifier.verify({"type": "http"}, {b"who": str(number).encode()})
            assert caller.identity.key == ("web", str(number))
        assert len(verifier._callers) <= 1_024

    async def test_claims_are_those_of_the_request_and_of_no_other(self) -> None:
        class Changing:
            name = "jwt"
            claims: dict[str, Any] = {"role": "admin"}  # noqa: RUF012

            async def authenticate(self, headers: Any) -> Principal:
                return Principal(id="alice", claims=self.claims)

        auth = Changing()
        verifier = HttpVerifier("web", auth)
        assert (await verifier.verify({"type": "http"}, {})).claims == {"role": "admin"}
        auth.claims = {}
        assert (await verifier.verify({"type": "http"}, {})).claims == {}

    async def test_claims_come_with_their_source(self) -> None:
        class Claims:
            name = "jwt"

            async def authenticate(self, headers: Any) -> Principal:
                return Principal(id="alice", claims={"oid": "1"})

        caller = await verify(auth=Claims())
        assert (dict(caller.claims), caller.claim_source) == ({"oid": "1"}, "jwt")
