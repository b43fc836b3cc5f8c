"""A task that is to end ends."""

import asyncio

from frontdesk.concurrency.tasks import cancel_and_wait


async def test_a_cancellation_that_was_swallowed_left_the_host_hanging() -> None:
    swallowed: list[int] = []

    async def work() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                # As `wait_for` of Python 3.11 does when what it waits for comes at the same moment.
                if len(swallowed) == 2:
                    raise
                swallowed.append(1)

    task = asyncio.get_running_loop().create_task(work())
    await asyncio.sleep(0)
    assert await cancel_and_wait(task)
    assert len(swallowed) == 2


async def test_a_task_that_never_ends_is_left_after_a_while() -> None:
    gate = asyncio.Event()

    async def work() -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    task = asyncio.get_running_loop().create_task(work())
    await asyncio.sleep(0)
    assert not await cancel_and_wait(task, within=0.1)
    gate.set()
    await asyncio.wait([task])


async def test_nothing_is_stopped_at_once() -> None:
    assert await cancel_and_wait()
    assert await cancel_and_wait(None)
