"""Watchers of runs: who may add them, what they receive, and what they cost where there are none."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, WatcherOptions
from frontdesk.auth.sealing import Sealer
from frontdesk.clock import SystemClock
from frontdesk.delivery.outbox import OutboxSchedule
from frontdesk.delivery.watchers import CHECK_AFTER_SECONDS, WATCHERS, RunWatchers
from frontdesk.errors import ForbiddenError, InvalidRequestError, NotFoundError, SealError, TooManyRequestsError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.chat import WatchesRuns
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store_sessions import WATCHERS_FRESH_SECONDS
from frontdesk.models.request import ClientOutput
from frontdesk.models.run import RunRecord
from frontdesk.models.watcher import RunNotice, RunWatcher
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import FakeClock
from tests.scenarios.cast import echo
from tests.scenarios.desk import until
from tests.scenarios.pausing import Inn
from tests.scenarios.test_cancel import Slow
from tests.scenarios.test_decisions import Shop, open_asked
from tests.test_pipeline import Probe, caller, in_session, open_context, request

TOKEN = "Bearer hook-secret-7f31c0"
SEAL_KEY = "k" * 40
YES = {"accepted": True, "nights": 2}


class Receiver:
    """An HTTP server on loopback that records requests. It answers with the given statuses, and then with 204."""

    def __init__(self, *statuses: str) -> None:
        self.statuses = list(statuses)
        self.received: list[tuple[dict[str, str], Any]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(body["run_id"], body["status"]) for _, body in self.received]

    def options(self, **more: Any) -> WatcherOptions:
        return WatcherOptions(allowed_hosts=[f"127.0.0.1:{self.port}"], allow_http=True, **more)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.strip().split("\r\n")
        headers = dict(one.split(": ", 1) for one in rest)
        body = await reader.readexactly(int(headers["Content-Length"]))
        assert line == "POST /hook HTTP/1.1"
        status = self.statuses.pop(0) if self.statuses else "204 No Content"
        self.received.append((headers, json.loads(body)))
        writer.write(f"HTTP/1.1 {status}\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def open_receiver(*statuses: str) -> AsyncIterator[Receiver]:
    receiver = Receiver(*statuses)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return InMemoryStateStore() if request.param == "memory" else SqliteStateStore(tmp_path / "state.db")


async def begin(context: Any, slow: Slow, **fields: Any) -> RunRecord:
    run = await context.submit(in_session("s", "one", **fields), caller())
    await slow.began.wait()
    return run


class TestNotifications:
    async def test_the_end_of_a_run_is_posted_with_its_key_and_headers(
        self, store: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        slow = Slow()
        async with (
            open_receiver() as receiver,
            open_context(slow.whole, store=store, seal_key=SEAL_KEY, watchers=receiver.options()) as (context, ledger),
        ):
            run = await begin(context, slow)
            watcher = RunWatcher(url=receiver.url, headers={"Authorization": TOKEN}, metadata={"name": "a"})
            watcher_id = await context.runs.watch(caller(), run.run_id, watcher)
            assert await context.runs.watchers(caller(), run.run_id) == [
                RunWatcher(watcher_id=watcher_id, url=receiver.url, metadata={"name": "a"})
            ]
            slow.go_on.set()
            await until(lambda: receiver.received)
            ((headers, body),) = receiver.received
            assert body == {
                "id": headers["Idempotency-Key"],
                "run_id": run.run_id,
                "chain_id": run.run_id,
                "status": "completed",
            }
            assert (headers["Authorization"], headers["Content-Type"]) == (TOKEN, "application/json")
            stored = await ledger.watchers.get(run.owner, watcher_id)
            assert TOKEN.encode() not in stored.headers.data
            assert TOKEN not in repr((watcher, stored))
            # One transaction has written the end of the run and its notification.
            names = [name for name, _ in ledger.writes]
            assert "add_delivery" in names[names.index("end_job") :]
        assert TOKEN not in caplog.text

    async def test_a_question_and_the_run_after_its_answer_are_posted_in_order(self, store: Any) -> None:
        async with (
            open_receiver() as receiver,
            open_context(Inn(), store=store, watchers=receiver.options()) as (context, _),
        ):
            first = (await context.run(in_session("s", "two anna"), caller())).run
            await context.runs.watch(caller(), first.run_id, RunWatcher(url=receiver.url))
            outputs = (ClientOutput(call_id=first.client_calls[0].call_id, output=YES),)
            second = (await context.run(in_session("s", None, client_outputs=outputs), caller())).run
            await until(lambda: receiver.received)
            # A run that had ended before is not announced.
            assert receiver.events == [(second.run_id, "input_required")]
            assert receiver.received[0][1]["chain_id"] == first.run_id
            await context.runs.cancel_chain(caller(), first.run_id)
            await until(lambda: len(receiver.received) == 2)
            assert receiver.events[1] == (second.run_id, "cancelled")

    async def test_the_run_of_a_decision_is_posted(self, store: Any) -> None:
        shop = Shop()
        async with (
            open_receiver() as receiver,
            open_asked(shop, store=store, watchers=receiver.options()) as (context, _, name),
        ):
            asking = (await context.approvals.get(caller(), name)).run_id
            await context.runs.watch(caller(), asking, RunWatcher(url=receiver.url))
            decision = await context.approvals.decide(caller(), name, True)
            await until(lambda: receiver.received)
            assert receiver.events == [(decision.run_id, "completed")]

    async def test_a_queued_run_that_is_cancelled_is_posted(self) -> None:
        slow = Slow()
        async with (
            open_receiver() as receiver,
            open_context(slow.whole, max_background_runs=1, watchers=receiver.options()) as (context, _),
        ):
            await begin(context, slow)
            waiting = await context.submit(in_session("t", "two"), caller())
            await context.runs.watch(caller(), waiting.run_id, RunWatcher(url=receiver.url))
            await context.runs.cancel(caller(), waiting.run_id)
            await until(lambda: receiver.received)
            assert receiver.events == [(waiting.run_id, "cancelled")]
            slow.go_on.set()

    async def test_a_run_that_has_ended_is_included_if_the_watcher_says_so(self, store: Any) -> None:
        async with (
            open_receiver() as receiver,
            open_context(echo, store=store, watchers=receiver.options()) as (context, _),
        ):
            run = (await context.run(in_session("s"), caller())).run
            for _ in range(2):
                await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url), includes_ended=True)
            await until(lambda: len(receiver.received) == 2)
            assert receiver.events == [(run.run_id, "completed")] * 2

    async def test_a_failing_receiver_gets_the_same_notification_again(self, store: Any) -> None:
        slow = Slow()
        async with (
            open_receiver("500 No", "429 Wait\r\nRetry-After: 1") as receiver,
            open_context(slow.whole, store=store, watchers=receiver.options()) as (context, ledger),
        ):
            run = await begin(context, slow)
            await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url))
            slow.go_on.set()

            async def is_accepted() -> bool:
                found = await ledger.outbox.find(owner=run.owner)
                return [one.status for one in found if one.channel == WATCHERS] == ["accepted"]

            await until(is_accepted)
            assert len(receiver.received) == 3
            assert len({headers["Idempotency-Key"] for headers, _ in receiver.received}) == 1

    @pytest.mark.parametrize("status", ["302 Found", "307 Again", "410 Gone"])
    async def test_a_redirect_or_a_rejection_ends_the_notification(self, status: str) -> None:
        slow = Slow()
        async with (
            open_receiver(status) as receiver,
            open_context(slow.whole, watchers=receiver.options()) as (context, ledger),
        ):
            run = await begin(context, slow)
            await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url))
            slow.go_on.set()

            async def is_dead() -> bool:
                found = await ledger.outbox.find(owner=run.owner)
                return [one.error for one in found if one.channel == WATCHERS] == [f"status_{status[:3]}"]

            await until(is_dead)
            assert len(receiver.received) == 1

    async def test_a_private_address_is_not_contacted(self) -> None:
        slow = Slow()
        async with (
            open_receiver() as receiver,
            open_context(slow.whole, watchers=WatcherOptions(allow_http=True)) as one,
        ):
            context, ledger = one
            run = await begin(context, slow)
            for url in (receiver.url, "https://10.0.0.1/hook", "https://[::1]/hook"):
                with pytest.raises(InvalidRequestError):
                    await context.runs.watch(caller(), run.run_id, RunWatcher(url=url))
            # A name is resolved when the notification is sent.
            named = "http://localhost/hook"
            await context.runs.watch(caller(), run.run_id, RunWatcher(url=named))
            slow.go_on.set()

            async def is_refused() -> bool:
                found = await ledger.outbox.find(owner=run.owner)
                return any(attempt.code == "url_refused" for one in found for attempt in one.history)

            await until(is_refused)
            assert not receiver.received

    async def test_a_channel_renders_its_own_notifications(self) -> None:
        class Rendering(Probe, WatchesRuns):
            def render_notice(self, notice: RunNotice, run: RunRecord) -> Any:
                text = "" if run.result is None else run.result.text
                return {"run_id": run.run_id, "status": notice.status, "text": text, "of": notice.watcher.metadata}

        slow = Slow()
        probe = Rendering(response_hook=lambda result, **_: result.replace(result="hidden"))
        async with (
            open_receiver() as receiver,
            open_context(slow.whole, probe=probe, watchers=receiver.options()) as (context, _),
        ):
            run = await begin(context, slow)
            await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url, metadata={"id": 7}))
            slow.go_on.set()
            await until(lambda: receiver.received)
            body = receiver.received[0][1]
            assert body == {"run_id": run.run_id, "status": "completed", "text": "hidden", "of": {"id": 7}}


class TestAccess:
    async def test_a_foreign_caller_can_t_watch_list_or_unwatch(self, store: Any) -> None:
        async with open_receiver() as receiver, open_context(store=store, watchers=receiver.options()) as (context, _):
            run = (await context.run(request(), caller())).run
            await context.run(request(), caller("ben"))
            watcher = RunWatcher(url=receiver.url)
            watcher_id = await context.runs.watch(caller(), run.run_id, watcher)
            calls: list[Callable[[], Awaitable[Any]]] = [
                lambda: context.runs.watch(caller("ben"), run.run_id, watcher),
                lambda: context.runs.watchers(caller("ben"), run.run_id),
                lambda: context.runs.unwatch(caller("ben"), run.run_id, watcher_id),
                lambda: context.runs.unwatch(caller(), run.run_id, "watch_unknown"),
                lambda: context.runs.watch(caller(), "run_unknown", watcher),
            ]
            for call in calls:
                with pytest.raises((NotFoundError, ForbiddenError)):
                    await call()
            assert [one.watcher_id for one in await context.runs.watchers(caller(), run.run_id)] == [watcher_id]
            await context.runs.unwatch(caller(), run.run_id, watcher_id)
            assert await context.runs.watchers(caller(), run.run_id) == []

    async def test_a_removed_watcher_receives_nothing(self, store: Any) -> None:
        slow = Slow()
        async with (
            open_receiver() as receiver,
            open_context(slow.whole, store=store, watchers=receiver.options()) as (context, _),
        ):
            run = await begin(context, slow)
            removed = await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url))
            await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url, metadata={"kept": True}))
            await context.runs.unwatch(caller(), run.run_id, removed)
            slow.go_on.set()
            await until(lambda: receiver.received)
            assert len(await context.runs.watchers(caller(), run.run_id)) == len(receiver.received) == 1

    @pytest.mark.parametrize("bound", ["max_per_caller", "max_per_run"])
    async def test_their_number_is_bounded(self, store: Any, bound: str) -> None:
        async with (
            open_receiver() as receiver,
            open_context(store=store, watchers=receiver.options(**{bound: 2})) as one,
        ):
            context, _ = one
            run = (await context.run(request(), caller())).run
            for _ in range(2):
                await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url))
            with pytest.raises(TooManyRequestsError):
                await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url))

    @pytest.mark.parametrize(
        "fields",
        [
            {"url": "http://hooks.example.com/"},
            {"url": "https://user:word@hooks.example.com/"},
            {"url": "https://hooks.example.com:22/"},
            {"url": "file:///etc/passwd"},
            {"headers": {"Host": "other"}},
            {"headers": {"Idempotency-Key": "mine"}},
            {"headers": {"A B": "x"}},
            {"headers": {"X-A": "b\r\nX-C: d"}},
            {"headers": {"X-A": "é"}},
            {"headers": {f"X-{number}": "x" for number in range(17)}},
            {"headers": {"X-A": "x" * 5000}},
            {"metadata": {"a": "x" * 5000}},
            {"metadata": {"a": object()}},
        ],
    )
    async def test_a_wrong_watcher_is_rejected_and_not_stored(self, fields: dict[str, Any]) -> None:
        async with open_context(seal_key=SEAL_KEY) as (context, ledger):
            run = (await context.run(request(), caller())).run
            watcher = RunWatcher(**{"url": "https://hooks.example.com/", **fields})
            with pytest.raises(InvalidRequestError):
                await context.runs.watch(caller(), run.run_id, watcher)
            assert await ledger.watchers.may_exist() is False

    async def test_headers_need_a_key(self) -> None:
        async with open_context() as (context, _):
            run = (await context.run(request(), caller())).run
            watcher = RunWatcher(url="https://hooks.example.com/", headers={"Authorization": TOKEN})
            with pytest.raises(SealError):
                await context.runs.watch(caller(), run.run_id, watcher)

    def test_wrong_options_are_findings(self) -> None:
        wrong: Any = WatcherOptions(max_per_caller=0, max_per_run=True, allowed_hosts=["a b"], allow_http="no")  # pyright: ignore[reportArgumentType]
        given: list[tuple[Any, int]] = [(wrong, 4), ("all", 1)]
        for options, expected in given:
            with pytest.raises(ChannelConfigurationError) as raised:
                AgentFrameworkHost(echo, channels=[Probe()], watchers=options)
            found = [finding for finding in raised.value.findings if finding.startswith("watchers: ")]
            assert len(found) == expected, raised.value.findings

    def test_the_name_of_the_notifications_is_not_for_a_channel(self) -> None:
        probe = Probe()
        probe.name = WATCHERS
        with pytest.raises(ChannelConfigurationError, match="the host's own notifications"):
            AgentFrameworkHost(echo, channels=[probe])


class TestCost:
    async def test_a_turn_without_watchers_makes_no_statement_for_them(self, tmp_path: Path) -> None:
        store = SqliteStateStore(tmp_path / "state.db")
        engine: Any = store._engine  # pyright: ignore[reportPrivateUsage]
        made: list[str] = []
        read, write = engine.read, engine.write

        async def noted_read(sql: str, values: Any = ()) -> Any:
            made.append(sql)
            return await read(sql, values)

        async def noted_write(operations: Any) -> Any:
            made.extend(getattr(one, "sql", "put") for one in operations)
            return await write(operations)

        async with open_receiver() as receiver, open_context(store=store, watchers=receiver.options()) as (context, _):
            engine.read, engine.write = noted_read, noted_write
            run = (await context.run(in_session("s"), caller())).run
            assert made
            # The sweep of expired rows is no part of a turn.
            assert not [sql for sql in made if "watchers" in sql and "RETURNING 1" not in sql]
            # The count can fail: it sees the statements of a watched run.
            await context.runs.watch(caller(), run.run_id, RunWatcher(url=receiver.url))
            made.clear()
            await context.run(in_session("s", continues=run.run_id), caller())
            assert [sql for sql in made if "FROM watchers" in sql]

    async def test_a_store_of_several_processes_asks_at_intervals(self, tmp_path: Path) -> None:
        clock = FakeClock()
        store = SqliteStateStore(tmp_path / "state.db", clock=clock)
        await store.open()
        try:
            watchers: Any = store.watchers
            watchers._is_shared = True
            made: list[str] = []
            engine = watchers._engine

            async def read(sql: str, values: Any = ()) -> Any:
                made.append(sql)
                return await engine.read(sql, values)

            watchers._engine = type("Noted", (), {"read": staticmethod(read)})()
            for _ in range(100):
                assert not await watchers.may_exist()
            assert not made
            clock.advance(11)
            for _ in range(100):
                assert not await watchers.may_exist()
            assert len(made) == 1
        finally:
            await store.close()


class Tasks:
    """A runner that keeps what was registered and scheduled, and runs it when a test asks for it."""

    def __init__(self) -> None:
        self.tasks: dict[str, Any] = {}
        self.scheduled: list[tuple[str, Any, float]] = []

    def register(self, name: str, task: Any) -> None:
        self.tasks[name] = task

    async def schedule(self, name: str, payload: Any, *, task_id: str, at: float) -> None:
        assert task_id == f"{name}:{payload['watcher_id']}"
        self.scheduled.append((name, payload, at))

    async def run_all(self) -> None:
        for name, payload, _ in self.scheduled:
            await self.tasks[name](payload)


def build_later_watchers(ledger: Any, options: WatcherOptions) -> tuple[RunWatchers, Tasks]:
    """Return the watchers of another process with the same store, and its tasks."""
    clock, tasks = SystemClock(), Tasks()
    runner = cast(DurableTaskRunner, tasks)
    watchers = RunWatchers(ledger, clock, RandomIds(), Sealer(), options, runner, OutboxSchedule(runner, ()))
    watchers.register()
    return watchers, tasks


async def notifications(ledger: Any, run: RunRecord) -> list[tuple[str, str]]:
    found = await ledger.outbox.find(owner=run.owner)
    return [(one.payload["run_id"], one.payload["status"]) for one in found if one.channel == WATCHERS]


class TestMissedEnds:
    """A process may record the end of a run before it learns of a new watcher."""

    async def test_a_missed_end_is_posted_by_the_check_and_only_once(
        self, store: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = Slow()
        async with (
            open_receiver() as receiver,
            open_context(slow.whole, store=store, watchers=receiver.options()) as (context, ledger),
        ):
            run = await begin(context, slow)
            watchers, tasks = build_later_watchers(ledger, receiver.options())
            chain, started = await context.runs.chain(caller(), run.run_id), time.time()
            await watchers.add(chain, "probe", caller().identity, RunWatcher(url=receiver.url))
            ((_, _, at),) = tasks.scheduled
            assert at >= started + CHECK_AFTER_SECONDS >= started + 2 * WATCHERS_FRESH_SECONDS
            monkeypatch.setattr(ledger.watchers, "may_exist", knows_none)
            slow.go_on.set()

            async def is_over() -> bool:
                return (await context.runs.get(caller(), run.run_id)).status == "completed"

            await until(is_over)
            assert await notifications(ledger, run) == []
            for _ in range(2):
                await tasks.run_all()
            assert await notifications(ledger, run) == [(run.run_id, "completed")]

    async def test_the_check_adds_nothing_to_what_was_noticed(self, store: Any) -> None:
        async with open_receiver() as receiver, open_context(Inn(), store=store, watchers=receiver.options()) as one:
            context, ledger = one
            first = (await context.run(in_session("s", "two anna"), caller())).run
            watchers, tasks = build_later_watchers(ledger, receiver.options())
            chain = await context.runs.chain(caller(), first.run_id)
            await watchers.add(chain, "probe", caller().identity, RunWatcher(url=receiver.url))
            # The run had ended before.
            await tasks.run_all()
            assert await notifications(ledger, first) == []
            outputs = (ClientOutput(call_id=first.client_calls[0].call_id, output=YES),)
            second = (await context.run(in_session("s", None, client_outputs=outputs), caller())).run
            await tasks.run_all()
            assert await notifications(ledger, first) == [(second.run_id, "input_required")]


async def knows_none() -> bool:
    return False
