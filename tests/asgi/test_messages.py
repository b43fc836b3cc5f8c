"""Bodies are read as far as they may be."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.asgi.messages import (
    ClientGoneError,
    check_length,
    collect_headers,
    error_headers,
    read_rest,
    send_json,
    whole_in,
)
from frontdesk.errors import BodyTimeoutError, BodyTooLargeError, MethodNotAllowedError, SessionBusyError

GONE = {"type": "http.disconnect"}


def part(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


class Wire:
    """What an ASGI server hands over; when there is no more, it waits."""

    def __init__(self, messages: Iterable[dict[str, Any]] = ()) -> None:
        self.messages = list(messages)
        self.asked = 0

    async def receive(self) -> Any:
        self.asked += 1
        if self.messages:
            return self.messages.pop(0)
        await asyncio.Event().wait()


async def read(wire: Wire, *, length: bytes | None = None, limit: int = 10) -> bytes:
    check_length({} if length is None else {b"content-length": length}, limit)
    message = await wire.receive()
    body = whole_in(message, limit)
    return await read_rest(wire.receive, message, limit) if body is None else body


class TestReadBody:
    @pytest.mark.parametrize(
        "parts",
        [
            [part(b"")],
            [part(b"0123456789")],
            [part(b"01234", True), part(b"56789")],
            [part(b"", True), part(b"0123456789", True), part(b"")],
            [{"type": "http.request"}],
        ],
    )
    async def test_a_whole_body_is_read(self, parts: list[dict[str, Any]]) -> None:
        expected = b"".join(one.get("body", b"") for one in parts)
        assert await read(Wire(parts)) == expected

    @pytest.mark.parametrize("length", [b"11", b"1000000000000", b"9" * 5000, b"-1", b"abc", b"1e3", b"", b"5, 5"])
    async def test_a_length_that_is_too_large_or_none_at_all_is_refused_unread(self, length: bytes) -> None:
        wire = Wire([part(b"x")])
        with pytest.raises(BodyTooLargeError):
            await read(wire, length=length)
        assert wire.asked == 0

    async def test_the_largest_length_is_fine(self) -> None:
        assert await read(Wire([part(b"0123456789")]), length=b"10") == b"0123456789"

    async def test_whoever_says_less_than_they_send_is_refused(self) -> None:
        with pytest.raises(BodyTooLargeError):
            await read(Wire([part(b"x" * 11)]), length=b"5")

    async def test_reading_stops_as_soon_as_it_is_too_much(self) -> None:
        wire = Wire([part(b"xxxx", True)] * 100)
        with pytest.raises(BodyTooLargeError):
            await read(wire)
        assert wire.asked == 3

    @pytest.mark.parametrize("before", [[], [part(b"x", True)]])
    async def test_a_client_that_leaves_is_gone(self, before: list[dict[str, Any]]) -> None:
        with pytest.raises(ClientGoneError):
            await read(Wire([*before, GONE]))

    @given(parts=st.lists(st.binary(max_size=6), min_size=1, max_size=6), limit=st.integers(0, 20))
    async def test_what_is_read_is_what_was_sent_or_too_much(self, parts: list[bytes], limit: int) -> None:
        wire = Wire([part(one, place < len(parts) - 1) for place, one in enumerate(parts)])
        whole = b"".join(parts)
        if len(whole) <= limit:
            assert await read(wire, limit=limit) == whole
        else:
            with pytest.raises(BodyTooLargeError):
                await read(wire, limit=limit)


async def test_a_json_answer_has_its_length() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await send_json(send, 201, b'{"a":1}', [(b"x-more", b"1")])
    assert sent == [
        {
            "type": "http.response.start",
            "status": 201,
            "headers": [(b"content-type", b"application/json"), (b"content-length", b"7"), (b"x-more", b"1")],
        },
        {"type": "http.response.body", "body": b'{"a":1}'},
    ]


def test_of_a_repeated_header_the_last_counts() -> None:
    assert collect_headers({"headers": [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]}) == {b"a": b"3", b"b": b"2"}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SessionBusyError(retry_after=0.2), [(b"retry-after", b"1")]),
        (SessionBusyError(retry_after=2.6), [(b"retry-after", b"3")]),
        (BodyTooLargeError(), [(b"connection", b"close")]),
        (BodyTimeoutError(), [(b"connection", b"close")]),
        (MethodNotAllowedError(allow=("GET", "POST")), [(b"allow", b"GET, POST")]),
    ],
)
def test_http_says_its_part_about_an_error(error: Any, expected: list[tuple[bytes, bytes]]) -> None:
    assert error_headers(error) == expected
