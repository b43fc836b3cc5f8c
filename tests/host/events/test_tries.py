"""How often an event is tried whose process ends each time."""

from typing import Any

import pytest

from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.request import ChannelRequest
from frontdesk.host.events.tries import most_tries, rest_before


def event(kind: Any, attempts: int) -> InboxItem:
    caller = Caller(identity=ChannelIdentity(channel="pager", native_id="ada"))
    request = ChannelRequest(channel="pager")
    return InboxItem(
        channel="pager",
        event_id="e",
        conversation_id="c",
        caller=caller,
        request=request,
        received_at=0.0,
        kind=kind,
        attempts=attempts,
    )


@pytest.mark.parametrize(
    ("kind", "attempts", "rest", "is_tried"),
    [
        ("turn", 3, 0.0, True),
        ("turn", 4, 0.0, False),
        ("control", 4, 0.0, False),
        ("resume", 3, 0.0, True),
        ("resume", 4, 0.5, True),
        ("resume", 5, 1.0, True),
        ("resume", 40, 30.0, True),
        ("resume", 50, 30.0, True),
        ("resume", 51, 0.0, False),
    ],
)
def test_a_decision_is_tried_longer_than_other_events_and_rests_in_between(
    kind: Any, attempts: int, rest: float, is_tried: bool
) -> None:
    item = event(kind, attempts)
    assert (rest_before(item), attempts <= most_tries(item)) == (rest, is_tried)
