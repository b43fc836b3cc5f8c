"""Calls to an identity provider: what is asked, what is believed of the answer, and what must not happen on the way."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import pytest

from frontdesk.auth.oidc import (
    CACHE_SECONDS,
    MAX_ANSWER_BYTES,
    RETRY_SECONDS,
    Issuer,
    Known,
    ProviderHttp,
    parse_signing_key,
    provider_url,
)
from frontdesk.errors import UnavailableError
from frontdesk_testing import FakeClock
from tests.oidc import OidcProvider, oidc_provider
from tests.outbound.origin import SECRET, Origin, build_redirect, ok, serve_origin


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with serve_origin() as one:
        yield one


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with oidc_provider() as one:
        yield one


def answer(body: bytes, *headers: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in ("HTTP/1.1 200 OK", f"content-length: {len(body)}", *headers))
    return head.encode() + b"\r\n" + body


async def test_an_issuer_is_asked_in_no_caller_s_context() -> None:
    """What it tells is for all of them, and one of them happens to come first."""
    mark: ContextVar[str] = ContextVar("mark", default="")
    seen: list[str] = []

    class Http(ProviderHttp):
        async def get(self, url: str, **_: Any) -> Any:
            seen.append(mark.get())
            raise UnavailableError

    issuer = Issuer("https://issuer.example", http=Http(), clock=FakeClock(1000.0))
    mark.set("alice")
    with pytest.raises(UnavailableError):
        await issuer.load()
    assert seen == [""]


class TestCalls:
    async def test_a_form_is_sent_and_json_is_read(self, origin: Origin) -> None:
        origin.answers["/token"] = answer(b'{"a": 1}')
        found = await ProviderHttp().post(f"http://127.0.0.1:{origin.port}/token", {"code": SECRET})
        assert (found.status, found.body) == (200, {"a": 1})
        assert "POST /token HTTP/1.1" in origin.heads[0]
        assert "content-type: application/x-www-form-urlencoded" in origin.heads[0].lower()
        assert "accept-encoding: identity" in origin.heads[0].lower()
        assert "'a': 1" not in repr(found)

    @pytest.mark.parametrize(
        "said",
        [
            answer(b"[]"),
            answer(b"<html>"),
            answer(b""),
            answer(b"\xff\xfe"),
            answer(b'{"a":' * 5000),
            answer(b"{}", "content-encoding: gzip"),
            answer(b'{"a": "' + b"x" * MAX_ANSWER_BYTES + b'"}'),
            b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}",
            b"nonsense\r\n\r\n",
            build_redirect("https://evil.example/"),
        ],
        ids=lambda value: repr(value[:60]),
    )
    async def test_an_answer_that_can_t_be_used(
        self, origin: Origin, said: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        origin.answers["/x"] = said
        with pytest.raises(UnavailableError) as caught:
            await ProviderHttp().get(f"http://127.0.0.1:{origin.port}/x?code={SECRET}", {"Authorization": SECRET})
        assert caught.value.__cause__ is None
        assert SECRET not in caplog.text + str(caught.value)
        assert len(origin.heads) == 1

    async def test_an_answer_that_does_not_come(self, origin: Origin) -> None:
        async def nothing(origin: Origin, _: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        origin.answers["/x"] = nothing
        with pytest.raises(UnavailableError):
            await ProviderHttp(timeout=0.05).get(f"http://127.0.0.1:{origin.port}/x")

    async def test_nobody_there(self, origin: Origin) -> None:
        with pytest.raises(UnavailableError):
            await ProviderHttp().get("http://127.0.0.1:1/x")

    async def test_a_proxy_is_used_where_one_is_named(self, origin: Origin) -> None:
        origin.answers["http://127.0.0.1:1/x"] = ok(b"{}")
        http = ProviderHttp(proxy=f"http://127.0.0.1:{origin.port}")
        assert (await http.get("http://127.0.0.1:1/x")).status == 200

    async def test_the_environment_s_proxy_is_not_used(self, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        origin.answers["/x"] = ok(b"{}")
        assert (await ProviderHttp().get(f"http://127.0.0.1:{origin.port}/x")).status == 200

    @pytest.mark.parametrize(
        "url",
        [
            *(
                "",
                "login.example",
                "http://login.example",
                "ftp://a.example",
                "https://",
                "https:///x",
                "https://u@a.example",
            ),
            *(
                "https://a.example#x",
                "https://a b",
                "https://a\n",
                "https://a\\b",
                "http://localhost.evil.example",
                "https://a|",
            ),
        ],
        ids=repr,
    )
    def test_a_url_that_is_none_of_a_provider_s(self, url: str) -> None:
        with pytest.raises(ValueError, match="must be an https URL"):
            provider_url(url, "it")

    def test_plain_http_is_for_this_machine_only(self) -> None:
        for host in ("127.0.0.1", "localhost", "[::1]"):
            assert provider_url(f"http://{host}:80/x", "it")


class TestIssuers:
    async def test_a_refresh_that_fails_leaves_the_keys_alone(self, provider: OidcProvider) -> None:
        clock = FakeClock()
        issuer = Issuer(provider.issuer, http=ProviderHttp(), clock=clock)
        kid = provider.listed[0]["kid"]
        assert await issuer.key(kid, "RS256") is not None
        provider.away = True
        clock.advance(31)
        assert await issuer.key("unknown", "RS256") is None
        assert await issuer.key(kid, "RS256") is not None

    async def test_a_clock_that_was_set_back_stops_nothing(self, provider: OidcProvider) -> None:
        clock = FakeClock()
        issuer = Issuer(provider.issuer, http=ProviderHttp(), clock=clock)
        provider.away = True
        with pytest.raises(UnavailableError):
            await issuer.load()
        provider.away = False
        clock.jump(-100_000)
        clock.advance(RETRY_SECONDS)
        assert (await issuer.load()).keys

    async def test_keys_lasted_until_the_time_that_a_clock_was_set_back_from(self, provider: OidcProvider) -> None:
        clock = FakeClock()
        issuer = Issuer(provider.issuer, http=ProviderHttp(), clock=clock)
        clock.jump(100_000)
        await issuer.load()
        clock.jump(-100_000)
        clock.advance(CACHE_SECONDS)
        asked = provider.asked.total()
        await issuer.load()
        assert provider.asked.total() > asked

    def test_two_keys_of_one_name_are_none(self, provider: OidcProvider) -> None:
        key = parse_signing_key(provider.listed[0])
        assert key is not None
        assert Known({}, [key]).key(key.kid, "RS256") is key
        assert Known({}, [key, key]).key(key.kid, "RS256") is None
        assert Known({}, [key, key]).key(None, "RS256") is None

    @pytest.mark.parametrize(
        "jwk",
        [
            {},
            {"kty": "oct", "k": "AAAA"},
            {"kty": "RSA"},
            {"kty": "RSA", "n": 7, "e": []},
            {"kty": "EC", "crv": "P-999", "x": "a", "y": "b"},
            {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA"},
            {"kty": []},
            {"kty": "RSA", "key_ops": 7},
        ],
        ids=repr,
    )
    def test_a_key_of_another_kind_is_passed_over(self, jwk: dict[str, object]) -> None:
        assert parse_signing_key(jwk) is None
