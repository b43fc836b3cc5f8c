"""What can be known to be wrong with how a chat waits for more messages."""

import pytest

from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.host.validation.channels import chat_findings
from frontdesk.interfaces.channel import Channel
from tests.scenarios.delivery.chats import SpokenChat

NO_EFFECT = "has no effect: only message channels accept events"


@pytest.mark.parametrize("name", ["gather_seconds", "album_seconds"])
@pytest.mark.parametrize(
    ("channel", "seconds", "finding"),
    [
        (SpokenChat, 0.0, None),
        (SpokenChat, 1.5, None),
        (SpokenChat, -1.0, "must not be negative, and is -1.0"),
        (InvocationsChannel, 0.0, None),
        (InvocationsChannel, 1.5, NO_EFFECT),
    ],
)
def test_a_time_for_which_more_is_waited_for(
    name: str, channel: type[Channel], seconds: float, finding: str | None
) -> None:
    door: Channel = SpokenChat("chat") if channel is SpokenChat else channel()
    setattr(door, name, seconds)
    assert chat_findings(door) == ([] if finding is None else [f"{name} {finding}"])
