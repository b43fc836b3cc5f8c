"""Which deliveries are kept for the reply to their event, and what a reply has."""

from typing import Any

import pytest

from frontdesk.delivery.awaited import INTERRUPTED, REPLIED, choose, for_event
from frontdesk.models.channel_storage import SealedToken
from frontdesk.models.delivery import Attempt, Delivery
from frontdesk_testing.store_samples import delivery, inbox_item

TOKEN = SealedToken(event_id="evt", key_id="k", data=b"x", expires_at=9.0)
EVENT = inbox_item("evt").replace(request=inbox_item("evt").request.replace(conversation_id="chat"))


def row(**changes: Any) -> Delivery:
    fresh = {"channel": EVENT.channel, "conversation_id": "chat", "reply_by": 5.0, "due_at": 5.0, "payload": "hello"}
    return delivery("dlv").replace(**{**fresh, **changes})


def after(code: str) -> tuple[Attempt, ...]:
    return (Attempt(at=1.0, code=code),)


ROWS = {
    "fresh": row(),
    "not for the reply": row(reply_by=None),
    "never made": row(payload=None, status="dead", ended_at=1.0),
    "being written": row(status="sending", attempts=1, held_for=3.0),
    "being written by a process that is gone": row(status="sending", attempts=1),
    "left alone": row(status="unknown", attempts=1, history=after(INTERRUPTED), ended_at=1.0),
    "written": row(status="accepted", attempts=1, history=after(REPLIED), ended_at=1.0),
    "pushed": row(status="accepted", attempts=1, history=after("accepted"), ended_at=1.0),
    "being pushed": row(status="sending", attempts=2, held_for=3.0),
    "tried once": row(status="pending", attempts=1, history=after("error")),
    "pushed and not known": row(status="unknown", attempts=2, history=after("timeout"), ended_at=1.0),
}


@pytest.mark.parametrize(
    ("names", "first", "again"),
    [
        ([], "nothing", "nothing"),
        (["fresh"], "claim", "claim"),
        (["fresh", "not for the reply", "never made"], "claim", "claim"),
        (["not for the reply"], "nothing", "nothing"),
        (["being written"], "nothing", "busy"),
        (["being written by a process that is gone"], "nothing", "claim"),
        (["left alone", "being written by a process that is gone"], "nothing", "claim"),
        (["written"], "nothing", "repeat"),
        (["written", "pushed"], "nothing", "nothing"),
        (["pushed"], "nothing", "nothing"),
        (["being pushed"], "nothing", "busy"),
        (["tried once", "fresh"], "nothing", "nothing"),
        (["pushed and not known"], "nothing", "nothing"),
    ],
)
def test_what_a_reply_has(names: list[str], first: str, again: str) -> None:
    rows = [ROWS[name] for name in names]
    assert (choose(rows, again=False).how, choose(rows, again=True).how) == (first, again)


def test_a_reply_has_all_parts_in_their_order_or_none() -> None:
    parts = [row(part=number) for number in range(3)]
    assert choose([parts[0], ROWS["never made"], *parts[1:]], again=False).rows == parts


PUSHED = {"reply_by": None, "due_at": 1.0}


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, True),
        ({"conversation_id": "another"}, False),
        ({"conversation_id": None}, False),
        ({"channel": "another"}, False),
        ({"replaces": "msg_1"}, False),
        ({"status": "dead", "ended_at": 1.0}, False),
    ],
)
def test_what_is_kept_for_a_reply(changes: dict[str, Any], kept: bool) -> None:
    given = row(**{**PUSHED, **changes})
    waited_for = EVENT.replace(reply_by=5.0)
    assert for_event([given], waited_for, 4.0) == [given.replace(reply_by=5.0, due_at=5.0) if kept else given]
    assert for_event([given], waited_for, 5.0) == [given]
    assert for_event([given], EVENT, 4.0) == [given]


def test_what_goes_back_has_the_token_of_its_event() -> None:
    back, change, away = row(**PUSHED), row(**PUSHED, replaces="m"), row(**PUSHED, conversation_id="another")
    bound = for_event([back, change, away], EVENT.replace(reply_token=TOKEN), 4.0)
    assert [part.reply_token for part in bound] == [TOKEN, TOKEN, None]
