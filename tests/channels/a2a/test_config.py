"""Settings of the channel: every mistake is found when the host is built."""

from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, ChannelConfigurationError
from frontdesk.channels.a2a import A2AChannel, AgentExtension, AgentSkill
from frontdesk_testing import EchoAgent

SKILL = AgentSkill(id="talk", name="Talk", description="Talks.")


def test_the_defaults_are_right() -> None:
    assert A2AChannel().findings() == []
    assert A2AChannel(skills=[SKILL], tenants=["acme"], extensions=[AgentExtension(uri="urn:a")]).findings() == []


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"title": " "}, "title must not be empty"),
        ({"skills": [SKILL], "extended_skills": [SKILL]}, "is used twice"),
        ({"skills": [SKILL.replace(id="a b")]}, "must have letters"),
        ({"skills": [SKILL.replace(name="")]}, "name of 'talk' must not be empty"),
        ({"skills": [SKILL.replace(tags="chat")]}, "must be a list of strings"),
        ({"skills": [SKILL.replace(input_modes=["nonsense"])]}, "is not a media type"),
        ({"skills": [SKILL.replace(id=f"s{number}") for number in range(300)]}, "at most 256"),
        ({"extensions": [AgentExtension(uri="nonsense")]}, "must be an absolute URI"),
        ({"extensions": [AgentExtension(uri="urn:a", params={"a": object()})]}, "must be JSON"),
        ({"max_push_configs": 0}, "max_push_configs must be"),
        ({"max_push_configs": True}, "max_push_configs must be"),
        ({"tenants": ["a/b"]}, "tenants must be 1 to 64"),
        ({"tenants": ["a", "a"]}, "used twice"),
        ({"max_body_bytes": 0}, "max_body_bytes must be positive"),
    ],
)
def test_a_mistake_is_found(settings: dict[str, Any], found: str) -> None:
    assert any(found in line for line in A2AChannel(**settings).findings())


@pytest.mark.parametrize(
    "settings",
    [
        {"version": None},
        {"push_notifications": "yes"},
        {"skills": "talk"},
        {"skills": ["talk"]},
        {"extensions": ["urn:a"]},
        {"tenants": "acme"},
    ],
)
def test_a_wrong_type_is_found(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(ChannelConfigurationError, match=name):
        AgentFrameworkHost(EchoAgent(), channels=[A2AChannel(**settings)])


def test_a_host_has_one_card() -> None:
    with pytest.raises(ChannelConfigurationError, match=r"agent-card\.json"):
        AgentFrameworkHost(EchoAgent(), channels=[A2AChannel(), A2AChannel(name="other", path="/other")])
