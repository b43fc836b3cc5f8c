"""Moments between two steps of a background run, in which something else happened."""

import asyncio
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, ChannelIdentity, ChannelRequest
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import StoreUnavailableError
from frontdesk.models.run import FINAL, RunRecord
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import GatedAgent
from frontdesk_testing.internals import active_runs, get_components
from tests.scenarios.cast import spell
from tests.scenarios.desk import open_client, until
from tests.scenarios.test_background_streams import follow
from tests.scenarios.test_cancel import MINE, Slow

ADA = ChannelIdentity(channel="invocations", native_id="ada")
ASKED = ChannelRequest(channel="invocations", input="one two")


class HeldStore(InMemoryStateStore):
    """Holds up a transaction until it is let go; `at` is the call that makes it one to hold up."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at = at
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    def transaction(self) -> Any:
        transaction = super().transaction()
        return _Held(self, transaction) if not self.reached.is_set() else transaction


class _Held:
    def __init__(self, store: Any, transaction: Any) -> None:
        self._store = store
        self._transaction = transaction
        self._calls: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self._calls.add(name)
        return getattr(self._transaction, name)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *error: Any) -> None:
        if self._store.at in self._calls and ("queue_run" not in self._calls or self._store.at == "queue_run"):
            self._store.reached.set()
            await self._store.go_on.wait()
        await self._transaction.__aexit__(*error)


def host_over(store: Any, **options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(
        GatedAgent(), channels=[InvocationsChannel()], store=store, shutdown_grace_seconds=0, **options
    )


async def test_one_that_was_cancelled_before_its_first_step_stayed_queued_for_ever() -> None:
    host = host_over(InMemoryStateStore())
    async with host.app.router.lifespan_context(host.app):
        token = await host.run_in_background(ASKED, identity=ADA)
        # Nothing was awaited since, so that its task has not run yet.
        assert (await host.cancel(token, identity=ADA)).status == "cancelled"


async def test_one_that_was_written_while_its_host_stopped_went_on_behind_the_end_of_the_store() -> None:
    store = HeldStore("queue_run")
    host = host_over(store)
    async with host.app.router.lifespan_context(host.app):
        asking = asyncio.create_task(host.run_in_background(ASKED, identity=ADA))
        await store.reached.wait()
        background = get_components(host).background
        stopping = asyncio.create_task(background.drain())
        for _ in range(100):
            # Far more steps than it takes if it does not wait for what is being written.
            await asyncio.sleep(0)
        store.go_on.set()
        await stopping
        record = await host.get_continuation(await asking, identity=ADA)
        job = await store.background.get(record.owner, record.run_id)
        assert not background.run_tasks
        assert job is not None
        assert job.holder == "", "the next process takes it up"


async def test_one_that_was_cancelled_while_its_beginning_was_written_stayed_queued() -> None:
    store = HeldStore("save_job")
    host = host_over(store)
    async with host.app.router.lifespan_context(host.app):
        token = await host.run_in_background(ASKED, identity=ADA)
        await store.reached.wait()
        cancelling = asyncio.create_task(host.cancel(token, identity=ADA))
        await asyncio.sleep(0)
        store.go_on.set()
        assert (await cancelling).status == "cancelled"
        assert not store.background.jobs


async def test_one_that_was_queued_while_the_last_worker_ended_waited_for_ever() -> None:
    class Late(InMemoryStateStore):
        """Writes what waits only when the run before it has ended."""

        def __init__(self) -> None:
            super().__init__()
            self.ended = asyncio.Event()

        def transaction(self) -> Any:
            return _Late(self, super().transaction())

    class _Late:
        def __init__(self, store: Late, transaction: Any) -> None:
            self._store, self._transaction, self._waits = store, transaction, False

        def __getattr__(self, name: str) -> Any:
            return getattr(self._transaction, name)

        def queue_run(self, record: Any, job: Any, **most: Any) -> None:
            self._waits = not job.holder
            self._transaction.queue_run(record, job, **most)

        async def __aenter__(self) -> Any:
            return self

        async def __aexit__(self, *error: Any) -> None:
            if self._waits:
                await self._store.ended.wait()
            await self._transaction.__aexit__(*error)

    slow, store = Slow(), Late()
    async with open_client(slow.whole, store=store, max_background_runs=1) as desk:
        first = (await desk.ask("one", background=True)).json()
        asking = asyncio.create_task(desk.ask("two", background=True, headers=MINE))
        await slow.began.wait()
        slow.go_on.set()
        await desk.wait_for_end(first["id"])
        await until(lambda: not get_components(desk.host).background.run_tasks)
        store.ended.set()
        await asking
        assert (await desk.wait_for_end("mine"))["status"] == "completed"


async def test_a_second_cancellation_disturbed_the_first() -> None:
    store = HeldStore("end_job")
    slow = Slow()
    async with open_client(slow.whole, store=store) as desk:
        await desk.ask("it", background=True, headers=MINE)
        await slow.began.wait()
        asked = [asyncio.create_task(desk.cancel("mine")) for _ in range(3)]
        await store.reached.wait()
        store.go_on.set()
        assert [one.json()["status"] for one in await asyncio.gather(*asked)] == ["cancelled"] * 3
        assert not store.background.jobs


async def test_a_client_left_while_its_run_was_written_and_nobody_worked_on_it() -> None:
    class Slowly(InMemoryStateStore):
        def transaction(self) -> Any:
            transaction = super().transaction()
            leave = transaction.__aexit__

            async def later(*error: Any) -> None:
                await asyncio.sleep(0)
                await leave(*error)

            class Wrapped:
                def __getattr__(self, name: str) -> Any:
                    return getattr(transaction, name)

                async def __aenter__(self) -> Any:
                    return self

                async def __aexit__(self, *error: Any) -> None:
                    await later(*error)

            return Wrapped()

    store = Slowly()
    host = host_over(store)
    async with host.app.router.lifespan_context(host.app):
        asking = asyncio.create_task(host.run_in_background(ASKED.replace(run_id="mine"), identity=ADA))
        await until(lambda: asking.done() or get_components(host).background._coming)
        asking.cancel()
        await asyncio.wait([asking])
        await until(lambda: len(active_runs(host)) == 1)


async def test_the_store_was_gone_for_a_moment_and_the_run_was_lost() -> None:
    class Flickers(InMemoryStateStore):
        broken = 0

        def transaction(self) -> Any:
            if self.broken:
                self.broken -= 1
                raise StoreUnavailableError
            return super().transaction()

    store, agent = Flickers(), GatedAgent()
    agent.release.set()
    host = AgentFrameworkHost(agent, channels=[InvocationsChannel()], store=store)
    async with host.app.router.lifespan_context(host.app):
        token = await host.run_in_background(ASKED, identity=ADA)
        # Its beginning can't be written; it is given up, taken up again, and runs.
        store.broken = 1
        ended = await _wait_for_end(host, token)
        assert ended.status == "completed"


async def _wait_for_end(host: AgentFrameworkHost, token: Any) -> RunRecord:
    found: list[RunRecord] = []

    async def look() -> bool:
        found[:] = [await host.get_continuation(token, identity=ADA)]
        return found[0].status in FINAL

    await until(look)
    return found[0]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_has_no_json_form_is_refused_before_it_is_accepted(stream: bool) -> None:
    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(attributes={"connection": object()})

    slow = Slow()
    async with open_client(slow.whole, InvocationsChannel(run_hook=hook)) as desk:
        refused = await desk.ask("it", background=True, stream=stream)
        assert (refused.status_code, refused.json()["error"]["code"]) == (500, "not_storable")
        assert not desk.runs()


async def test_a_reader_was_told_that_a_run_had_failed_when_only_the_store_was_away() -> None:
    store = InMemoryStateStore()
    async with open_client(spell, store=store) as desk:
        told = await desk.events("abc", background=True, headers=MINE)
        page, away = store.runs.events, [True]

        async def once(*arguments: Any, **more: Any) -> Any:
            if away:
                away.clear()
                raise StoreUnavailableError
            return await page(*arguments, **more)

        store.runs.events = once
        assert await follow(desk) == told
        assert not away


class LostReplyStore(InMemoryStateStore):
    """Writes that a run has started, and loses the reply to that, once."""

    is_lost = False

    def transaction(self) -> Any:
        return _LostReply(self, super().transaction())


class _LostReply(_Held):
    async def __aexit__(self, *error: Any) -> None:
        await self._transaction.__aexit__(*error)
        store = self._store
        if {"save_run", "save_job"} <= self._calls and "queue_run" not in self._calls and not store.is_lost:
            store.is_lost = True
            raise StoreUnavailableError


@pytest.mark.parametrize("stream", [False, True])
async def test_the_reply_to_the_start_of_a_run_was_lost_and_it_failed_as_interrupted(stream: bool) -> None:
    store = LostReplyStore()
    host = AgentFrameworkHost(spell, channels=[InvocationsChannel()], store=store)
    async with host.app.router.lifespan_context(host.app):
        token = await host.run_in_background(ASKED.replace(stream=stream), identity=ADA)
        record = await _wait_for_end(host, token)
    assert store.is_lost
    assert (record.status, record.failure) == ("completed", None)
