"""Found by an attacker: settings of a wrong type or without a bound were accepted, and then protected nothing."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    AuthPolicy,
    BearerAuth,
    ChannelConfigurationError,
    EventLimits,
    HmacAuth,
    HttpLimits,
    OneTimeCodeIdentityLinker,
    RateLimit,
    ServerLimits,
)
from frontdesk.approvals.policy import ApproverRole
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk_testing import EchoAgent

SECRET = "a secret of billing and us"
KEYS_BY_NAME: Any = {"the-first-of-the-secrets": SECRET}


def host(channel: Any = None, **settings: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(EchoAgent(), channels=[channel or InvocationsChannel()], **settings)


def bearer(**settings: Any) -> BearerAuth:
    return BearerAuth(issuer="https://login.example.com", audience="api", **settings)


@pytest.mark.parametrize(
    "flag", ["allow_anonymous", "allow_in_process_runner", "allow_unsafe_state_dir", "link_verified_claims"]
)
@pytest.mark.parametrize("given", ["false", "", 0, None])
def test_the_text_false_of_a_variable_let_everybody_in(flag: str, given: Any) -> None:
    with pytest.raises(ChannelConfigurationError) as caught:
        host(**{flag: given})
    assert list(caught.value.findings) == [f"{flag} must be True or False, got {type(given).__name__}"]


LIMITS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda value: HttpLimits(max_bytes=value), "limits: max_bytes"),
    (lambda value: HttpLimits(max_running_per_caller=value), "limits: max_running_per_caller"),
    (lambda value: HttpLimits(per_caller=RateLimit(value)), "limits: per_caller: requests"),
    (lambda value: HttpLimits(per_channel=RateLimit(1, per_seconds=value)), "limits: per_channel: per_seconds"),
    (lambda value: HttpLimits(per_channel=RateLimit(1, burst=value)), "limits: per_channel: burst"),
    (lambda value: EventLimits(max_waiting_per_caller=value), "max_waiting_per_caller"),
    (lambda value: EventLimits(per_caller=RateLimit(value)), "per_caller: requests"),
    (lambda value: ServerLimits(head_seconds=value), "server limits: head_seconds"),
    (lambda value: ServerLimits(max_connections=value), "server limits: max_connections"),
]


@pytest.mark.parametrize(("make", "name"), LIMITS, ids=[name for _, name in LIMITS])
@pytest.mark.parametrize("value", [nan, inf, "10", True])
def test_a_limit_that_is_no_number_limited_nothing(make: Callable[[Any], Any], name: str, value: Any) -> None:
    (finding,) = make(value).findings()
    assert finding.startswith(f"{name} must be a ")


@pytest.mark.parametrize("kind", [HttpLimits, EventLimits])
def test_a_number_in_the_place_of_a_rate_was_an_attribute_error(kind: Any) -> None:
    (finding,) = kind(per_caller=10).findings()
    assert finding.endswith("per_caller must be a RateLimit or None, got int")


@pytest.mark.parametrize("value", [nan, inf])
def test_a_time_limit_that_is_no_number_never_ended(value: float) -> None:
    for build, name in (
        (lambda: host(InvocationsChannel(body_timeout=value)), "body_timeout"),
        (lambda: host(WebChatChannel(body_timeout=value)), "body_timeout"),
        (lambda: host(session_wait_seconds=value), "session_wait_seconds"),
    ):
        with pytest.raises(ChannelConfigurationError, match=f"{name} must be a finite number, got {value!r}"):
            build()


@pytest.mark.parametrize("value", [nan, inf, "60"])
@pytest.mark.parametrize(
    "build",
    [
        lambda value: bearer(leeway=value),
        lambda value: bearer(cache_seconds=value),
        lambda value: bearer(stale_seconds=value),
        lambda value: HmacAuth({"billing": SECRET}, window_seconds=value),
        lambda value: AuthPolicy.native_allowlist(lambda: ["ada"], cache_seconds=value),
    ],
    ids=["leeway", "cache_seconds", "stale_seconds", "window_seconds", "allowlist"],
)
def test_credentials_never_expired(build: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(ValueError, match="must be a finite number"):
        build(value)


@pytest.mark.parametrize("value", [nan, inf, 0, True])
@pytest.mark.parametrize("setting", ["max_attempts_per_identity", "max_attempts_per_code"])
def test_link_codes_could_be_guessed_without_end(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=setting):
        OneTimeCodeIdentityLinker(**{setting: value})


@pytest.mark.parametrize(
    "build",
    [
        lambda: AuthPolicy.native_allowlist({"ada": False}),
        lambda: AuthPolicy.linked_claim_allowlist("groups", {"staff": False}),
        lambda: ApiKeyAuth({"ada": KEYS_BY_NAME}),
        lambda: HmacAuth({"billing": KEYS_BY_NAME}),
    ],
    ids=["ids", "claims", "keys", "secrets"],
)
def test_of_a_mapping_the_names_counted(build: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"dict|mapping"):
        build()


def test_of_a_mapping_as_the_values_of_a_role_the_names_counted() -> None:
    role = ApproverRole(name="the managers", claim="groups", values={"managers": False})
    assert list(role.findings()) == ["the role 'the managers' has a claim but no list of values"]


@pytest.mark.parametrize("keys", [[], ()])
def test_an_empty_list_of_seal_keys_stored_tokens_unencrypted(keys: Any) -> None:
    with pytest.raises(ChannelConfigurationError, match="seal_key"):
        AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], seal_key=keys)
