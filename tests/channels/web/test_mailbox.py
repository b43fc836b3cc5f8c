"""The mailbox: numbers without gaps, each key once, whoever dies in between."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channel_storage.values import MAX_VALUE_LENGTH
from frontdesk.channels.web.channel import build_handle, build_live_edit, build_replacement, read_handle
from frontdesk.channels.web.mailbox import (
    MAX_CHANGES,
    MAX_KEYS,
    MAX_PIECE_LENGTH,
    MAX_TITLE_LENGTH,
    Chat,
    Head,
    Mailbox,
    MessageRef,
)
from frontdesk.channels.web.stream import Feed
from frontdesk.channels.web.wire import MAIN, StoredMessage
from frontdesk.errors import NotFoundError, PushNotEditableError
from frontdesk.interfaces.chat import LiveView, PushPart
from frontdesk.models.channel_storage import StoredValue
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.live_message import LiveFence
from frontdesk.serialization.codec import encode
from tests.examples import examples

SPOT = MessageRef("vis_1", MAIN)


class Storage:
    """A `ChannelStorage` in memory, whose writer can be made to die after a number of writes."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[Any, str]] = {}
        self.writes_left: int | None = None
        self.count = 0
        self.reads = 0

    async def get(self, key: str) -> StoredValue | None:
        self.reads += 1
        await asyncio.sleep(0)
        known = self.values.get(key)
        return None if known is None else StoredValue(value=known[0], version=known[1])

    async def set(self, key: str, value: Any, *, expires_at: float | None = None) -> str:
        if self.writes_left is not None:
            if not self.writes_left:
                raise ConnectionError("the process has died")
            self.writes_left -= 1
        self.count += 1
        assert len(encode(value)) <= MAX_VALUE_LENGTH
        self.values[key] = (msgspec.json.decode(msgspec.json.encode(value)), f"v{self.count}")
        return f"v{self.count}"

    async def compare_and_set(
        self,
        key: str,
        expected_version: str | None,
        value: Any,
        *,
        expires_at: float | None = None,
        fence: LiveFence | None = None,
    ) -> str | None:
        await asyncio.sleep(0)
        version = self.values[key][1] if key in self.values else None
        return await self.set(key, value) if version == expected_version else None

    async def delete(self, key: str) -> None:
        self.values.pop(key, None)


def message(text: str, key: str, **fields: Any) -> StoredMessage:
    return StoredMessage(number=0, at=1.0, text=text, key=key, **fields)


def mailbox(storage: Storage) -> Mailbox:
    return Mailbox(storage, lambda: 100.0, 60.0)


async def test_writers_at_the_same_time_get_numbers_of_their_own() -> None:
    storage = Storage()
    boxes = [mailbox(storage) for _ in range(4)]
    numbers = await asyncio.gather(
        *(boxes[index % 4].add(SPOT, message(f"text {index}", f"key {index}")) for index in range(12))
    )
    assert sorted(numbers) == list(range(1, 13))
    shown = await boxes[0].page(SPOT, None, 50)
    assert {one.number: one.text for one in shown} == {number: f"text {index}" for index, number in enumerate(numbers)}


async def test_the_same_key_at_the_same_time_is_one_message() -> None:
    storage = Storage()
    numbers = await asyncio.gather(*(mailbox(storage).add(SPOT, message("text", "key")) for _ in range(5)))
    assert numbers == [1] * 5
    assert len(await mailbox(storage).page(SPOT, None, 50)) == 1


@pytest.mark.parametrize("writes", range(4))
async def test_what_a_dead_writer_has_begun_is_completed_by_the_next(writes: int) -> None:
    storage = Storage()
    storage.writes_left = writes
    text = "x" * (MAX_PIECE_LENGTH + 5)
    try:
        await mailbox(storage).add(SPOT, message(text, "first"))
    except ConnectionError:
        assert writes < 3
    storage.writes_left = None
    second = await mailbox(storage).add(SPOT, message("other", "second"))
    again = await mailbox(storage).add(SPOT, message(text, "first"))
    assert sorted((second, again)) == [1, 2]
    shown = await mailbox(storage).page(SPOT, None, 50)
    assert {one.number: one.text for one in shown} == {again: text, second: "other"}


async def test_a_conversation_that_is_gone_takes_no_message() -> None:
    with pytest.raises(NotFoundError):
        await mailbox(Storage()).add(MessageRef("vis_1", "cnv_gone"), message("x", "k"))


async def test_pages_go_back_to_the_beginning() -> None:
    box = mailbox(Storage())
    for index in range(7):
        await box.add(SPOT, message(str(index + 1), f"k{index}"))
    assert [one.number for one in await box.page(SPOT, None, 3)] == [5, 6, 7]
    assert [one.number for one in await box.page(SPOT, 5, 3)] == [2, 3, 4]
    assert [one.number for one in await box.page(SPOT, 2, 3)] == [1]
    assert await box.page(SPOT, 1, 3) == []


async def test_opening_a_conversation_reads_its_last_page_alone() -> None:
    storage = Storage()
    box = mailbox(storage)
    for index in range(400):
        await box.add(SPOT, message("x", f"k{index}"))
    storage.reads = 0
    assert [one.number for one in await box.page(SPOT, None, 50)] == list(range(351, 401))
    assert storage.reads == 51


@examples(30)
@given(st.lists(st.text(max_size=40).map(lambda text: text * 300), max_size=5))
def test_a_feed_that_is_read_at_any_time_ends_with_the_text(pieces: list[str]) -> None:
    asyncio.run(_grow(pieces))


async def _grow(pieces: list[str]) -> None:
    box = mailbox(Storage())
    number = await box.add(SPOT, message("", "live", state="live"))
    place, feed, text, shown = SPOT._replace(number=number), Feed(box, SPOT.visitor, 0, lambda: 0.0), "", ""
    for piece in pieces:
        view = LiveView(text=text + piece, new_from=len(text))
        text += piece
        await box.edit(place, build_live_edit(view), quiet=True)
        frame = await feed.read()
        for event in [] if frame is None else frame.events:
            if event["type"] == "message":
                shown = event["message"].get("text", "")
            elif event["type"] == "delta":
                assert event["from"] == len(shown)
                shown += event["text"]
    assert not pieces or shown == text
    whole = await box.message(place)
    assert whole is not None
    assert (whole.text, whole.length) == (text, len(text))


async def test_a_poll_receives_only_what_was_added_to_a_live_message() -> None:
    box = mailbox(Storage())
    number = await box.add(SPOT, message("one", "live", state="live"))
    place = SPOT._replace(number=number)
    first = Feed(box, SPOT.visitor, 0, lambda: 0.0)
    await first.read()
    assert await Feed(box, SPOT.visitor, first.cursor, lambda: 0.0, shows=first.shows()).read() is None
    await box.edit(place, build_live_edit(LiveView(text="one two", new_from=3)), quiet=True)
    second = Feed(box, SPOT.visitor, first.cursor, lambda: 0.0, shows=first.shows())
    frame = await second.read()
    assert frame is not None
    assert [(event["type"], event["text"]) for event in frame.events] == [("delta", " two")]


@given(st.text(max_size=80))
def test_any_text_can_stand_where_a_poll_names_what_it_shows(text: str) -> None:
    box = mailbox(Storage())
    Feed(box, SPOT.visitor, 0, lambda: 0.0, shows=text).shows()


async def test_a_text_that_begins_anew_is_a_new_epoch() -> None:
    box = mailbox(Storage())
    number = await box.add(SPOT, message("a long beginning", "live", state="live"))
    place = SPOT._replace(number=number)
    feed = Feed(box, SPOT.visitor, 0, lambda: 0.0)
    await feed.read()
    await box.edit(place, build_live_edit(LiveView(text="other")), quiet=True)
    frame = await feed.read()
    assert frame is not None
    assert [(event["type"], event["message"]["epoch"]) for event in frame.events] == [("message", 1)]


async def test_an_answer_that_is_complete_takes_no_late_update() -> None:
    box = mailbox(Storage())
    number = await box.add(SPOT, message("done", "k"))
    with pytest.raises(PushNotEditableError):
        await box.edit(SPOT._replace(number=number), build_live_edit(LiveView(text="late")), quiet=True)


async def test_a_page_that_was_away_for_too_long_starts_over() -> None:
    box = mailbox(Storage())
    for index in range(MAX_CHANGES):
        await box.add(SPOT, message("x", f"k{index}"))
    old = await Feed(box, SPOT.visitor, 1, lambda: 0.0).read()
    unknown = await Feed(box, SPOT.visitor, 10**6, lambda: 0.0).read()
    assert old is not None
    assert unknown is not None
    assert [event["type"] for event in old.events + unknown.events] == ["reset", "reset"]


def test_the_largest_head_fits_into_a_stored_value() -> None:
    head = Head(chats=())
    for index in range(100):
        chat = Chat(
            id=f"cnv_{index:024d}",
            at=1.0e9 / 3,
            title="" if index % 2 else "😀" * MAX_TITLE_LENGTH,
            last=10**6,
            busy_until=1.0e9 / 3,
            born=1.0e9 / 3,
            # A branch has no title of its own.
            base=f"cnv_{index - 1:024d}" if index % 2 else "",
            shared=10**6 - 1 if index % 2 else 0,
            run=f"run_{index:040d}" if index % 2 else "",
            archived=True,
        )
        head = head.with_chat(chat)
    for index in range(max(MAX_CHANGES, MAX_KEYS)):
        chat = head.chats[-1]
        chat = msgspec.structs.replace(chat, last=chat.last + 1)
        head = head.with_message(chat, f"{index:024d}", live=index < 20)
    assert len(encode(msgspec.to_builtins(head))) < MAX_VALUE_LENGTH


def test_a_handle_names_its_message() -> None:
    place = MessageRef("vis_0192", "cnv_abc", 12)
    assert read_handle(build_handle(place)) == place


async def test_a_message_is_added_once_however_many_came_between() -> None:
    box = mailbox(Storage())
    for index in range(2 * MAX_KEYS + 1):
        assert await box.add(SPOT, message("x", f"key {index}")) == index + 1
    assert [await box.add(SPOT, message("x", f"key {index}")) for index in (0, 1, MAX_KEYS)] == [1, 2, MAX_KEYS + 1]
    assert await box.find("vis_1", "key 0") == SPOT._replace(number=1)
    assert await box.find("vis_1", "another") is None


async def test_nothing_stays_of_a_message_that_was_taken_back() -> None:
    storage = Storage()
    box = mailbox(storage)
    number = await box.add(SPOT, message("secret " * MAX_PIECE_LENGTH, "key", state="live"))
    part = PushPart(
        identity=ChannelIdentity(channel="web", native_id="vis_1"),
        conversation_id=None,
        content=None,
        idempotency_key="key2",
        replaces="vis_1/main/1",
        action="retract",
    )
    await box.edit(SPOT._replace(number=number), build_replacement(part, None))
    frame = await Feed(box, "vis_1", 0, lambda: 100.0).read()
    assert frame is not None
    assert [event["message"]["state"] for event in frame.events if event["type"] == "message"] == ["removed"]
    assert "secret" not in str(storage.values)


async def test_nothing_stays_of_a_conversation_whose_answers_were_begun_anew() -> None:
    storage = Storage()
    box = mailbox(storage)
    await box.change("vis_1", lambda head: head.with_chat(Chat(id="cnv_1")))
    spot = MessageRef("vis_1", "cnv_1")
    number = await box.add(spot, message("first " * MAX_PIECE_LENGTH, "key", state="live"))
    await box.edit(
        spot._replace(number=number), build_live_edit(LiveView(text="other " * MAX_PIECE_LENGTH, new_from=0))
    )
    await box.drop(spot)
    assert [key for key in storage.values if not key.startswith("head/")] == []


async def test_a_live_message_is_found_whose_writer_died_before_it_was_counted() -> None:
    storage = Storage()
    storage.writes_left = 1
    with pytest.raises(ConnectionError):
        await mailbox(storage).add(SPOT, message("half", "live:run_1", state="live"))
    storage.writes_left = None
    found = await mailbox(storage).find(SPOT.visitor, "live:run_1", chat=SPOT.chat)
    assert found == SPOT._replace(number=1)
    assert await mailbox(storage).find(SPOT.visitor, "live:run_2", chat=SPOT.chat) is None


@pytest.mark.parametrize("others", [0, MAX_KEYS])
async def test_an_answer_was_not_listed_whose_writer_died_before_it_was_counted(others: int) -> None:
    """Another host found its live message and completed it. A page that was loaded then did not show the answer."""
    storage, number = Storage(), others + 1
    box = mailbox(storage)
    for other in range(others):
        await box.add(SPOT, message("before", f"key {other}"))
    storage.writes_left = 1
    with pytest.raises(ConnectionError):
        await mailbox(storage).add(SPOT, message("half", "live:run_1", state="live"))
    storage.writes_left = None
    for _ in range(2):
        assert await box.find(SPOT.visitor, "live:run_1", chat=SPOT.chat) == SPOT._replace(number=number)
        assert (await box.head(SPOT.visitor)).live == ((MAIN, number),)
    await box.edit(SPOT._replace(number=number), build_live_edit(LiveView(text="half and more", new_from=4)))
    assert [one.text for one in await box.page(SPOT, None, 1)] == ["half and more"]
    assert await box.add(SPOT, message("next", "next")) == number + 1
    assert await box.find(SPOT.visitor, "live:run_1", chat=SPOT.chat) == SPOT._replace(number=number)
    if others:
        assert await box.find(SPOT.visitor, "key 0", chat=SPOT.chat) == SPOT._replace(number=1)
