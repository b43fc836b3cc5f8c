"""Events on the wire, and comments while there are none."""

import asyncio
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.http.sse import EventStream, encode_event
from frontdesk_testing import ServerSentEvent, parse_sse

COMMENT = b": keep-alive\n\n"


class Reader:
    """The other end; it can be slow."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.head: Any = None
        self.ended = False
        self.commented = asyncio.Event()
        self.ready = asyncio.Event()
        self.ready.set()

    async def send(self, message: Any) -> None:
        await self.ready.wait()
        if message["type"] == "http.response.start":
            self.head = message
            return
        self.ended = not message.get("more_body", False)
        self.bodies.append(message["body"])
        if message["body"] == COMMENT:
            self.commented.set()


async def test_events_arrive_as_they_are_sent() -> None:
    reader = Reader()
    stream = EventStream(reader.send)
    await stream.start([(b"x-run", b"1")])
    await stream.send(encode_event(b"update", b'{"a":1}', 7))
    await stream.end()
    headers = dict(reader.head["headers"])
    assert reader.head["status"] == 200
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert headers[b"cache-control"] == b"no-cache, no-transform"
    assert headers[b"x-run"] == b"1"
    assert b"content-length" not in headers
    assert parse_sse(b"".join(reader.bodies)) == [ServerSentEvent(event="update", data='{"a":1}', id="7")]
    assert reader.ended


async def test_an_idle_stream_sends_comments_that_are_no_events() -> None:
    reader = Reader()
    stream = EventStream(reader.send, keep_alive=0.01)
    await stream.start()
    await reader.commented.wait()
    await stream.send(encode_event(b"update", b"{}", 1))
    await stream.end()
    assert [event.event for event in parse_sse(b"".join(reader.bodies))] == ["update"]


async def test_it_goes_on_sending_comments() -> None:
    reader = Reader()
    stream = EventStream(reader.send, keep_alive=0.01)
    for _ in range(3):
        reader.commented.clear()
        await reader.commented.wait()
    stream.stop()


async def test_after_the_end_comes_nothing_more() -> None:
    reader, later = Reader(), Reader()
    ended, stopped = EventStream(reader.send, keep_alive=0.01), EventStream(reader.send, keep_alive=0.01)
    await ended.end()
    stopped.stop()
    other = EventStream(later.send, keep_alive=0.01)
    # This one is younger: when it has sent two comments, the others would have sent one.
    for _ in range(2):
        later.commented.clear()
        await later.commented.wait()
    other.stop()
    assert reader.bodies == [b""]


async def test_a_slow_reader_is_not_buried_under_comments() -> None:
    slow, quick = Reader(), Reader()
    slow.ready.clear()
    streams = [EventStream(reader.send, keep_alive=0.01) for reader in (slow, quick)]
    for _ in range(5):
        quick.commented.clear()
        await quick.commented.wait()
    slow.ready.set()
    await slow.commented.wait()
    for stream in streams:
        stream.stop()
    assert slow.bodies == [COMMENT]


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    ),
    number=st.integers(0, 2**53),
)
def test_whatever_json_says_stays_one_event(value: Any, number: int) -> None:
    body = encode_event(b"update", msgspec.json.encode(value), number)
    (event,) = parse_sse(body)
    assert event.json() == value
    assert event.id == str(number)


class Slow(Reader):
    """A reader for whom a send waits, and who takes a little at each look or nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.ready.clear()
        self.takes = True
        self.looks = 0
        self.left = asyncio.Event()

    def count_received(self) -> int:
        self.looks += 1
        return self.looks if self.takes else -1

    def leave(self) -> None:
        self.left.set()


async def test_a_reader_that_takes_nothing_counts_as_gone() -> None:
    slow = Slow()
    slow.takes = False
    stream = EventStream(slow.send, send_seconds=0.02, reader=slow)
    sending = asyncio.create_task(stream.send(encode_event(b"update", b"{}", 1)))
    await slow.left.wait()
    assert not sending.done()
    stream.stop()
    sending.cancel()


async def test_a_reader_that_takes_a_little_again_and_again_stays() -> None:
    slow = Slow()
    stream = EventStream(slow.send, send_seconds=0.02, reader=slow)
    sending = asyncio.create_task(stream.send(encode_event(b"update", b"{}", 1)))
    # Four looks are the whole time that it has.
    while slow.looks < 20:
        await asyncio.wait([sending], timeout=0.005)
    assert not slow.left.is_set()
    slow.takes = False
    await slow.left.wait()
    stream.stop()
    sending.cancel()


async def test_the_end_of_a_stream_does_not_wait_for_ever_either() -> None:
    slow = Slow()
    slow.takes = False
    stream = EventStream(slow.send, keep_alive=0.01, send_seconds=0.05, reader=slow)
    ending = asyncio.create_task(stream.end())
    await slow.left.wait()
    slow.ready.set()
    await ending
    assert slow.bodies == [b""]


async def test_a_stream_that_has_nothing_to_send_waits_for_no_reader() -> None:
    reader, slow = Reader(), Slow()
    stream = EventStream(reader.send, keep_alive=0.01, send_seconds=0.01, reader=slow)
    for _ in range(5):
        reader.commented.clear()
        await reader.commented.wait()
    stream.stop()
    assert not slow.left.is_set()
