"""Bearer tokens: who comes in, who does not, and what that costs the issuer."""

import asyncio
import base64
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, RSAKey, generate_key

from frontdesk.asgi.messages import error_headers
from frontdesk.auth.bearer import MAX_TOKEN_LENGTH, BearerAuth, read
from frontdesk.auth.oidc import ALGORITHMS
from frontdesk.errors import ForbiddenError, UnauthenticatedError, UnavailableError
from frontdesk_testing import FakeClock
from tests.oidc import OidcProvider, oidc_provider

AUDIENCE = "api://desk"


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with oidc_provider() as one:
        yield one


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(time.time())


def auth_of(provider: OidcProvider, clock: FakeClock, **options: Any) -> BearerAuth:
    return BearerAuth(**{"issuer": provider.issuer, "audience": AUDIENCE, "clock": clock, **options})


def build_headers(token: str | bytes) -> dict[bytes, bytes]:
    return {b"authorization": b"Bearer " + (token.encode() if isinstance(token, str) else token)}


async def refusal(auth: BearerAuth, token: str | bytes) -> UnauthenticatedError:
    with pytest.raises(UnauthenticatedError) as caught:
        await auth.authenticate(build_headers(token))
    assert caught.value.code == "invalid_token"
    text = token.decode("latin-1") if isinstance(token, bytes) else token
    assert not any(len(part) > 8 and part in str(caught.value) for part in text.split("."))
    return caught.value


def pack(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class TestGoodTokens:
    async def test_a_good_token_stands_for_its_subject(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        token = provider.sign(provider.claims(groups=["staff"], phone="not handed on"))
        principal = await auth.authenticate(build_headers(token))
        assert principal is not None
        assert principal.id == "u-1"
        assert principal.claims == {"iss": provider.issuer, "sub": "u-1", "groups": ["staff"]}

    @pytest.mark.parametrize("kind", ["JWT", "at+jwt", "application/at+jwt", "AT+JWT", None])
    async def test_the_kinds_of_token_that_are_taken(
        self, provider: OidcProvider, clock: FakeClock, kind: str | None
    ) -> None:
        token = provider.sign(provider.claims(), {"typ": kind})
        assert await auth_of(provider, clock).authenticate(build_headers(token)) is not None

    async def test_one_of_several_audiences_is_enough(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock, audience=["other", AUDIENCE])
        for audience in (AUDIENCE, ["else", AUDIENCE], "other"):
            assert await auth.authenticate(build_headers(provider.sign(provider.claims(aud=audience)))) is not None

    async def test_an_elliptic_key_is_as_good(self, provider: OidcProvider, clock: FakeClock) -> None:
        key = ECKey.generate_key("P-256", {"kid": "ec"})
        provider.listed.append(key.as_dict(private=False))
        assert await auth_of(provider, clock).authenticate(build_headers(provider.sign(provider.claims(), key=key)))

    @pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
    @pytest.mark.parametrize("alg", ALGORITHMS)
    async def test_every_way_of_signing_that_is_named_works(
        self, provider: OidcProvider, clock: FakeClock, alg: str
    ) -> None:
        kind, curves = ALGORITHMS[alg]
        make: Any = generate_key
        key = provider.key if kind == "RSA" else make(kind, curves[0], {"kid": "other"})
        provider.listed = [key.as_dict(private=False)]
        token = provider.sign(provider.claims(), {"alg": alg}, key)
        assert await auth_of(provider, clock, algorithms=[alg]).authenticate(build_headers(token))
        others = [one for one in ALGORITHMS if one != alg]
        await refusal(auth_of(provider, clock, algorithms=others), token)

    async def test_the_only_key_needs_no_name(self, provider: OidcProvider, clock: FakeClock) -> None:
        nameless = {name: value for name, value in provider.listed[0].items() if name != "kid"}
        provider.listed = [nameless]
        assert await auth_of(provider, clock).authenticate(
            build_headers(provider.sign(provider.claims(), {"kid": None}))
        )

    async def test_another_claim_can_be_the_subject(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock, subject_claim="oid", claims=["groups"])
        principal = await auth.authenticate(build_headers(provider.sign(provider.claims(oid="o-1"))))
        assert principal is not None
        assert (principal.id, principal.claims) == ("o-1", {"iss": provider.issuer, "sub": "u-1"})

    async def test_an_address_that_was_not_verified_says_nothing(
        self, provider: OidcProvider, clock: FakeClock
    ) -> None:
        auth = auth_of(provider, clock, required_claims={"email": "boss@example.com"})
        assert await auth.authenticate(
            build_headers(provider.sign(provider.claims(email="boss@example.com", email_verified=True)))
        )
        by_address = auth_of(provider, clock, subject_claim="email")
        for verified in (None, False, "true"):
            token = provider.sign(provider.claims(email="boss@example.com", email_verified=verified))
            with pytest.raises(ForbiddenError):
                await auth.authenticate(build_headers(token))
            await refusal(by_address, token)

    async def test_principals_of_two_issuers_never_share_an_id(self, provider: OidcProvider, clock: FakeClock) -> None:
        async with oidc_provider() as other:
            other.rotate()
            auth = auth_of(provider, clock, issuer=[provider.issuer, other.issuer])
            found = [await auth.authenticate(build_headers(one.sign(one.claims()))) for one in (provider, other)]
            # The one can't sign for the other, though both are trusted.
            await refusal(auth, other.sign(provider.claims()))
        assert [one and one.id for one in found] == [f"{provider.issuer}|u-1", f"{other.issuer}|u-1"]

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {b"authorization": b"Basic YTpi"},
            {b"authorization": b"Bearer"},
            {b"authorization": b"Bearer an-api-key"},
        ],
        ids=repr,
    )
    async def test_what_is_not_a_token_is_somebody_else_s(
        self, provider: OidcProvider, clock: FakeClock, headers: dict[bytes, bytes]
    ) -> None:
        assert await auth_of(provider, clock).authenticate(headers) is None
        assert not provider.asked

    @pytest.mark.parametrize(
        ("required", "claims", "good"),
        [
            ({"scope": "chat"}, {"scope": "read chat"}, True),
            ({"scope": "chat"}, {"scope": "read chats"}, False),
            ({"scope": "chat"}, {}, False),
            ({"roles": ["admin", "guest"]}, {"roles": ["guest", "x"]}, True),
            ({"roles": ["admin"]}, {"roles": ["guest"]}, False),
            ({"roles": "admin"}, {"roles": "administrator"}, False),
            ({"vip": True}, {"vip": True}, True),
            ({"vip": True}, {"vip": 1}, False),
            ({"tid": "a", "roles": "b"}, {"tid": "a"}, False),
        ],
        ids=repr,
    )
    async def test_claims_that_are_required(
        self, provider: OidcProvider, clock: FakeClock, required: Any, claims: Any, good: bool
    ) -> None:
        auth = auth_of(provider, clock, required_claims=required)
        token = provider.sign(provider.claims(**claims))
        if good:
            assert await auth.authenticate(build_headers(token)) is not None
            return
        with pytest.raises(ForbiddenError) as caught:
            await auth.authenticate(build_headers(token))
        assert (b"www-authenticate", b'Bearer error="insufficient_scope"') in error_headers(caught.value)


class TestBadTokens:
    @pytest.mark.parametrize(
        "changes",
        [
            {"iss": "https://evil.example"},
            {"iss": None},
            {"iss": 7},
            {"aud": "api://other"},
            {"aud": None},
            {"aud": []},
            {"aud": [["api://desk"]]},
            {"aud": "api://desk/"},
            {"exp": None},
            {"exp": 0},
            {"exp": "9999999999"},
            {"exp": True},
            {"exp": float("nan")},
            {"exp": float("inf")},
            {"nbf": 99999999999},
            {"iat": 99999999999},
            {"sub": None},
            {"sub": ""},
            {"sub": " "},
            {"sub": 7},
            {"sub": "a\nb"},
            {"sub": "x" * 600},
            {"sub": "anonymous"},
        ],
        ids=repr,
    )
    async def test_a_claim_that_is_wrong(self, provider: OidcProvider, clock: FakeClock, changes: Any) -> None:
        claims = {**provider.claims(), **changes}
        token = provider.sign({name: value for name, value in claims.items() if value is not None})
        await refusal(auth_of(provider, clock), token)

    async def test_a_token_ends_with_some_leeway(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock, leeway=60)
        token = provider.sign(provider.claims(exp=int(clock.now()) + 100))
        clock.advance(150)
        assert await auth.authenticate(build_headers(token)) is not None
        clock.advance(20)
        error = await refusal(auth, token)
        assert "expired" in error.message
        assert (b"www-authenticate", b'Bearer error="invalid_token"') in error_headers(error)

    async def test_no_signature_is_no_token(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        body = pack(provider.claims())
        for alg in ("none", "None", "NONE", "", "nOnE"):
            for end in ("", "AAAA"):
                await refusal(auth, f"{pack({'alg': alg, 'kid': 'rsa-0'})}.{body}.{end}")

    async def test_the_public_key_is_not_a_shared_secret(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        for secret in (provider.key.as_pem(private=False), json.dumps(provider.listed[0]).encode()):
            # By hand, since no library would do such a thing any more.
            signed = f"{pack({'alg': 'HS256', 'kid': 'rsa-0'})}.{pack(provider.claims())}"
            mark = base64.urlsafe_b64encode(hmac.digest(secret, signed.encode(), "sha256")).rstrip(b"=").decode()
            await refusal(auth, f"{signed}.{mark}")

    async def test_a_shared_secret_in_the_list_of_keys_is_not_used(
        self, provider: OidcProvider, clock: FakeClock
    ) -> None:
        key = OctKey.generate_key(256, {"kid": "shared"})
        provider.listed.append(key.as_dict(private=True))
        await refusal(auth_of(provider, clock), provider.sign(provider.claims(), {"alg": "HS256"}, key))

    async def test_a_key_that_comes_with_the_token_is_not_used(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        forged = RSAKey.generate_key(2048, {"kid": "rsa-0"})
        for header in ({"jwk": forged.as_dict(private=False)}, {"jku": "https://evil.example/jwks"}, {}):
            await refusal(auth, provider.sign(provider.claims(), header, forged))

    @pytest.mark.parametrize("header", [{"typ": "logout+jwt"}, {"typ": "dpop+jwt"}, {"alg": "RS512"}, {"kid": "other"}])
    async def test_a_header_that_is_wrong(self, provider: OidcProvider, clock: FakeClock, header: Any) -> None:
        await refusal(auth_of(provider, clock), provider.sign(provider.claims(), header))

    async def test_an_extension_that_is_demanded(self, provider: OidcProvider, clock: FakeClock) -> None:
        head, body, end = provider.sign(provider.claims()).split(".")
        header = json.loads(base64.urlsafe_b64decode(head + "=="))
        await refusal(auth_of(provider, clock), f"{pack({**header, 'crit': ['b64'], 'b64': False})}.{body}.{end}")

    @pytest.mark.filterwarnings("ignore:Key size")
    async def test_a_weak_key_is_not_used(self, provider: OidcProvider, clock: FakeClock) -> None:
        weak = RSAKey.generate_key(1024, {"kid": "weak"})
        provider.listed.append(weak.as_dict(private=False))
        await refusal(auth_of(provider, clock), provider.sign(provider.claims(), key=weak))

    @pytest.mark.parametrize("listed", [{"use": "enc"}, {"alg": "PS256"}, {"key_ops": ["sign"]}, {"n": "!"}])
    async def test_a_key_that_is_for_something_else(
        self, provider: OidcProvider, clock: FakeClock, listed: Any
    ) -> None:
        provider.listed = [{**provider.listed[0], **listed}]
        await refusal(auth_of(provider, clock), provider.sign(provider.claims()))

    async def test_every_changed_bit_is_noticed(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        head, body, end = provider.sign(provider.claims()).split(".")
        other = pack({**provider.claims(), "sub": "u-2"})
        for forged in (
            f"{head}.{other}.{end}",
            f"{head}.{body}.{end[:-4]}",
            f"{head}.{body}.",
            f"{head}.{body}.{body}",
        ):
            await refusal(auth, forged)

    @pytest.mark.parametrize(
        "token",
        [
            "..",
            "a.b.c",
            "x" * MAX_TOKEN_LENGTH + ".b.c",
            f"{pack('x')}.{pack([])}.c",
            f"{pack({'alg': []})}.{pack({})}.c",
            f"{pack({'alg': 'RS256', 'kid': {}})}.{pack({})}.c",
            b"\xff.\xfe.\xfd",
            ("e" * 20 + ".") * 2 + "\u00e9",
            base64.urlsafe_b64encode(b"[" * 9000).decode() + ".e30.c",
            pack({"alg": "RS256"}) + "." + base64.urlsafe_b64encode(b'{"a":' * 1500).decode() + ".c",
        ],
        ids=lambda value: repr(value)[:30],
    )
    async def test_rubbish_costs_the_issuer_nothing(
        self, provider: OidcProvider, clock: FakeClock, token: str | bytes
    ) -> None:
        await refusal(auth_of(provider, clock), token)
        assert not provider.asked

    async def test_a_stranger_s_issuer_is_never_asked(self, provider: OidcProvider, clock: FakeClock) -> None:
        async with oidc_provider() as other:
            await refusal(auth_of(provider, clock), other.sign(other.claims()))
            assert not other.asked
        assert not provider.asked


@given(st.binary(max_size=300), st.sampled_from([b"%s", b"%s.%s.%s", b"e30.%s.%s", b"eyJhbGciOiJSUzI1NiJ9.%s."]))
def test_no_bytes_are_anything_but_read_or_refused(data: bytes, form: bytes) -> None:
    token = form.replace(b"%s", data)
    with suppress(UnauthenticatedError):
        assert read(token).text.encode() == token


class TestKeys:
    async def test_a_token_is_checked_once(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        token = build_headers(provider.sign(provider.claims()))
        first, second = [await auth.authenticate(token) for _ in range(2)]
        assert first is second
        assert provider.asked == {"/.well-known/openid-configuration": 1, "/jwks": 1}

    async def test_only_so_many_tokens_are_remembered(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock, remembered_tokens=3)
        tokens = [build_headers(provider.sign(provider.claims(sub=f"u-{number}"))) for number in range(5)]
        first = await auth.authenticate(tokens[0])
        for token in tokens[1:]:
            await auth.authenticate(token)
            assert await auth.authenticate(tokens[0]) is first
        assert len(auth._proved) == 3

    async def test_callers_who_come_together_ask_once(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        provider.held = asyncio.Event()
        tokens = [build_headers(provider.sign(provider.claims(sub=f"u-{number}"))) for number in range(20)]
        waiting = [asyncio.create_task(auth.authenticate(token)) for token in tokens]
        await asyncio.sleep(0)
        # One who leaves takes nothing from the others.
        waiting[0].cancel()
        provider.held.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert [one.id for one in found[1:]] == [f"u-{number}" for number in range(1, 20)]  # type: ignore[union-attr]
        assert provider.asked == {"/.well-known/openid-configuration": 1, "/jwks": 1}

    async def test_a_new_key_is_found(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        old = provider.sign(provider.claims())
        assert await auth.authenticate(build_headers(old))
        clock.advance(31)
        provider.rotate()
        assert await auth.authenticate(build_headers(provider.sign(provider.claims())))
        assert provider.asked["/jwks"] == 2

    async def test_unknown_keys_don_t_make_us_ask_all_the_time(self, provider: OidcProvider, clock: FakeClock) -> None:
        auth = auth_of(provider, clock)
        await auth.authenticate(build_headers(provider.sign(provider.claims())))
        for number in range(20):
            await refusal(auth, provider.sign(provider.claims(), {"kid": f"made-up-{number}"}))
        assert provider.asked["/jwks"] == 1
        clock.advance(31)
        for number in range(20):
            await refusal(auth, provider.sign(provider.claims(), {"kid": f"made-up-{number}"}))
        assert provider.asked["/jwks"] == 2

    async def test_a_key_that_vanished_stops_working_with_all_that_it_signed(
        self, provider: OidcProvider, clock: FakeClock
    ) -> None:
        auth = auth_of(provider, clock, cache_seconds=300)
        token = provider.sign(provider.claims(exp=int(clock.now()) + 9000))
        assert await auth.authenticate(build_headers(token))
        provider.rotate()
        clock.advance(299)
        assert await auth.authenticate(build_headers(token))
        clock.advance(2)
        assert "key" in (await refusal(auth, token)).message

    async def test_an_issuer_that_is_away_keeps_its_keys_for_a_while(
        self, provider: OidcProvider, clock: FakeClock
    ) -> None:
        auth = auth_of(provider, clock, cache_seconds=300, stale_seconds=1000)
        token = provider.sign(provider.claims(exp=int(clock.now()) + 9000))
        assert await auth.authenticate(build_headers(token))
        provider.away = True
        for _ in range(9):
            clock.advance(100)
            assert await auth.authenticate(build_headers(token))
        clock.advance(101)
        with pytest.raises(UnavailableError) as caught:
            await auth.authenticate(build_headers(token))
        assert caught.value.code == "provider_unavailable"
        provider.away = False
        clock.advance(31)
        assert await auth.authenticate(build_headers(token))

    async def test_an_issuer_that_is_away_at_first_is_not_asked_by_everyone(
        self, provider: OidcProvider, clock: FakeClock
    ) -> None:
        auth = auth_of(provider, clock)
        provider.away = True
        token = build_headers(provider.sign(provider.claims()))
        for _ in range(5):
            with pytest.raises(UnavailableError) as caught:
                await auth.authenticate(token)
            assert caught.value.retry_after is not None
        assert provider.asked == {"/.well-known/openid-configuration": 1}
        provider.away = False
        clock.advance(31)
        assert await auth.authenticate(token) is not None

    @pytest.mark.parametrize(
        "document", [{"issuer": "https://other.example"}, {"jwks_uri": "file:///etc/passwd"}, {"jwks_uri": None}]
    )
    async def test_a_document_that_is_not_the_issuer_s(
        self, provider: OidcProvider, clock: FakeClock, document: Any
    ) -> None:
        provider.document = document
        with pytest.raises(UnavailableError):
            await auth_of(provider, clock).authenticate(build_headers(provider.sign(provider.claims())))


class TestConfiguration:
    @pytest.mark.parametrize(
        "options",
        [
            {"issuer": ""},
            {"issuer": []},
            {"issuer": "login.example.com"},
            {"issuer": "http://login.example.com"},
            {"issuer": "https://user:secret@login.example.com"},
            {"issuer": "https://login.example.com|x"},
            {"issuer": ["https://a.example", "https://a.example"]},
            {"audience": ""},
            {"audience": []},
            {"audience": ["a", ""]},
            {"algorithms": []},
            {"algorithms": "RS256"},
            {"algorithms": ["RS256", "none"]},
            {"algorithms": ["HS256"]},
        ],
        ids=repr,
    )
    def test_a_mistake_is_found_when_it_is_made(self, options: Any) -> None:
        with pytest.raises(ValueError, match="must"):
            BearerAuth(**{"issuer": "https://login.example.com", "audience": AUDIENCE, **options})

    def test_without_its_libraries_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "joserfc", None)
        with pytest.raises(ImportError, match=r"BearerAuth needs .*\.\[oauth\]"):
            BearerAuth(issuer="https://login.example.com", audience=AUDIENCE)

    async def test_no_token_gets_into_a_log(
        self, provider: OidcProvider, clock: FakeClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        auth = auth_of(provider, clock)
        good, bad = provider.sign(provider.claims()), provider.sign(provider.claims(aud="x"))
        await auth.authenticate(build_headers(good))
        await refusal(auth, bad)
        for part in [*good.split("."), *bad.split(".")]:
            assert part not in caplog.text + repr(auth)
