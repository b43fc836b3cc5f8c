"""Tokens and activities that Bot Service did not send are refused, each for its own reason."""

from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from frontdesk.activity.clouds import CLOUDS
from frontdesk.errors import ForbiddenError, InvalidRequestError, RequestError, UnauthenticatedError, UnavailableError
from frontdesk_testing.activity import APP_ID
from frontdesk_testing.activity.tokens import BARE, ENDORSED, make_signing_key, sign_token
from tests.activity.senders import (
    ENTRA,
    SERVICE_URL,
    SKILL_CALLER,
    Senders,
    altered,
    senders,
    symmetric,
    unsigned,
)

_STRANGER = RSAKey.generate_key(2048, {"kid": ENDORSED})
_OTHER_APP = "22222222-2222-4222-8222-222222222222"


def _forged(token: Callable[[Senders], Any], why: str, **activity: Any) -> Any:
    return pytest.param(token, activity, why, id=why)


FORGED = [
    _forged(lambda s: None, "no bearer token"),
    _forged(lambda s: "nonsense", "not a signed token"),
    _forged(lambda s: "a.b.c", "not a signed token with an issuer"),
    _forged(lambda s: unsigned(s.claims()), "signature algorithm is not accepted"),
    _forged(lambda s: unsigned(s.claims(), "NONE"), "signature algorithm is not accepted "),
    _forged(lambda s: symmetric(s.claims(), make_signing_key(ENDORSED).as_pem(False)), "algorithm is not accepted"),
    _forged(lambda s: sign_token(s.claims(), key=_STRANGER), "signature is invalid"),
    _forged(lambda s: altered(s.token(), serviceurl="https://smba.trafficmanager.net/x/"), "its signature is invalid"),
    _forged(lambda s: s.token()[:-6] + "AAAAAA", "signature is invalid "),
    _forged(lambda s: sign_token(s.claims(), kid="another"), "signing key is unknown"),
    _forged(lambda s: sign_token(s.claims(), kid=""), "names no signing key"),
    _forged(lambda s: sign_token(s.claims(), crit=["b64"], b64=True), "critical header extension"),
    _forged(lambda s: sign_token(s.claims(), typ="at+jwt"), "type is not accepted"),
    _forged(lambda s: sign_token(s.claims(), kid=BARE, key=make_signing_key(BARE)), "not endorsed"),
    _forged(lambda s: s.token(iss="https://evil.example"), "issuer is not accepted"),
    _forged(lambda s: s.token(iss="https://api.botframework.com/"), "its issuer is not accepted"),
    _forged(lambda s: s.token(iss=CLOUDS["usgov"].issuer), "issuer is not accepted "),
    _forged(lambda s: s.token(aud=_OTHER_APP), "claim aud"),
    _forged(lambda s: s.token(aud=[APP_ID, _OTHER_APP]), "audience is not this bot"),
    _forged(lambda s: s.token(aud=None), "its claim aud"),
    _forged(lambda s: s.token(exp=s.now - 3600), "has expired"),
    _forged(lambda s: s.token(exp=None), "claim exp"),
    _forged(lambda s: s.token(nbf=s.now + 3600), "claim nbf"),
    _forged(lambda s: s.token(serviceurl=None), "for another service URL"),
    _forged(lambda s: s.token(serviceurl="https://smba.trafficmanager.net/other/"), "is for another service URL"),
    _forged(lambda s: s.token(serviceurl=[SERVICE_URL]), "another service URL"),
    _forged(lambda s: s.token(), "it is for another service URL", serviceUrl="https://smba.trafficmanager.net/evil/"),
    _forged(lambda s: s.token(), "key is not endorsed for the channel", channelId="telegram"),
    _forged(lambda s: s.token(), "is not endorsed for the channel", channelId="MSTEAMS"),
    _forged(lambda s: s.entra_token(), "its issuer is not accepted "),
    _forged(lambda s: s.entra_token(0, ver="1.0", appid=APP_ID), "issuer is not accepted  "),
]


@pytest.mark.parametrize(("token", "activity", "why"), FORGED)
async def test_a_forged_token_is_refused(token: Callable[[Senders], Any], activity: dict[str, Any], why: str) -> None:
    async with senders() as s:
        with pytest.raises(UnauthenticatedError) as refused:
            await s.prove(token(s), **activity)
        assert why.strip() in str(refused.value)
        # The error of a forged token quotes nothing of it.
        assert "evil" not in str(refused.value)


def test_at_least_twenty_tokens_are_forged() -> None:
    assert len(FORGED) >= 20


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/",
        "https://smba.trafficmanager.net.evil.example/",
        "https://evilbotframework.com/",
        "http://smba.trafficmanager.net/emea/",
        "https://smba.trafficmanager.net:8443/emea/",
        "https://user@smba.trafficmanager.net/emea/",
        "https://smba.trafficmanager.net@evil.example/",
        "https://evil.example/smba.trafficmanager.net/",
        "https://smba.trafficmanager.net\\@evil.example/",
        "https://smba.trafficmanager.net/../../",
        "https://smba.trafficmanager.net/?to=evil",
        "https://smba.trafficmanager.net/#evil",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/",
        "http://localhost:3978/",
        "ftp://smba.trafficmanager.net/",
        "//smba.trafficmanager.net/",
    ],
)
async def test_a_service_url_of_another_server_is_refused_though_its_token_is_right(url: str) -> None:
    async with senders() as s:
        with pytest.raises(UnauthenticatedError, match="does not belong to Bot Service"):
            await s.prove(s.token(serviceurl=url), serviceUrl=url)


@pytest.mark.parametrize(
    "url",
    [
        SERVICE_URL,
        SERVICE_URL.rstrip("/"),
        "https://smba.infra.gcc.teams.microsoft.com/gcc/",
        "https://webchat.botframework.com/",
        "https://slack.botframework.com/",
        "https://own.example.org/x/",
    ],
)
async def test_an_activity_of_bot_service_is_accepted(url: str) -> None:
    async with senders(more_hosts=("own.example.org",)) as s:
        # A slash at the end makes no other server of it.
        proved = await s.prove(s.token(serviceurl=url.rstrip("/")), serviceUrl=url)
        assert (proved.source, proved.activity.text) == ("connector", "hello")


@pytest.mark.parametrize("missing", ["serviceUrl", "channelId"])
async def test_an_activity_without_what_its_token_is_for_is_unreadable(missing: str) -> None:
    async with senders() as s:
        with pytest.raises(InvalidRequestError, match="no serviceUrl or no channelId"):
            await s.prove(s.token(), **{missing: None})


async def test_a_token_that_was_accepted_before_is_held_against_each_activity() -> None:
    async with senders() as s:
        token = s.token()
        await s.prove(token)
        for other in ({"channelId": "telegram"}, {"serviceUrl": "https://smba.trafficmanager.net/amer/"}):
            with pytest.raises(UnauthenticatedError):
                await s.prove(token, **other)
        await s.prove(token)


async def test_unknown_keys_are_looked_for_once_in_a_while_only() -> None:
    async with senders() as s:
        await s.prove(s.token())
        for number in range(5):
            with pytest.raises(UnauthenticatedError, match="signing key is unknown"):
                await s.prove(sign_token(s.claims(), kid=f"made-up-{number}"))
        await s.prove(s.token(jti="again"))
        s.fake.fail_next("KEYS", 500, "InternalError", times=9)
        with pytest.raises(UnauthenticatedError, match="signing key is unknown"):
            await s.prove(sign_token(s.claims(), kid="made-up"))


async def test_without_keys_an_activity_is_to_be_sent_again() -> None:
    async with senders() as s:
        s.fake.fail_next("KEYS", 500, "InternalError", times=9)
        with pytest.raises(UnavailableError):
            await s.prove(s.token())


async def test_the_emulator_is_accepted_only_if_that_is_set_and_writes_for_nobody_else() -> None:
    local = {"channelId": "emulator", "serviceUrl": "http://localhost:51234"}
    async with senders(accept_emulator=True) as s:
        for token in (s.entra_token(), s.entra_token(0, ver="1.0", azp=None, appid=APP_ID)):
            assert (await s.prove(token, **local)).source == "emulator"
        refused: list[tuple[str, dict[str, str]]] = [
            (s.entra_token(), {"serviceUrl": "http://localhost:51234"}),
            (s.entra_token(), {"channelId": "emulator", "serviceUrl": "http://evil.example:80"}),
            (s.entra_token(azp=_OTHER_APP), local),
            (s.entra_token(ver="3.0"), local),
            (s.entra_token(iss=ENTRA[0].issuer, ver="1.0", azp=None), local),
            # Bot Service's own tokens are for no server of this machine.
            (s.token(serviceurl="http://localhost:51234"), {"serviceUrl": "http://localhost:51234"}),
        ]
        for token, activity in refused:
            with pytest.raises(UnauthenticatedError):
                await s.prove(token, **activity)


async def test_only_listed_bots_may_call_this_one_as_a_skill() -> None:
    async with senders(skill_callers=[SKILL_CALLER], more_hosts=("parent.example.org",)) as s:
        url = "https://parent.example.org/api/skills/"
        proved = await s.prove(s.entra_token(azp=SKILL_CALLER), serviceUrl=url)
        assert (proved.source, proved.caller_app) == ("skill", SKILL_CALLER)
        for token, where in (
            (s.entra_token(azp=_OTHER_APP), url),
            (s.entra_token(), url),
            (s.entra_token(azp=SKILL_CALLER), "https://evil.example/"),
        ):
            with pytest.raises(UnauthenticatedError):
                await s.prove(token, serviceUrl=where)


async def test_tenants_are_accepted_by_list() -> None:
    other = "33333333-3333-4333-8333-333333333333"
    async with senders(tenants=["AAAAAAAA-bbbb-4ccc-8ddd-eeeeeeeeeeee"]) as s:
        await s.prove(s.token())
        refused: list[dict[str, Any]] = [
            {"id": "a:1", "conversationType": "personal", "tenantId": other},
            {"id": "a:1", "conversationType": "personal"},
        ]
        for conversation in refused:
            with pytest.raises(ForbiddenError) as error:
                await s.prove(s.token(), conversation=conversation)
            assert error.value.code == "tenant_refused"
        with pytest.raises(RequestError, match="two tenants"):
            await s.prove(s.token(), channelData={"tenant": {"id": other}})
