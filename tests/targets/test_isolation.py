"""The keys of a platform inside the target: there for the run, and gone with it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk import (
    Caller,
    ChannelIdentity,
    ChannelRequest,
    IsolationKeys,
    get_current_isolation_keys,
    reset_current_isolation_keys,
    set_current_isolation_keys,
)
from frontdesk.errors import ForbiddenError, InvalidRequestError, RequestError
from frontdesk.serialization.codec import decode, encode
from tests.test_pipeline import Probe, open_context, request

KEYS = IsolationKeys(user_key="user-1", chat_key="chat-1", call_id="call-1")
OTHERS = IsolationKeys(user_key="user-2")


def caller(isolation: IsolationKeys | None = KEYS, name: str = "ann") -> Caller:
    return Caller(identity=ChannelIdentity(channel="probe", native_id=name), isolation=isolation)


def read_keys() -> str:
    keys = get_current_isolation_keys()
    return "nothing" if keys is None else f"{keys.user_key}/{keys.chat_key}/{keys.call_id}"


async def telling(text: str) -> AsyncIterator[str]:
    """Says which keys it sees: at once, after a turn of the loop, in a thread and in a task of its own."""
    if text == "fail":
        raise RuntimeError("it failed")
    yield read_keys() + " "
    await asyncio.sleep(0)
    yield await asyncio.to_thread(read_keys) + " "
    yield await asyncio.create_task(_later())


async def _later() -> str:
    return read_keys()


async def extract_text(context: Any, asked: ChannelRequest, who: Caller) -> str:
    return (await context.run(asked, who)).result.text


def thrice(keys: str) -> str:
    return f"{keys} {keys} {keys}"


async def test_they_are_seen_everywhere_in_the_run_and_not_after_it() -> None:
    async with open_context(telling) as (context, _):
        assert await extract_text(context, request(), caller()) == thrice("user-1/chat-1/call-1")
        assert get_current_isolation_keys() is None
        assert await extract_text(context, request(), caller(None)) == thrice("nothing")


async def test_in_a_stream_they_are_seen_to_its_end() -> None:
    async with open_context(telling) as (context, _):
        async with await context.stream(request(stream=True), caller()) as stream:
            told = [update.text async for update in stream]
        assert [one.strip() for one in told] == ["user-1/chat-1/call-1"] * 3
        assert get_current_isolation_keys() is None


async def test_they_are_gone_after_a_run_that_failed() -> None:
    async with open_context(telling) as (context, _):
        with pytest.raises(RequestError):
            await context.run(request("fail"), caller())
        assert get_current_isolation_keys() is None


@pytest.mark.parametrize("read", [0, 1])
async def test_they_are_gone_after_a_stream_that_was_left(read: int) -> None:
    async with open_context(telling) as (context, _):
        async with await context.stream(request(stream=True), caller()) as stream:
            async for _ in stream:
                if read:
                    break
        assert get_current_isolation_keys() is None


async def test_they_are_gone_after_a_run_that_was_cancelled() -> None:
    begun = asyncio.Event()

    async def waiting(text: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return text

    async with open_context(waiting) as (context, _):
        after: list[Any] = []

        async def work() -> None:
            try:
                await context.run(request(), caller())
            finally:
                after.append(get_current_isolation_keys())

        task = asyncio.create_task(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert after == [None]


async def test_in_the_background_they_are_those_of_whoever_asked() -> None:
    told: dict[str, str] = {}
    ended = asyncio.Event()

    async def noting(text: str) -> str:
        told[text] = read_keys()
        if len(told) == 3:
            ended.set()
        return text

    async with open_context(noting) as (context, _):
        for text, keys in (("one", KEYS), ("two", None), ("three", OTHERS)):
            await context.submit(request(text), caller(keys))
        await asyncio.wait_for(ended.wait(), 60)
    assert told == {"one": "user-1/chat-1/call-1", "two": "nothing", "three": "user-2/None/None"}


async def test_a_run_that_another_run_starts_has_its_own() -> None:
    told: list[str] = []
    done = asyncio.Event()
    probe = Probe()

    async def target(text: str) -> str:
        if text == "outer":
            # A tool of the target's asks for work in somebody else's name.
            await probe.context.submit(request("inner"), caller(None, "bob"))
            return text
        told.append(read_keys())
        done.set()
        return text

    async with open_context(target, probe=probe) as (context, _):
        await context.run(request("outer"), caller())
        await asyncio.wait_for(done.wait(), 60)
    assert told == ["nothing"]


async def test_twenty_runs_at_once_see_their_own() -> None:
    barrier = asyncio.Barrier(20)

    async def together(text: str) -> str:
        before = read_keys()
        await barrier.wait()
        return f"{before} {read_keys()}"

    async with open_context(together) as (context, _):
        people = [IsolationKeys(user_key=f"user-{number}") if number % 2 else None for number in range(20)]
        asked = [extract_text(context, request(), caller(keys, f"p{number}")) for number, keys in enumerate(people)]
        told = await asyncio.gather(*asked)
    wanted = ["nothing" if one is None else f"{one.user_key}/None/None" for one in people]
    assert told == [f"{one} {one}" for one in wanted]


class TestHooks:
    async def test_a_hook_may_set_them(self) -> None:
        def hook(asked: ChannelRequest, **_: Any) -> ChannelRequest:
            return asked.replace(isolation=OTHERS)

        async with open_context(telling, probe=Probe(run_hook=hook)) as (context, _):
            assert await extract_text(context, request(), caller()) == thrice("user-2/None/None")
            assert get_current_isolation_keys() is None

    async def test_the_wire_may_not(self) -> None:
        async with open_context(telling) as (context, ledger):
            with pytest.raises(InvalidRequestError):
                await context.run(request(isolation=OTHERS), caller())
            assert not ledger.writes

    async def test_a_refused_request_leaves_none_behind(self) -> None:
        def hook(asked: ChannelRequest, **_: Any) -> ChannelRequest:
            raise ForbiddenError

        async with open_context(telling, probe=Probe(run_hook=hook)) as (context, _):
            with pytest.raises(ForbiddenError):
                await context.run(request(), caller())
            assert get_current_isolation_keys() is None


def test_they_can_be_set_and_reset_by_hand() -> None:
    assert get_current_isolation_keys() is None
    outer = set_current_isolation_keys(KEYS)
    inner = set_current_isolation_keys(OTHERS)
    assert get_current_isolation_keys() == OTHERS
    reset_current_isolation_keys(inner)
    assert get_current_isolation_keys() == KEYS
    reset_current_isolation_keys(outer)
    assert get_current_isolation_keys() is None


def test_they_survive_the_store() -> None:
    assert decode(encode(caller())) == caller()
    assert decode(encode(request(isolation=KEYS))) == request(isolation=KEYS)
