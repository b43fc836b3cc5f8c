"""A request has its time to arrive, and ends when its client leaves."""

import asyncio
import weakref
from typing import Any

import pytest

from frontdesk.asgi.messages import ClientGoneError
from frontdesk.concurrency.tasks import current_task
from frontdesk.errors import BodyTimeoutError
from frontdesk.http.endpoint import BodyDeadline, Clients, HttpCall
from tests.asgi.test_messages import GONE, Wire, part


async def send(message: Any) -> None:
    raise AssertionError("nothing is sent")


def call_on(wire: Wire, clients: Clients | None = None) -> HttpCall:
    return HttpCall({"headers": []}, wire.receive, send, clients or Clients())


async def read(call: HttpCall, seconds: float = 60) -> bytes:
    return await call.json_body(limit=10, deadline=BodyDeadline(seconds))


class TestBodies:
    @pytest.mark.parametrize("before", [[], [part(b"x", True)]])
    async def test_a_client_that_hangs_has_its_time(self, before: list[dict[str, Any]]) -> None:
        with pytest.raises(BodyTimeoutError):
            await read(call_on(Wire(before)), 0.01)
        assert current_task().cancelling() == 0

    async def test_a_task_that_is_cancelled_is_not_late(self) -> None:
        reading = asyncio.create_task(read(call_on(Wire())))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    async def test_after_the_body_nobody_is_late_any_more(self) -> None:
        deadline = BodyDeadline(0.01)
        await call_on(Wire([part(b"x")])).json_body(limit=10, deadline=deadline)
        with pytest.raises(ClientGoneError):
            await call_on(Wire([GONE])).json_body(limit=10, deadline=deadline)
        # This one came later; by the time that it is late, the others would have been too.
        with pytest.raises(BodyTimeoutError):
            await call_on(Wire()).json_body(limit=10, deadline=deadline)
        assert current_task().cancelling() == 0


class TestClients:
    async def test_a_client_that_leaves_ends_the_work(self) -> None:
        async def work() -> str:
            call = call_on(Wire([part(b"x"), GONE]))
            await read(call)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert call.uncancel_if_gone()
            finally:
                call.end()
            assert current_task().cancelling() == 0
            return "cleaned up"

        assert await asyncio.create_task(work()) == "cleaned up"

    async def test_a_request_without_a_body_can_be_watched_too(self) -> None:
        call = call_on(Wire([GONE]))
        call.start_watching()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.Event().wait()
        assert call.uncancel_if_gone()
        call.end()

    async def test_anything_else_that_cancels_is_not_the_client(self) -> None:
        async def work() -> None:
            call = call_on(Wire([part(b"x")]))
            await read(call)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert not call.uncancel_if_gone()
                raise
            finally:
                call.end()

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_after_the_request_nobody_watches(self) -> None:
        wire, later, clients = Wire([part(b"x"), GONE]), Wire([part(b"x"), GONE]), Clients()
        over, call = call_on(wire, clients), call_on(later, clients)
        await read(over)
        over.end()

        async def work() -> None:
            await read(call)
            try:
                await asyncio.Event().wait()
            finally:
                call.end()

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(work())
        # The second was watched, so the first would have been before it.
        assert (wire.asked, later.asked) == (1, 2)

    async def test_whoever_watches_when_the_request_ends_stops(self) -> None:
        asked, left = asyncio.Event(), asyncio.Event()

        async def receive() -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()

        call = HttpCall({"headers": []}, receive, send, Clients())
        call.start_watching()
        await asked.wait()
        call.end()
        await left.wait()
        assert current_task().cancelling() == 0

    async def test_a_request_that_is_over_is_not_kept_until_the_watch_would_have_begun(self) -> None:
        wire = Wire([part(b"x")])
        left = weakref.ref(wire)
        call = call_on(wire)
        await read(call)
        call.end()
        del wire, call
        assert left() is None
