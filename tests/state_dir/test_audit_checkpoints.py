"""What wins over a `state_dir` says so (AUDIT 283)."""

from pathlib import Path

import pytest

from frontdesk import AgentFrameworkHost, ChannelConfigurationError
from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import parrot, voices
from tests.scenarios.design.test_workflow import builds

WINS = "state_dir: checkpoints has no effect: checkpoint_location= is given"
OWN = "the workflow keeps checkpoints in a storage of its own: state_dir has no effect on them"


def test_audit_283_a_place_of_checkpoints_beside_a_state_directory_won_silently(tmp_path: Path) -> None:
    place = tmp_path / "checkpoints"
    host = AgentFrameworkHost(
        voices, channels=[InvocationsChannel()], state_dir=tmp_path / "state", checkpoint_location=place
    )
    assert host.warnings == [WINS]
    alone = AgentFrameworkHost(voices, channels=[InvocationsChannel()], state_dir=tmp_path / "state")
    assert alone.warnings == []
    agent = AgentFrameworkHost(parrot(), channels=[InvocationsChannel()], state_dir=tmp_path / "state")
    assert agent.warnings == []


def test_audit_283_a_storage_of_the_workflow_beside_a_state_directory_won_silently(tmp_path: Path) -> None:
    target = builds(tmp_path / "own")
    host = AgentFrameworkHost(target, channels=[InvocationsChannel()], state_dir=tmp_path / "state")
    assert host.warnings == [OWN]
    assert AgentFrameworkHost(target, channels=[InvocationsChannel()]).warnings == []
    with pytest.raises(ChannelConfigurationError, match="the host was given one too"):
        AgentFrameworkHost(target, channels=[InvocationsChannel()], checkpoint_location=tmp_path / "c")
