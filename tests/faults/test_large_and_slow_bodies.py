"""Bodies that are too large or never end: refused early, and nothing runs and nothing is stored."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest

from frontdesk.channels.invocations import InvocationsChannel
from tests.faults.test_bad_bodies import JSON, assert_refused
from tests.scenarios.cast import parrot
from tests.scenarios.desk import DEADLINE, PATH, InvocationsHost, open_client, until

HEAD = b"POST /invocations HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
GOOD = b'{"message": "hi"}'


def _answer(raw: bytes) -> tuple[int, dict[str, str], dict[str, dict[str, str]]]:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, json.loads(body)


def _small() -> InvocationsChannel:
    return InvocationsChannel(max_body_bytes=1000, body_timeout=0.05)


@pytest.mark.parametrize("length", [1001, 10**9, 10**15])
async def test_a_large_body_was_announced_and_is_refused_before_it_comes(length: int) -> None:
    async with open_client(parrot(), InvocationsChannel(max_body_bytes=1000)) as desk:
        status, headers, body = _answer(await desk.raw(HEAD + b"content-length: %d\r\n\r\n" % length))
        assert (status, body["error"]["code"], headers["connection"]) == (413, "body_too_large", "close")
        assert desk.untouched()


async def test_a_client_that_asked_first_is_not_told_to_go_on() -> None:
    async with open_client(parrot(), InvocationsChannel(max_body_bytes=1000)) as desk:
        raw = await desk.raw(HEAD + b"expect: 100-continue\r\ncontent-length: 1001\r\n\r\n")
        assert raw.startswith(b"HTTP/1.1 413 ")
        assert desk.untouched()


async def test_a_large_body_came_in_chunks_and_is_refused_before_its_end() -> None:
    async with open_client(parrot(), InvocationsChannel(max_body_bytes=1000)) as desk:
        chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
        # The last chunk never comes: the answer must not wait for it.
        status, headers, body = _answer(await desk.raw(HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunk * 2))
        assert (status, body["error"]["code"], headers["connection"]) == (413, "body_too_large", "close")
        assert desk.untouched()


async def test_chunks_without_end_are_not_kept() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b" " * 10_000

    async with open_client(parrot()) as desk:
        # The server may hang up before the client has read its answer.
        with suppress(httpx.TransportError):
            assert_refused(await desk.client.post(PATH, content=endless(), headers=JSON), 413, "body_too_large")
        assert sent * 10_000 < 64 * 1024 * 1024
        assert desk.untouched()


async def test_a_body_of_just_the_limit_is_welcome() -> None:
    async with open_client(parrot(), InvocationsChannel(max_body_bytes=1000)) as desk:
        content = GOOD + b" " * (1000 - len(GOOD))
        assert (await desk.client.post(PATH, content=content, headers=JSON)).status_code == 200
        too_long = await desk.client.post(PATH, content=content + b" ", headers=JSON)
        assert_refused(too_long, 413, "body_too_large")


HANGING = {
    "half a body": HEAD + b"content-length: 17\r\n\r\n" + GOOD[:9],
    "no body": HEAD + b"content-length: 17\r\n\r\n",
    "half a chunk": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"11\r\n" + GOOD[:9],
    "no last chunk": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"11\r\n" + GOOD + b"\r\n",
}


@pytest.mark.parametrize("sent", HANGING.values(), ids=HANGING)
async def test_a_client_hung_after(sent: bytes) -> None:
    async with open_client(parrot(), _small()) as desk:
        status, headers, body = _answer(await desk.raw(sent))
        assert (status, body["error"]["code"], headers["connection"]) == (408, "request_timeout", "close")
        assert desk.untouched()


async def test_a_client_sent_a_byte_at_a_time_and_ran_out_of_time() -> None:
    async with open_client(parrot(), _small()) as desk:
        reader, writer = await asyncio.open_connection("127.0.0.1", desk.port)
        writer.write(HEAD + b"content-length: 900\r\n\r\n")
        answer = asyncio.create_task(reader.readline())
        while not answer.done():
            writer.write(b" ")
            await asyncio.wait([answer], timeout=0.01)
        writer.close()
        # A byte that crossed the answer can make the kernel forget the answer; the connection is over all the same.
        with suppress(ConnectionResetError):
            assert answer.result().startswith(b"HTTP/1.1 408 ")
        assert desk.untouched()


@pytest.mark.parametrize("sent", HANGING.values(), ids=HANGING)
async def test_a_client_hung_up_after(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with open_client(parrot(), InvocationsChannel(body_timeout=60)) as desk:
        before = len(asyncio.all_tasks())
        await desk.raw(sent, hang_up=True)
        await _quiet(desk, before)
        assert desk.untouched()
    # A command that another test ran in this process may have left the level at INFO.
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def _quiet(desk: InvocationsHost, before: int) -> None:
    await until(lambda: len(asyncio.all_tasks()) <= before, within=DEADLINE)
    assert not desk.active
