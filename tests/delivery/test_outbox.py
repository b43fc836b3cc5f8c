"""What waits is sent in order, each part once, and whatever goes wrong is written down."""

import asyncio
from typing import Any

import pytest

from frontdesk.delivery import destination_drain
from frontdesk.delivery.destination_drain import EARLIER
from frontdesk.delivery.outbox import task_id
from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError, StoreUnavailableError
from frontdesk.interfaces.chat import PushTerms
from frontdesk.interfaces.runner import RetryPolicy
from tests.delivery.conftest import MakeDesk
from tests.delivery.scripted import TERMS, AskableChannel, ScriptedChannel

DOWN = PushError(code="down")


async def test_parts_go_out_in_order_each_with_a_receipt(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 3), *desk.answer("b", 2))
    assert await desk.drain() is None
    assert desk.channel.texts() == ["text a0", "text a1", "text a2", "text b0", "text b1"]
    assert [one.idempotency_key for one in desk.channel.sent] == ["a0", "a1", "a2", "b0", "b1"]
    last = await desk.get("b1")
    assert (last.status, last.receipt, last.attempts) == ("accepted", "r5", 1)
    assert [one.code for one in last.history] == ["accepted"]
    assert await desk.drain() is None
    assert len(desk.channel.sent) == 5


async def test_a_failed_part_is_tried_again_and_what_follows_waits_for_it(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", None, DOWN, DOWN)
    await desk.add(*desk.answer("a", 3))
    first = await desk.drain()
    assert first is not None
    assert 0.5 <= first <= 1.0
    assert await desk.status("a1") == ("pending", "down")
    desk.clock.advance(first)
    second = await desk.drain()
    assert second is not None
    assert 1.0 <= second <= 2.0
    desk.clock.advance(second)
    assert await desk.drain() is None
    assert desk.channel.texts() == ["text a0", "text a1", "text a1", "text a1", "text a2"]
    found = await desk.get("a1")
    assert (found.status, found.error, found.attempts) == ("accepted", None, 3)
    assert [one.code for one in found.history] == ["down", "down", "accepted"]


async def test_a_part_that_is_not_due_is_not_sent(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", DOWN)
    await desk.add(*desk.answer("a", 2))
    wait = await desk.drain()
    assert await desk.drain() == wait
    assert len(desk.channel.sent) == 1


async def test_a_dead_part_takes_the_rest_of_its_answer_with_it_and_nothing_else(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", None, PushRefusedError(code="bad_request"))
    await desk.add(*desk.answer("a", 4), *desk.answer("b", 1))
    assert await desk.drain() is None
    assert desk.channel.texts() == ["text a0", "text a1", "text b0"]
    assert await desk.status("a0") == ("accepted", None)
    assert await desk.status("a1") == ("dead", "bad_request")
    assert await desk.status("a2") == await desk.status("a3") == ("dead", EARLIER)
    assert await desk.status("b0") == ("accepted", None)


async def test_a_dead_echo_never_blocks_the_reply(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", PushRefusedError(code="bad_request"))
    await desk.add(*desk.answer("a", 3, echo=True))
    assert await desk.drain() is None
    assert desk.channel.texts() == ["text a0", "text a1", "text a2"]
    assert await desk.status("a0") == ("dead", "bad_request")
    assert await desk.status("a2") == ("accepted", None)


async def test_the_budget_ends_and_the_history_says_how(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", DOWN, DOWN, DOWN)
    await desk.add(*desk.answer("a", 1))
    while (wait := await desk.drain()) is not None:
        desk.clock.advance(wait)
    found = await desk.get("a0")
    assert (found.status, found.error, found.attempts) == ("dead", "down: 3 attempts", 3)
    assert [one.code for one in found.history] == ["down"] * 3


async def test_what_the_platform_asks_for_is_obeyed_and_costs_no_attempt(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", *(PushLimitedError(code="flood", retry_after=600) for _ in range(5)))
    await desk.add(*desk.answer("a", 1), desk.row("b0", place="ben"))
    for _ in range(5):
        wait = await desk.drain()
        assert wait is not None
        assert wait >= 600
        assert (await desk.get("a0")).attempts == 0
        desk.clock.advance(wait)
    assert await desk.drain() is None
    assert await desk.status("a0") == ("accepted", None)


async def test_a_wait_for_the_whole_channel_holds_everybody_back(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", PushLimitedError(retry_after=60, everywhere=True))
    await desk.add(*desk.answer("a", 1), desk.row("b0", place="ben"))
    assert (await desk.drain() or 0) >= 60
    assert await desk.drain("ben") == 60
    assert (await desk.get("b0")).attempts == 0
    desk.clock.advance(61)
    assert await desk.drain("ben") is None


async def test_what_waited_too_long_is_not_sent_any_more(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 2))
    desk.clock.advance(14 * 86_400)
    await desk.add(*desk.answer("b", 1))
    assert await desk.drain() is None
    assert desk.channel.texts() == ["text b0"]
    assert await desk.status("a0") == ("dead", "too old")
    assert await desk.status("a1") == ("dead", EARLIER)


async def test_no_answer_leaves_a_part_unknown_and_what_follows_goes_on(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", PushUnknownError(code="cut"))
    await desk.add(*desk.answer("a", 2))
    assert await desk.drain() is None
    assert desk.channel.texts() == ["text a0", "text a1"]
    assert await desk.status("a0") == ("unknown", "cut")
    assert (await desk.store.outbox.counts())["unknown"] == 1


async def test_no_answer_is_repeated_where_a_second_does_no_harm(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(idempotent=True))
    desk.channel.answer("ann", PushUnknownError(code="cut"))
    await desk.add(*desk.answer("a", 2))
    wait = await desk.drain()
    assert wait is not None
    desk.clock.advance(wait)
    assert await desk.drain() is None
    assert [one.idempotency_key for one in desk.channel.sent] == ["a0", "a0", "a1"]
    assert await desk.status("a0") == ("accepted", None)


async def test_one_that_never_gets_an_answer_ends_unknown_and_not_dead(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(idempotent=True))
    desk.channel.answer("ann", *(PushUnknownError(code="cut") for _ in range(3)))
    await desk.add(*desk.answer("a", 2))
    while (wait := await desk.drain()) is not None:
        desk.clock.advance(wait)
    assert await desk.status("a0") == ("unknown", "cut")
    assert await desk.status("a1") == ("accepted", None)


async def test_the_platform_is_asked_where_it_can_be(make_desk: MakeDesk) -> None:
    channel = AskableChannel()
    desk = make_desk(channel)
    desk.channel.answer("ann", PushUnknownError(), PushUnknownError())
    channel.found.extend(["theirs", DOWN, None])
    await desk.add(*desk.answer("a", 2))
    while (wait := await desk.drain()) is not None:
        desk.clock.advance(wait)
    assert channel.asked == ["a0", "a1", "a1"]
    assert desk.channel.texts() == ["text a0", "text a1", "text a1"]
    assert (await desk.get("a0")).receipt == "theirs"
    assert await desk.status("a1") == ("accepted", None)


async def test_an_unknown_part_of_which_nobody_can_tell_blocks_nothing_for_ever(make_desk: MakeDesk) -> None:
    channel = AskableChannel()
    desk = make_desk(channel)
    desk.channel.answer("ann", PushUnknownError())
    channel.found.extend([DOWN] * 9)
    await desk.add(*desk.answer("a", 2))
    while (wait := await desk.drain()) is not None:
        desk.clock.advance(wait)
    assert await desk.status("a0") == ("unknown", "down")
    assert await desk.status("a1") == ("accepted", None)


@pytest.mark.parametrize(("idempotent", "sent", "status"), [(True, 1, "accepted"), (False, 0, "unknown")])
async def test_what_a_crash_left_being_sent(make_desk: MakeDesk, idempotent: bool, sent: int, status: str) -> None:
    desk = make_desk(ScriptedChannel(idempotent=idempotent))
    await desk.add(*desk.answer("a", 1), *desk.answer("b", 1))
    left = await desk.get("a0")
    async with desk.store.transaction() as transaction:
        transaction.change_delivery(left.replace(status="sending", attempts=1), hold=20.0)
    desk.restart()
    assert await desk.drain() is None
    assert desk.channel.texts().count("text a0") == sent
    found = await desk.get("a0")
    assert found.status == status
    assert found.attempts == 1 + sent
    assert found.history[0].code == "interrupted"
    assert await desk.status("b0") == ("accepted", None)


async def test_attempts_made_before_a_crash_count(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(idempotent=True))
    await desk.add(*desk.answer("a", 1))
    left = await desk.get("a0")
    async with desk.store.transaction() as transaction:
        transaction.change_delivery(left.replace(status="sending", attempts=3), hold=20.0)
    assert await desk.drain() is None
    assert desk.channel.texts() == []
    assert await desk.status("a0") == ("unknown", "interrupted")


async def test_a_failure_that_a_channel_does_not_know_leaves_it_unknown(
    make_desk: MakeDesk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    desk = make_desk(ScriptedChannel())
    desk.channel.answer("ann", ValueError("a token was in here"))
    await desk.add(*desk.answer("a", 1))
    assert await desk.drain() is None
    assert await desk.status("a0") == ("unknown", "unexpected")
    assert "ValueError" in caplog.text
    assert "token" not in caplog.text


async def test_a_push_that_does_not_end_is_ended(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(terms=TERMS.replace(timeout=0.01)))
    desk.channel.slow["ann"] = asyncio.Event()
    await desk.add(*desk.answer("a", 1))
    assert await desk.drain() is None
    assert await desk.status("a0") == ("unknown", "timeout")


async def test_a_payload_that_only_a_newer_version_can_read_was_given_up(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    newer = desk.row("b0", payload={"$": "NoSuchNoun"})
    await desk.add(*desk.answer("a", 1), newer, *desk.answer("c", 1), desk.row("d0", place="ben"))
    for _ in range(3):
        # Those behind it wait for it, and nobody looks at them before its time.
        assert await desk.drain() == 30.0
    found = await desk.store.outbox.get("b0")
    assert found is not None
    assert (found.status, found.attempts, found.fence) == ("pending", 0, newer.fence)
    assert [await desk.status(name) for name in ("a0", "b0", "c0")] == [
        ("accepted", None),
        ("pending", None),
        ("pending", None),
    ]
    assert await desk.drain("ben") is None
    assert [place async for _, place in desk.outbox.list_waiting()] == []
    # It does not wait for ever.
    desk.clock.advance(TERMS.longest_age + 1)
    assert await desk.drain() is None
    assert await desk.status("b0") == ("dead", "too old")


async def test_a_slow_destination_delays_no_other(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.slow["ann"] = asyncio.Event()
    await desk.add(*desk.answer("a", 1), desk.row("b0", place="ben"))
    slow = asyncio.create_task(desk.drain("ann"))
    assert await desk.drain("ben") is None
    assert not slow.done()
    desk.channel.slow["ann"].set()
    assert await slow is None


async def test_two_who_serve_one_destination_send_nothing_twice(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    desk.channel.slow["ann"] = asyncio.Event()
    await desk.add(*desk.answer("a", 3))
    first = asyncio.create_task(desk.drain())
    await desk.channel.began.wait()
    assert await desk.drain() == 1.0
    desk.channel.slow["ann"].set()
    assert await first is None
    assert desk.channel.texts() == ["text a0", "text a1", "text a2"]


async def test_a_limit_of_a_destination_is_kept_without_attempts(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(terms=TERMS.replace(per_destination=1.0)))
    await desk.add(*desk.answer("a", 3), desk.row("b0", place="ben"))
    assert await desk.drain() == 1.0
    assert await desk.drain("ben") is None
    desk.clock.advance(1.0)
    assert await desk.drain() == 1.0
    assert desk.channel.texts("ann") == ["text a0", "text a1"]


async def test_a_limit_of_a_channel_is_kept_by_all_who_come_at_once(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel(terms=TERMS.replace(per_second=10.0)))
    names = [f"p{number}" for number in range(8)]
    await desk.add(*(desk.row(name, place=name) for name in names))
    waits = await asyncio.gather(*(desk.drain(name) for name in names))
    assert len(desk.channel.sent) == 1
    # Each has a turn of its own, so that they do not all come again for the next.
    assert sorted(wait for wait in waits if wait is not None) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    for _ in range(7):
        desk.clock.advance(0.1001)
        await asyncio.gather(*(desk.drain(name) for name in names))
    assert sorted(desk.channel.texts()) == [f"text {name}" for name in names]


async def test_a_thousand_deliveries_do_not_hammer_a_platform_that_is_down(make_desk: MakeDesk) -> None:
    terms = PushTerms(retry=RetryPolicy(attempts=3, longest_delay=60.0), failures=5, pause=2.0)
    desk = make_desk(ScriptedChannel(terms=terms))
    names = [f"p{number}" for number in range(1000)]
    for name in names:
        desk.channel.answer(name, *(PushError(code="down") for _ in range(100)))
    await desk.add(*(desk.row(name, place=name) for name in names))
    for _ in range(10):
        for name in names:
            await desk.drain(name)
        desk.clock.advance(1.0)
    assert len(desk.channel.sent) <= 5 + 3
    waiting = await desk.store.outbox.find(status="pending", limit=2000)
    assert len(waiting) == 1000
    # Those that found out that it is down still have all that they had; only the first few have lost an attempt.
    assert sum(one.attempts for one in waiting) == 5


async def test_a_platform_that_is_down_for_hours_kills_nothing(make_desk: MakeDesk) -> None:
    terms = PushTerms(retry=RetryPolicy(attempts=3, longest_delay=60.0), failures=2, pause=2.0)
    desk = make_desk(ScriptedChannel(terms=terms))
    for name in ("ann", "ben"):
        desk.channel.answer(name, *(PushError(code="down") for _ in range(500)))
    await desk.add(*desk.answer("a", 2), desk.row("b0", place="ben"))
    until = desk.clock.now() + 4 * 3600
    while desk.clock.now() < until:
        waits = [await desk.drain(name) for name in ("ann", "ben")]
        desk.clock.advance(min(one for one in waits if one is not None))
    assert 200 < len(desk.channel.sent) < 300
    desk.channel.script.clear()
    desk.clock.advance(300.0)
    for name in ("ann", "ben"):
        assert await desk.drain(name) is None
    assert dict(await desk.store.outbox.counts()) == {"accepted": 3}


async def test_one_poisoned_part_does_not_keep_a_platform_closed(make_desk: MakeDesk) -> None:
    terms = PushTerms(retry=RetryPolicy(attempts=4, first_delay=0.1, longest_delay=60.0), failures=2, pause=2.0)
    desk = make_desk(ScriptedChannel(terms=terms))
    desk.channel.answer("ann", *(PushError(code="500") for _ in range(50)))
    await desk.add(*desk.answer("a", 1))
    wait = 0.0
    for _ in range(3):
        desk.clock.advance(wait)
        wait = await desk.drain() or 0.0
    await desk.add(desk.row("b0", place="ben"))
    held = await desk.drain("ben")
    assert held is not None
    assert held < wait
    desk.clock.advance(held)
    assert await desk.drain("ben") is None
    while (left := await desk.drain()) is not None:
        desk.clock.advance(left)
    assert await desk.status("a0") == ("dead", "500: 4 attempts")


async def test_when_the_platform_is_back_one_shows_it_and_all_follow(make_desk: MakeDesk) -> None:
    terms = PushTerms(retry=RetryPolicy(attempts=3, first_delay=0.1, longest_delay=8.0), failures=2, pause=2.0)
    desk = make_desk(ScriptedChannel(terms=terms))
    for name in ("ann", "ben"):
        desk.channel.answer(name, DOWN)
    await desk.add(*desk.answer("a", 1), desk.row("b0", place="ben"), desk.row("c0", place="cat"))
    await desk.drain("ann")
    await desk.drain("ben")
    assert await desk.drain("cat") == 2.0
    assert [place async for place in desk.outbox.list_waiting()] == []
    desk.clock.advance(2.0)
    # The one that found it down lets the others go before it.
    assert sorted([place async for _, place in desk.outbox.list_waiting()]) == ["ann", "cat"]
    for name in ("ann", "cat"):
        assert await desk.drain(name) is None
    desk.clock.advance(2.0)
    assert await desk.drain("ben") is None
    assert dict(await desk.store.outbox.counts()) == {"accepted": 3}


async def test_one_trip_leaves_room_for_others(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*(desk.row(f"a{number:03}") for number in range(250)))
    assert await desk.drain() == 0.0
    assert await desk.drain() is None
    assert desk.channel.texts() == [f"text a{number:03}" for number in range(250)]


async def test_what_a_channel_of_another_host_has_to_send_is_left_alone(make_desk: MakeDesk) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(desk.row("a0", channel="other"))
    assert await desk.outbox.drain("other", "ann") is None
    assert await desk.status("a0") == ("pending", None)


def test_two_destinations_never_have_one_task() -> None:
    assert task_id(("a", "b:c")) != task_id(("a:b", "c"))


class Woken:
    """A runner that writes down what it is told, and may be out of order."""

    def __init__(self) -> None:
        self.registered: dict[str, dict[str, Any]] = {}
        self.scheduled: list[tuple[str, Any, str]] = []
        self.broken = False

    def register(self, name: str, task: Any, **options: Any) -> None:
        self.registered[name] = options

    async def schedule(self, name: str, payload: Any, *, task_id: str, at: float | None = None) -> None:
        if self.broken:
            raise StoreUnavailableError
        self.scheduled.append((name, payload, task_id))


async def test_each_channel_has_room_of_its_own_and_is_looked_after_by_itself(make_desk: MakeDesk) -> None:
    desk, runner = make_desk(ScriptedChannel(terms=TERMS.replace(at_once=3))), Woken()
    desk.restart(runner).register(runner)  # type: ignore[arg-type]
    assert [(name, options["most"]) for name, options in runner.registered.items()] == [("deliver:chat", 3)]
    rows = [*desk.answer("a", 2), desk.row("b0", place="ben"), desk.row("c0", place="cat", ended_at=1.0)]
    await desk.add(*rows, desk.row("d0", place="dan", due_at=desk.clock.now() + 5))
    await desk.outbox.wake(rows)
    wanted = sorted((task_id(("chat", place)), {"channel": "chat", "native_id": place}) for place in ("ann", "ben"))
    assert sorted((key, payload) for _, payload, key in runner.scheduled) == wanted
    waiting = runner.registered["deliver:chat"]["waiting"]
    assert sorted([one async for one in waiting()]) == wanted
    _, payload = wanted[0]
    assert await desk.outbox.task(payload) is None
    assert desk.channel.texts() == ["text a0", "text a1"]


async def test_a_wake_up_that_fails_leaves_what_was_written(make_desk: MakeDesk) -> None:
    desk, runner = make_desk(ScriptedChannel()), Woken()
    desk.restart(runner).register(runner)  # type: ignore[arg-type]
    runner.broken = True
    await desk.add(*desk.answer("a", 1))
    await desk.outbox.wake(desk.answer("a", 1))
    assert await desk.status("a0") == ("pending", None)


async def test_a_receipt_is_not_forgotten_while_the_store_is_away(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(destination_drain, "_RETRY_INTERVAL_SECONDS", 0.0)
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 1))
    plain, away = desk.store.transaction, [True, True, False]

    def transaction() -> Any:
        if desk.channel.sent and away.pop(0):
            raise StoreUnavailableError
        return plain()

    monkeypatch.setattr(desk.store, "transaction", transaction)
    assert await desk.drain() is None
    assert await desk.status("a0") == ("accepted", None)
    assert desk.channel.texts() == ["text a0"]


async def test_nothing_is_sent_while_the_store_cannot_take_note_of_it(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk(ScriptedChannel())
    await desk.add(*desk.answer("a", 1))

    def transaction() -> Any:
        raise StoreUnavailableError

    with monkeypatch.context() as patch:
        patch.setattr(desk.store, "transaction", transaction)
        with pytest.raises(StoreUnavailableError):
            await desk.drain()
    assert desk.channel.texts() == []
    assert await desk.drain() is None
    assert desk.channel.texts() == ["text a0"]
