"""Clicks that wait are acknowledged once, and those that were answered are not."""

import asyncio
from typing import Any, cast

import pytest

from frontdesk.chat.abilities import AnswersClicks
from frontdesk.chat.channel import ClickWatch
from frontdesk.chat.i18n.texts import Texts
from frontdesk.errors import PushError, StoreUnavailableError
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ChannelRequest


class Desk(AnswersClicks):
    """A platform, and what a host says of the events that came from it."""

    def __init__(self, *, finished: Any = False, fails: bool = False) -> None:
        self.texts, self.events = Texts(), self
        self.finished, self.fails = finished, fails
        self.answered: list[tuple[str, str]] = []
        self.asked = asyncio.Event()

    async def is_finished(self, item: InboxItem) -> bool:
        self.asked.set()
        if isinstance(self.finished, Exception):
            raise self.finished
        return bool(self.finished)

    async def answer_click(self, callback_id: str, text: str) -> None:
        self.answered.append((callback_id, text))
        if self.fails:
            raise PushError("away")

    def watch(self, after: float = 0.0) -> ClickWatch:
        return ClickWatch(cast(ChannelContext, self), self, after)


def click(callback_id: str = "c1") -> InboxItem:
    identity = ChannelIdentity("chat", "ann", {"locale": "de"})
    request = ChannelRequest(channel="chat", operation="approval", attributes={"callback_id": callback_id})
    return InboxItem(
        channel="chat",
        event_id=callback_id,
        conversation_id="1",
        caller=Caller(identity=identity),
        request=request.replace(identity=identity),
        received_at=0.0,
    )


async def wait_for_clicks(desk: Desk, watch: ClickWatch) -> None:
    """Wait until the watched clicks were looked at."""
    await desk.asked.wait()
    await asyncio.gather(*watch._watched.values())


@pytest.mark.parametrize("fails", [False, True])
async def test_a_click_that_waits_is_acknowledged_once_in_the_language_of_the_person(fails: bool) -> None:
    desk = Desk(fails=fails)
    watch = desk.watch()
    watch.watch(click())
    watch.watch(click())
    await wait_for_clicks(desk, watch)
    ((callback_id, text),) = desk.answered
    assert (callback_id, text[:14]) == ("c1", "Ich habe deine")
    assert watch.needs_answer("c1") == fails
    assert watch.needs_answer("c2")


@pytest.mark.parametrize("finished", [True, StoreUnavailableError()])
async def test_one_that_is_finished_or_unknown_is_left_alone(finished: Any) -> None:
    desk = Desk(finished=finished)
    watch = desk.watch()
    watch.watch(click())
    await wait_for_clicks(desk, watch)
    assert desk.answered == []
    assert watch.needs_answer("c1")


async def test_one_that_is_answered_is_watched_no_longer() -> None:
    desk = Desk()
    watch = desk.watch(after=60.0)
    watch.watch(click("c1"))
    watch.watch(click("c2"))
    assert watch.needs_answer("c1")
    assert list(watch._watched) == ["c2"]
    await watch.stop()
    assert desk.answered == []


async def test_no_more_than_a_thousand_are_watched() -> None:
    watch = Desk().watch(after=60.0)
    for number in range(1_100):
        watch.watch(click(str(number)))
    assert len(watch._watched) == 1_000
    await watch.stop()
