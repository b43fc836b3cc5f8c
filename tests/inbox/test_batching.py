"""Which messages wait for more, what is taken up with them, and what is made of them."""

from typing import Any

import pytest
from agent_framework import Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import ChannelRequest, InMemoryStateStore
from frontdesk.inbox.batching import MessageBatcher, merge
from frontdesk.models.delivery import EventKind, InboxItem
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW, inbox_item
from tests.scenarios.delivery.chats import SpokenChat


def build_batcher(
    store: InMemoryStateStore | None = None, *, gather: float = 0.0, album: float = 0.0
) -> MessageBatcher:
    channel = SpokenChat("telegram")
    channel.gather_seconds, channel.album_seconds = gather, album
    return MessageBatcher(store or InMemoryStateStore(), {"telegram": channel}, FakeClock(NOW))


def picture(event_id: str = "evt_1", **fields: Any) -> InboxItem:
    return inbox_item(event_id).replace(album_id="album", **fields)


WAITS: list[tuple[float, float, InboxItem, float | None]] = [
    (0.0, 0.0, inbox_item(), None),
    (0.0, 0.0, picture(), None),
    (0.0, 1.0, inbox_item(), None),
    (0.0, 1.0, picture(), 1.0),
    (0.5, 1.0, picture(), 1.0),
    (2.0, 1.0, picture(), 2.0),
    (2.0, 1.0, inbox_item(), 2.0),
    (2.0, 1.0, picture(reply_by=NOW + 5), None),
    (2.0, 1.0, picture(kind="control"), None),
]


@pytest.mark.parametrize(("gather", "album", "item", "seconds"), WAITS)
def test_how_long_a_message_waits(gather: float, album: float, item: InboxItem, seconds: float | None) -> None:
    postponed = build_batcher(gather=gather, album=album).postpone(item)
    waits = (None, None) if seconds is None else (NOW + seconds, NOW + 5 * seconds)
    assert (postponed.not_before, postponed.due_by) == waits


@pytest.mark.parametrize("kind", ["control", "resume"])
@pytest.mark.parametrize("settings", [{}, {"gather": 1.0}, {"album": 1.0}])
async def test_events_that_are_no_turns_are_taken_up_wherever_turns_wait(
    kind: EventKind, settings: dict[str, float]
) -> None:
    store = InMemoryStateStore()
    async with store.transaction() as transaction:
        transaction.accept(inbox_item(kind=kind))
    item = await build_batcher(store, **settings).claim("telegram", "chat", "host_me", kind)
    assert isinstance(item, InboxItem)
    assert item.kind == kind


async def test_the_time_of_an_album_that_waits_is_known() -> None:
    store = InMemoryStateStore()
    waiting = build_batcher(store, album=1.0)
    async with store.transaction() as transaction:
        transaction.accept(waiting.postpone(picture()))
    assert await waiting.claim("telegram", "chat", "host_me", "turn") == NOW + 1
    assert await waiting.claim("telegram", "chat", "host_me", "control") is None


async def test_an_album_that_came_while_something_else_was_answered_was_forgotten() -> None:
    store = InMemoryStateStore()
    waiting = build_batcher(store, album=1.0)
    async with store.transaction() as transaction:
        transaction.accept(inbox_item("evt_1"))
        transaction.accept(waiting.postpone(picture("evt_2")))
    first = await waiting.claim("telegram", "chat", "host_me", "turn")
    assert isinstance(first, InboxItem)
    # Its wake-up may have been that of the first one, which is spent.
    async with store.transaction() as transaction:
        transaction.finish(first)
    assert await waiting.claim("telegram", "chat", "host_me", "turn", again=True) == NOW + 1


async def test_what_came_while_something_else_was_answered_is_taken_up_at_once() -> None:
    store = InMemoryStateStore()
    waiting = build_batcher(store, album=1.0)
    assert await waiting.claim("telegram", "chat", "host_me", "turn", again=True) is None
    async with store.transaction() as transaction:
        transaction.accept(inbox_item("evt_1"))
    item = await waiting.claim("telegram", "chat", "host_me", "turn", again=True)
    assert isinstance(item, InboxItem)


def asks(value: Any) -> ChannelRequest:
    return ChannelRequest(channel="telegram", input=value)


def read_input(request: ChannelRequest | None) -> Any:
    if request is None or isinstance(request.input, str):
        return request and request.input
    return [[content.text or content.uri for content in message.contents] for message in request.input]


def photo(name: str, text: str = "") -> Message:
    contents = [Content.from_text(text)] if text else []
    return Message("user", [*contents, Content.from_uri(f"data:image/png;base64,{name}", media_type="image/png")])


A, B = "data:image/png;base64,aaaa", "data:image/png;base64,bbbb"
TOGETHER: list[tuple[list[tuple[str | None, ChannelRequest | None]], Any]] = [
    ([(None, asks("one")), (None, asks("two"))], "one\ntwo"),
    ([(None, asks("one")), (None, None)], None),
    ([(None, asks("one")), (None, asks({"typed": 1}))], None),
    ([(None, asks(photo("aaaa"))), (None, asks(photo("bbbb")))], [[A], [B]]),
    ([("x", asks(photo("aaaa", "look"))), ("x", asks(photo("bbbb")))], [["look", A, B]]),
    ([("x", asks(photo("aaaa"))), ("y", asks(photo("bbbb")))], [[A], [B]]),
    ([("x", asks(photo("aaaa"))), ("x", asks(photo("bbbb"))), (None, asks("so?"))], [[A, B], ["so?"]]),
]


@pytest.mark.parametrize(("requests", "expected"), TOGETHER)
def test_what_is_made_of_messages_that_are_answered_together(
    requests: list[tuple[str | None, ChannelRequest | None]], expected: Any
) -> None:
    assert read_input(merge(requests)) == expected


def test_an_album_has_one_author() -> None:
    first, second = (Message("user", [text], author_name="Ada") for text in ("one", "two"))
    together = merge([("x", asks(first)), ("x", asks(second))])
    assert together is not None
    assert [(message.author_name, message.role) for message in together.input] == [("Ada", "user")]


PARTS = st.lists(st.tuples(st.sampled_from((None, "x", "y")), st.integers(0, 3)), min_size=1, max_size=12)


@given(PARTS)
def test_each_album_is_in_its_order_where_it_began_and_all_else_as_it_came(parts: list[tuple[str | None, int]]) -> None:
    first, *others = (
        inbox_item(str(number)).replace(album_id=album, album_position=position, number=number)
        for number, (album, position) in enumerate(parts)
    )
    sent = first.replace(bundle=tuple(others)).ordered_members
    assert sorted(item.number for item in sent) == list(range(len(parts)))
    plain = [item.number for item in sent if item.album_id is None]
    assert plain == sorted(plain)
    for album in {item.album_id for item in sent} - {None}:
        places = [place for place, item in enumerate(sent) if item.album_id == album]
        assert places == list(range(places[0], places[0] + len(places)))
        positions = [sent[place].album_position for place in places]
        assert positions == sorted(positions)
        began = min(sent[place].number for place in places)
        assert all(item.number < began for item in sent[: places[0]] if item.album_id is None)
