"""How often an event is tried whose process ends each time."""

from typing import Any

import pytest

from frontdesk.inbox.retry import is_given_up, own_tries, rest_before
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ChannelRequest


def event(kind: Any, attempts: int, lost: int = 0, alone: int = 0) -> InboxItem:
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
        lost=lost,
        alone=alone,
    )


@pytest.mark.parametrize(
    ("kind", "attempts", "rest", "is_tried"),
    [
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
    item = event(kind, attempts, lost=attempts - 1, alone=attempts - 1)
    assert (rest_before(item), not is_given_up(item)) == (rest, is_tried)


@pytest.mark.parametrize("kind", ["turn", "control"])
@pytest.mark.parametrize(
    ("lost", "alone", "rest", "is_tried"),
    [
        (1, 0, 0.0, True),
        (3, 0, 0.0, True),
        (2, 1, 0.5, True),
        (3, 2, 1.0, True),
        (4, 3, 0.0, False),
        (5, 0, 1.0, True),
        (20, 0, 30.0, True),
        (49, 2, 30.0, True),
        (50, 0, 0.0, False),
    ],
)
def test_an_event_in_whose_company_processes_end_is_tried_longer_than_one_that_was_alone(
    kind: Any, lost: int, alone: int, rest: float, is_tried: bool
) -> None:
    item = event(kind, lost + 1, lost, alone)
    assert (rest_before(item), not is_given_up(item)) == (rest, is_tried)


def test_tries_whose_process_ended_are_not_an_event_s_own() -> None:
    assert own_tries(event("turn", 5, lost=4)) == 1
