"""A part that changes a message may be repeated, and is never a second message where the first one can be changed."""

from typing import Any

import pytest

from frontdesk.delivery.push import NO_EDITS, NOTHING_TO_CHANGE
from frontdesk.errors import PushError, PushNotEditableError, PushNotModifiedError, PushRefusedError, PushUnknownError
from tests.delivery.conftest import MakeDesk
from tests.delivery.scripted import AskableChannel, ScriptedChannel


class EditingChannel(ScriptedChannel):
    """The same, on a platform whose messages can be changed."""

    push_edits = True


class AskableEditingChannel(AskableChannel):
    """The same, and the platform can be asked."""

    push_edits = True


async def test_a_change_is_given_to_the_channel_as_what_it_is(make_desk: MakeDesk) -> None:
    desk = make_desk(EditingChannel())
    await desk.add(
        desk.row("a0", replaces="m1"),
        desk.row("b0", replaces="m2", action="settle"),
        desk.row("c0", replaces="m3", action="retract"),
        desk.row("d0"),
    )
    assert await desk.drain() is None
    asked = [(part.action, part.replaces) for part in desk.channel.sent]
    assert asked == [("send", "m1"), ("settle", "m2"), ("retract", "m3"), ("send", None)]


async def test_a_change_without_a_receipt_of_its_own_has_that_of_its_message(make_desk: MakeDesk) -> None:
    class Silent(EditingChannel):
        async def push_part(self, part: Any) -> str | None:
            await super().push_part(part)
            return None

    desk = make_desk(Silent())
    await desk.add(desk.row("a0", replaces="m1"), desk.row("b0"))
    await desk.drain()
    assert [(await desk.get(name)).receipt for name in ("a0", "b0")] == ["m1", None]


@pytest.mark.parametrize("channel", [EditingChannel, AskableEditingChannel])
async def test_a_change_that_may_have_arrived_is_asked_for_again(
    make_desk: MakeDesk, channel: type[ScriptedChannel]
) -> None:
    desk = make_desk(channel())
    desk.channel.answer("ann", PushUnknownError(code="timeout"), PushNotModifiedError())
    await desk.add(desk.row("a0", replaces="m1"))
    wait = await desk.drain()
    assert wait is not None
    desk.clock.advance(wait)
    assert await desk.drain() is None
    changed = await desk.get("a0")
    assert (changed.status, changed.receipt, changed.error) == ("accepted", "m1", None)
    assert [attempt.code for attempt in changed.history] == ["timeout", "not_modified"]
    assert len(desk.channel.sent) == 2


async def test_a_change_that_a_crash_has_cut_off_is_asked_for_again(make_desk: MakeDesk) -> None:
    desk = make_desk(EditingChannel())
    await desk.add(desk.row("a0", replaces="m1", status="sending", attempts=1))
    desk.restart()
    assert await desk.drain() is None
    assert await desk.status("a0") == ("accepted", None)
    assert [part.replaces for part in desk.channel.sent] == ["m1"]


async def test_what_can_not_be_changed_any_more_is_sent_as_a_new_message(make_desk: MakeDesk) -> None:
    desk = make_desk(EditingChannel())
    desk.channel.answer("ann", PushNotEditableError(code="too_old"))
    await desk.add(desk.row("a0", replaces="m1", parts=2), desk.row("a1", part=1, parts=2))
    assert await desk.drain() is None
    assert [(part.content, part.replaces) for part in desk.channel.sent] == [
        ("text a0", "m1"),
        ("text a0", None),
        ("text a1", None),
    ]
    sent = await desk.get("a0")
    assert (sent.status, sent.replaces, sent.receipt, sent.attempts) == ("accepted", None, "r2", 1)
    assert [attempt.code for attempt in sent.history] == ["too_old", "accepted"]


async def test_it_is_written_that_there_is_nothing_to_change_before_a_new_message_is_sent(make_desk: MakeDesk) -> None:
    desk = make_desk(EditingChannel())
    desk.channel.answer("ann", PushNotEditableError(), PushUnknownError(code="timeout"))
    await desk.add(desk.row("a0", replaces="m1"))
    await desk.drain()
    left = await desk.get("a0")
    # A new message is as careful as any: this one may have arrived.
    assert (left.status, left.replaces) == ("unknown", None)


@pytest.mark.parametrize("action", ["settle", "retract"])
async def test_what_is_gone_needs_neither_to_be_settled_nor_removed(make_desk: MakeDesk, action: Any) -> None:
    desk = make_desk(EditingChannel())
    desk.channel.answer("ann", PushNotEditableError(code="message_not_found"))
    await desk.add(desk.row("a0", replaces="m1", action=action), desk.row("b0", action=action))
    assert await desk.drain() is None
    assert [part.replaces for part in desk.channel.sent] == ["m1"]
    first, second = await desk.get("a0"), await desk.get("b0")
    assert (first.status, [attempt.code for attempt in first.history]) == ("accepted", ["message_not_found"])
    assert (second.status, [attempt.code for attempt in second.history]) == ("accepted", [NOTHING_TO_CHANGE])


async def test_a_repeat_never_becomes_a_new_message(make_desk: MakeDesk) -> None:
    desk = make_desk(EditingChannel())
    desk.channel.answer("ann", PushNotEditableError(code="too_old"))
    await desk.add(desk.row("a0", replaces="m1", is_repeat=True))
    assert await desk.drain() is None
    assert [part.replaces for part in desk.channel.sent] == ["m1"]
    done = await desk.get("a0")
    assert (done.status, [attempt.code for attempt in done.history]) == ("accepted", ["too_old"])


async def test_a_channel_without_edits_never_gets_one(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(
        desk.row("a0", replaces="m1"),
        desk.row("b0", replaces="m2", action="settle"),
        desk.row("c0", replaces="m3", action="retract"),
    )
    assert await desk.drain() is None
    assert [(part.content, part.action, part.replaces) for part in desk.channel.sent] == [("text a0", "send", None)]
    for name in ("a0", "b0", "c0"):
        ended = await desk.get(name)
        assert (ended.status, ended.history[0].code) == ("accepted", NO_EDITS)


@pytest.mark.parametrize("error", [PushNotModifiedError(), PushNotEditableError()])
async def test_only_a_change_can_fail_as_one(make_desk: MakeDesk, error: PushRefusedError) -> None:
    desk = make_desk(EditingChannel())
    desk.channel.answer("ann", error)
    await desk.add(desk.row("a0"))
    await desk.drain()
    assert await desk.status("a0") == ("dead", error.code)


async def test_any_other_failure_of_a_change_is_one_of_a_delivery(make_desk: MakeDesk) -> None:
    desk = make_desk(EditingChannel())
    desk.channel.answer("ann", PushError(code="down"))
    await desk.add(desk.row("a0", replaces="m1"))
    wait = await desk.drain()
    assert wait is not None
    assert await desk.status("a0") == ("pending", "down")
    desk.clock.advance(wait)
    assert await desk.drain() is None
    assert [part.replaces for part in desk.channel.sent] == ["m1", "m1"]
