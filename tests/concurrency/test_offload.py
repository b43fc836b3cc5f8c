"""Work on large values leaves the event loop, and values are weighed without being walked to their end."""

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.concurrency.offload import MIN_LARGE_BYTES, compute_weight, off_loop, run_sized
from frontdesk.concurrency.threads import TrackingExecutor
from frontdesk.serialization.codec import encode

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4) | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


@given(value=values)
def test_no_value_weighs_more_than_it_takes(value: Any) -> None:
    assert compute_weight(value, 1 << 40) <= len(encode(value))


def test_what_contains_itself_has_a_weight() -> None:
    ring: list[Any] = []
    ring.append(ring)
    assert compute_weight(ring, 1000) == 1001


def test_weighing_ends_at_the_limit() -> None:
    class Endless(list[Any]):
        seen = 0

        def __iter__(self) -> Any:
            while True:
                self.seen += 1
                yield "x"

    endless = Endless()
    assert compute_weight({"a": endless}, 3000) > 3000
    assert endless.seen <= 1000


def test_attributes_count_when_asked_for() -> None:
    class Holds:
        def __init__(self) -> None:
            self.text = "x" * 1000

    assert compute_weight([Holds()], 10_000) < 10
    assert compute_weight([Holds()], 10_000, inside=True) > 1000


@pytest.mark.parametrize(("size", "elsewhere"), [(MIN_LARGE_BYTES, False), (MIN_LARGE_BYTES + 1, True)])
async def test_only_what_is_large_leaves_the_loop(size: int, elsewhere: bool) -> None:
    ran_in = await run_sized(size, threading.get_ident)
    assert (ran_in != threading.get_ident()) is elsewhere


async def test_the_thread_sees_the_context_of_its_caller() -> None:
    word: ContextVar[str] = ContextVar("word", default="none")
    word.set("mine")
    assert await off_loop(word.get) == "mine"


async def test_tools_that_fill_the_default_executor_do_not_stop_it() -> None:
    loop, free = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(TrackingExecutor(max_workers=1))
    busy = loop.run_in_executor(None, free.wait)
    assert await off_loop(lambda: 1) == 1
    free.set()
    await busy
