"""Which events a process works on beside one that may have ended a process."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk import InMemoryStateStore
from frontdesk.concurrency.tasks import cancel_and_wait
from frontdesk.inbox import quarantine
from frontdesk.inbox import quarantine as isolation
from frontdesk.inbox.claimed import HeldEvent
from frontdesk.inbox.quarantine import Isolation, Quarantine, QuarantineQueue
from frontdesk_testing.store_boxes import accept, claim_event
from frontdesk_testing.store_samples import inbox_item
from tests.scenarios.desk import until

EVE, ANN, BOB = (("chat", name) for name in ("eve", "ann", "bob"))


class Process:
    """A process that works on an event which was lost before."""

    def __init__(self, store: InMemoryStateStore, lost: int) -> None:
        self.store, self._lost = store, lost
        self.isolation = Isolation(store)
        self._tasks: list[asyncio.Task[Any]] = []

    async def isolate(self) -> asyncio.Event:
        """Begin to work on the event; return what ends that."""
        await accept(self.store, inbox_item("evt_1"))
        for number in range(self._lost + 1):
            held = HeldEvent(await claim_event(self.store, f"host_{number}"))
        began, over = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            await self.isolation.join("turn")
            async with self.isolation.isolate(held):
                began.set()
                await over.wait()
            self.isolation.leave()

        self._spawn(work())
        await began.wait()
        return over

    def join(self, kind: Any = "turn") -> "asyncio.Task[None]":
        """Take up another event."""
        return self._spawn(self.isolation.join(kind))

    def _spawn(self, work: Any) -> "asyncio.Task[None]":
        self._tasks.append(asyncio.create_task(work))
        return self._tasks[-1]

    def is_alone(self) -> bool:
        """Whether the store would count an end of the process."""
        return bool(self.store.inbox.isolated)

    async def close(self) -> None:
        await cancel_and_wait(*self._tasks)


@pytest.fixture
async def processes() -> AsyncIterator[list[Process]]:
    found = [Process(InMemoryStateStore(), lost) for lost in (1, 2)]
    yield found
    for process in found:
        await process.close()


async def test_an_end_was_counted_although_another_event_was_taken_up_meanwhile(processes: list[Process]) -> None:
    once, _ = processes
    await once.isolate()
    assert once.is_alone()
    await once.join()
    assert not once.is_alone()


async def test_turns_were_taken_up_beside_an_event_that_was_lost_twice(processes: list[Process]) -> None:
    _, twice = processes
    over = await twice.isolate()
    other = twice.join()
    await twice.join("control")
    # The command has ended the isolation, and with that the turn goes on too.
    assert not twice.is_alone()
    await other
    over.set()


async def test_turns_waited_for_an_isolated_event_without_end(
    processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "MAX_ALONE_SECONDS", 0.05)
    _, twice = processes
    await twice.isolate()
    await twice.join()
    assert not twice.is_alone()


async def test_a_turn_goes_on_when_the_isolated_event_is_done(processes: list[Process]) -> None:
    _, twice = processes
    over = await twice.isolate()
    other = twice.join()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not other.done()
    assert twice.is_alone()
    over.set()
    await other


async def test_an_event_was_isolated_although_others_did_not_end(
    processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "MAX_DRAIN_SECONDS", 0.05)
    monkeypatch.setattr(isolation, "MAX_QUIET_SECONDS", 0.05)
    for process in processes:
        await process.join()
        await process.isolate()
        assert not process.is_alone()
        await process.join()


async def test_an_event_waits_for_others_to_end_and_is_isolated_then(processes: list[Process]) -> None:
    for process in processes:
        await process.join()
        began = asyncio.create_task(process.isolate())
        await until(lambda process=process: process.isolation._isolated is not None)
        process.isolation.leave()
        await began
        assert process.is_alone()


def test_one_conversation_after_the_other_is_served() -> None:
    queue, one, two, three = QuarantineQueue(), ("chat", "1"), ("chat", "2"), ("chat", "3")
    entered = [queue.enter("turn", one, EVE), queue.enter("resume", two, ANN), queue.enter("turn", three, EVE)]
    assert entered == [True, False, False]
    assert queue.enter("control", one, EVE)
    assert [queue.waits("turn", one), queue.waits("resume", two), queue.waits("turn", two)] == [False, True, False]
    assert queue.next("turn") is None
    queue.leave("turn")
    assert queue.next("turn") == ("resume", two)
    queue.forget("resume", two)
    assert queue.next("turn") == ("turn", three)
    assert queue.enter("turn", three, EVE)
    queue.leave("turn")
    assert queue.next("turn") is None
    assert not queue._waiting


def test_the_conversations_of_one_sender_were_served_before_those_of_all_others() -> None:
    queue = QuarantineQueue()
    waiting = [(("chat", f"eve {number}"), EVE) for number in range(4)] + [
        (("chat", "ann"), ANN),
        (("chat", "bob"), BOB),
    ]
    for conversation, sender in waiting:
        queue.enter("turn", conversation, sender)
    senders, served = dict(waiting), [waiting[0][0]]
    while True:
        queue.leave("turn")
        following = queue.next("turn")
        if following is None:
            break
        assert queue.enter("turn", following.conversation, senders[following.conversation])
        served.append(following.conversation)
    assert [name for _, name in served] == ["eve 0", "eve 1", "ann", "bob", "eve 2", "eve 3"]
    assert not queue._waiting
    assert not queue._senders


async def test_an_event_held_the_quarantine_until_it_was_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert quarantine.MAX_HELD_SECONDS >= isolation.MAX_DRAIN_SECONDS + isolation.MAX_ALONE_SECONDS
    monkeypatch.setattr(quarantine, "MAX_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(quarantine, "MAX_HELD_SECONDS", 3600.0)
    store = InMemoryStateStore()
    first, second, left = Quarantine(store, lambda: False), Quarantine(store, lambda: False), asyncio.Event()

    async def leave() -> None:
        left.set()

    async def take() -> None:
        async with second.hold("turn", leave):
            pass

    async with first.hold("turn", leave) as hold:
        assert hold is not None
        hold.limit(inbox_item("evt_1").replace(lost=1))
        await left.wait()
        # Another host can take it although the block has not ended.
        await take()
