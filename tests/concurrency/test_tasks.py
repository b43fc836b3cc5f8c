"""What runs later sees nothing of who started it; what belongs to a request sees all of it."""

import asyncio
from contextvars import ContextVar

import pytest

from frontdesk.concurrency.tasks import call_later_clean, call_later_within, current_task, spawn_clean, spawn_within

MARK: ContextVar[str] = ContextVar("mark", default="")


async def read_mark() -> str:
    await asyncio.sleep(0)
    return MARK.get()


async def test_a_clean_task_sees_no_context_of_its_starter() -> None:
    MARK.set("alice")
    assert await spawn_clean(read_mark()) == ""
    assert await spawn_within(read_mark()) == "alice"


async def test_two_clean_tasks_do_not_see_each_other() -> None:
    async def mark(text: str) -> str:
        before = MARK.get()
        MARK.set(text)
        await asyncio.sleep(0)
        return before + MARK.get()

    assert await asyncio.gather(spawn_clean(mark("a")), spawn_clean(mark("b"))) == ["a", "b"]
    assert MARK.get() == ""


@pytest.mark.parametrize(("start", "wanted"), [(call_later_clean, ""), (call_later_within, "alice")])
async def test_a_timer_keeps_the_context_that_it_says(start: object, wanted: str) -> None:
    MARK.set("alice")
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    assert callable(start)
    start(0, lambda extra: told.set_result(MARK.get() + extra), "!")
    assert await told == wanted + "!"


async def test_the_task_of_a_clean_task_is_its_own() -> None:
    async def own() -> object:
        return current_task()

    task = spawn_clean(own())
    assert await task is task
