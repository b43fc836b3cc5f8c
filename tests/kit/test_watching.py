"""A request is cancelled when its client leaves, and nothing of it is kept when it is over."""

import asyncio
import weakref
from typing import Any

import pytest

from frontdesk.kit.tasks import present_task
from frontdesk.kit.watching import Watched, Watches
from tests.kit.test_http import GONE, Wire


class TestWatches:
    async def test_a_client_that_leaves_ends_the_work(self) -> None:
        watches = Watches(0.01)

        async def work() -> str:
            request = Watched(Wire([GONE]).receive)
            watches.add(request, present_task())
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert request.forgive()
            finally:
                watches.drop(request)
            assert present_task().cancelling() == 0
            return "cleaned up"

        for _ in range(2):
            assert await asyncio.create_task(work()) == "cleaned up"

    async def test_anything_else_that_cancels_is_not_the_client(self) -> None:
        watches = Watches(0.01)

        async def work() -> None:
            request = Watched(Wire().receive)
            watches.add(request, present_task())
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert not request.forgive()
                raise
            finally:
                watches.drop(request)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_after_the_request_nobody_watches(self) -> None:
        wire, later, watches = Wire([GONE]), Wire([GONE]), Watches(0.01)
        over = Watched(wire.receive)
        watches.add(over, present_task())
        watches.drop(over)

        async def work() -> None:
            request = Watched(later.receive)
            watches.add(request, present_task())
            try:
                await asyncio.Event().wait()
            finally:
                watches.drop(request)

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(work())
        # The second was watched, so the first would have been before it.
        assert (wire.asked, later.asked) == (0, 1)

    async def test_whoever_is_watched_when_the_request_ends_is_left_alone(self) -> None:
        asked, left, watches = asyncio.Event(), asyncio.Event(), Watches(0.01)

        async def receive() -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()

        request = Watched(receive)
        watches.add(request, present_task())
        await asked.wait()
        watches.drop(request)
        await left.wait()
        assert present_task().cancelling() == 0

    async def test_a_request_that_is_over_is_not_kept_until_the_watch_would_have_begun(self) -> None:
        wire, watches = Wire(), Watches(60)
        left = weakref.ref(wire)
        request = Watched(wire.receive)
        watches.add(request, present_task())
        watches.drop(request)
        del wire, request
        assert left() is None

    async def test_it_starts_again_after_a_while_without_requests(self) -> None:
        watches = Watches(0.01)
        loop = asyncio.get_running_loop()
        for _ in range(3):
            seen = asyncio.Event()

            async def receive(seen: asyncio.Event = seen) -> Any:
                seen.set()
                await asyncio.Event().wait()

            request = Watched(receive)
            watches.add(request, present_task())
            await seen.wait()
            watches.drop(request)
            quiet = asyncio.Event()
            loop.call_later(0.05, quiet.set)
            await quiet.wait()

    def test_it_works_in_one_loop_after_another(self) -> None:
        watches = Watches(0.01)

        async def leave_one() -> None:
            watches.add(Watched(Wire().receive), present_task())

        async def lose_one() -> None:
            request = Watched(Wire([GONE]).receive)
            watches.add(request, present_task())
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()
            assert request.forgive()

        for step in (leave_one, lose_one, leave_one, lose_one):
            asyncio.run(step())


def test_the_present_task_is_that_of_the_loop_that_runs() -> None:
    async def see() -> asyncio.Task[Any]:
        assert present_task() is asyncio.current_task()
        return present_task()

    first, second = asyncio.run(see()), asyncio.run(see())
    assert first is not second


def test_without_a_loop_there_is_no_present_task() -> None:
    async def see() -> None:
        present_task()

    asyncio.run(see())
    with pytest.raises(RuntimeError):
        present_task()
