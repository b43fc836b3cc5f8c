"""Start-up and shut-down: every callback runs, every failure is told by name, and the first is raised."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost, ChannelContribution
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.internals import active_runs, get_components
from tests.scenarios.cast import echo
from tests.scenarios.desk import open_client, serve_host, until
from tests.scenarios.test_cancel import MINE, Slow

Callback = Callable[[], Awaitable[None]]


class Door(InvocationsChannel):
    """A channel with callbacks of its own."""

    def __init__(self, start: Callback, stop: Callback, **options: Any) -> None:
        super().__init__(**options)
        self._callbacks = (start, stop)

    def contribute(self, context: Any) -> ChannelContribution:
        start, stop = self._callbacks
        routes = super().contribute(context).routes
        return ChannelContribution(routes=routes, on_startup=[start], on_shutdown=[stop])


class Diary:
    """Callbacks that write down that they ran, and fail where they should."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.lines: list[str] = []

    def entry(self, name: str) -> Callback:
        async def callback() -> None:
            self.lines.append(name)
            if name in self.failing:
                raise ValueError(f"{name} went wrong")

        callback.__qualname__ = name
        return callback

    def host(self) -> AgentFrameworkHost:
        doors = [Door(self.entry(f"open {n}"), self.entry(f"shut {n}"), name=n, path=f"/{n}") for n in ("a", "b")]
        return AgentFrameworkHost(
            echo,
            channels=doors,
            on_startup=[self.entry("first"), self.entry("second")],
            on_shutdown=[self.entry("third"), self.entry("fourth")],
        )


STARTING = ["open a", "open b", "first", "second"]
STOPPING = ["third", "fourth", "shut b", "shut a"]


async def test_every_callback_runs() -> None:
    diary = Diary()
    async with serve_host(diary.host()):
        assert diary.lines == STARTING
    assert diary.lines == STARTING + STOPPING


@pytest.mark.parametrize(
    ("failing", "raised"),
    [
        (("open a", "second"), "open a went wrong"),
        (("second",), "second went wrong"),
        (("first", "third"), "first went wrong"),
    ],
    ids=str,
)
async def test_a_failed_start_runs_everything_and_raises_the_first(
    failing: tuple[str, ...], raised: str, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary(*failing)
    app = diary.host().app
    with pytest.raises(ValueError, match=raised):
        async with app.router.lifespan_context(app):
            pytest.fail("it started")
    assert diary.lines == STARTING + STOPPING
    _check_told_by_name(caplog, failing)


@pytest.mark.parametrize(
    "failing", [("fourth", "shut a"), ("shut b",), ("third", "fourth", "shut b", "shut a")], ids=str
)
async def test_a_failed_stop_runs_everything_and_raises_the_first(
    failing: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary(*failing)
    app = diary.host().app
    with pytest.raises(ValueError, match=failing[0]):
        async with app.router.lifespan_context(app):
            pass
    assert diary.lines == STARTING + STOPPING
    _check_told_by_name(caplog, failing)


def _check_told_by_name(caplog: pytest.LogCaptureFixture, failing: tuple[str, ...]) -> None:
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == len(failing)
    for name, record in zip(failing, errors, strict=True):
        channel = name.removeprefix("open ").removeprefix("shut ")
        assert channel in record.getMessage()
        assert record.exc_info


async def test_a_host_that_can_t_start_does_not_serve() -> None:
    with pytest.raises(SystemExit):
        async with serve_host(Diary("first").host()):
            pytest.fail("it served")


async def test_it_is_ready_only_between_start_and_stop() -> None:
    seen: list[tuple[str, int, int]] = []

    async def look(when: str) -> None:
        transport = httpx.ASGITransport(app=host.app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            health, ready = await client.get("/healthz"), await client.get("/readyz")
            seen.append((when, health.status_code, ready.status_code))
            assert ready.json() == {"status": "ok" if ready.status_code == 200 else "unavailable"}

    async def starting() -> None:
        await look("starting")

    async def stopping() -> None:
        await look("stopping")

    host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], on_startup=[starting], on_shutdown=[stopping])
    await look("before")
    async with host.app.router.lifespan_context(host.app):
        await look("during")
    await look("after")
    expected = {"before": 503, "starting": 503, "during": 200, "stopping": 503, "after": 503}
    assert {when: ready for when, _, ready in seen} == expected
    assert {health for _, health, _ in seen} == {200}


async def test_a_server_answers_the_health_questions() -> None:
    async with open_client(echo) as desk:
        for path in ("/healthz", "/readyz"):
            response = await desk.client.get(path)
            assert (response.status_code, response.json()) == (200, {"status": "ok"})


async def test_background_runs_may_end_before_the_host_does() -> None:
    slow = Slow()
    async with open_client(slow.whole, shutdown_grace_seconds=20) as desk:
        await desk.ask("it", headers=MINE, background=True)
        await slow.began.wait()
        stopping = asyncio.get_running_loop().call_later(0.05, slow.go_on.set)
    assert stopping.when()
    assert desk.run("mine").status == "completed"


async def test_background_runs_that_take_too_long_are_left_to_the_next_start() -> None:
    slow, store = Slow(), InMemoryStateStore()
    async with open_client(slow.whole, store=store, shutdown_grace_seconds=0.01) as desk:
        await desk.ask("it", headers=MINE, background=True, session_id="s")
        await slow.began.wait()
        await desk.ask("it", headers={"x-agent-invocation-id": "waiting"}, background=True, session_id="s")
    assert (desk.run("mine").status, desk.run("waiting").status) == ("running", "queued")
    assert slow.left == ["CancelledError"]
    assert not desk.active
    slow.go_on.set()
    async with open_client(slow.whole, store=store) as desk:
        assert (await desk.wait_for_end("mine"))["error"]["code"] == "interrupted"
        assert (await desk.wait_for_end("waiting"))["status"] == "completed"


async def test_a_request_that_is_still_running_when_the_host_stops_was_recorded_as_cancelled() -> None:
    slow = Slow()
    async with open_client(slow.whole) as desk:
        asked = asyncio.create_task(desk.ask("it", headers=MINE, session_id="s"))
        await slow.began.wait()
        await get_components(desk.host).active.stop_all()
        answer = (await asked).json()
        assert (answer["status"], answer["error"]["code"]) == ("failed", "interrupted")
    assert desk.run("mine").status == "failed"


async def test_a_request_that_its_caller_has_cancelled_stays_cancelled_when_the_host_stops() -> None:
    left, go_on = asyncio.Event(), asyncio.Event()

    async def stubborn(text: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
            await go_on.wait()
        return text

    async with open_client(stubborn) as desk:
        asked = asyncio.create_task(desk.ask("it", headers=MINE, session_id="s"))
        await until(lambda: bool(desk.active))
        cancelling = asyncio.create_task(desk.cancel("mine"))
        await left.wait()
        stopping = asyncio.create_task(get_components(desk.host).active.stop_all())
        await asyncio.sleep(0)
        go_on.set()
        await stopping
        assert (await asked).json()["status"] == (await cancelling).json()["status"] == "cancelled"


async def test_a_host_starts_again_after_it_has_stopped() -> None:
    diary = Diary()
    host = diary.host()
    for _ in range(2):
        async with serve_host(host) as server:
            port = server.servers[0].sockets[0].getsockname()[1]
            async with httpx.AsyncClient(trust_env=False) as client:
                response = await client.post(f"http://127.0.0.1:{port}/a", json={"message": "hi"})
                assert response.json()["text"] == "you said hi"
    assert diary.lines == (STARTING + STOPPING) * 2
    await until(lambda: not active_runs(host))
