"""Coming in: a process ends while it works on many events. Whichever of them has ended it, the others are answered."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from frontdesk.concurrency.tasks import cancel_and_wait
from frontdesk.inbox.retry import MAX_ATTEMPTS
from frontdesk_testing.messages import MessagePlatform, Person
from tests.faults.inbox.desk import wait_for_answers
from tests.faults.inbox.processes import Desks
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform

REFUSED = "Something went wrong on our side."
HELD = "hold all"
KILLS = 8
LEASE = 2.0
PATIENCE = 120.0
"""For how many seconds an answer is waited for that comes after several leases and rests."""


@asynccontextmanager
async def keep_hosts_up(desks: Desks) -> AsyncGenerator[list[int]]:
    """Start a host whenever one ends by itself; give the codes with which they have ended."""
    codes: list[int] = []

    async def keep_up() -> None:
        while True:
            host = await desks.host()
            codes.append(await host.wait_for_end())

    task = asyncio.create_task(keep_up())
    try:
        yield codes
    finally:
        await cancel_and_wait(task)


async def say_all(platform: MessagePlatform, desks: Desks, count: int) -> list[Person]:
    """Have people say something each, until all of it is being answered."""
    people = [await platform.user(f"Person {number}") for number in range(count)]
    for person in people:
        await platform.say(person, HELD)
    # On a busy machine a lease may end, and its event is taken up once more.
    await until(lambda: desks.list_asked().count(HELD) >= count)
    return people


async def assert_all_answered(platform: MessagePlatform, people: list[Person]) -> None:
    for person in people:
        assert await wait_for_answers(platform, person, 1) == [f"heard {HELD}"]


async def test_a_message_that_ends_its_process_had_all_others_rejected(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        eve = await platform.user("Eve")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            people = await say_all(platform, desks, 30)
            await platform.say(eve, "exit now")
            assert await host.wait_for_end() == 3
            (tmp_path / "all.go").touch()
            async with keep_hosts_up(desks) as codes:
                await assert_all_answered(platform, people)
                assert await wait_for_answers(platform, eve, 1) == [REFUSED]
                # The first time does not count: it was one of many.
                assert codes == [3] * MAX_ATTEMPTS
        assert desks.list_asked().count("exit now") == 1 + MAX_ATTEMPTS
        assert desks.list_asked().count(HELD) == 2 * len(people)


async def test_plain_kills_had_messages_rejected(tmp_path: Path) -> None:
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks,
    ):
        host = await desks.host()
        people = await say_all(platform, desks, 30)
        for _ in range(KILLS):
            asked = len(desks.list_asked())
            await host.kill()
            host = await desks.host()
            await until(lambda asked=asked: len(desks.list_asked()) > asked)
        # One at a time since the first of them.
        assert len(desks.list_asked()) == len(people) + KILLS
        (tmp_path / "all.go").touch()
        await assert_all_answered(platform, people)


async def test_two_hosts_tried_quarantined_events_at_once(postgres: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        people = [await platform.user(f"Person {number}") for number in range(6)]
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", lease=LEASE) as desks:
            first = await desks.host()
            texts = [f"hold {number}" for number in range(len(people))]
            for person, text in zip(people, texts, strict=True):
                await platform.say(person, text)
            await until(lambda: len(desks.list_asked()) == len(people))
            await first.kill()
            for _ in range(2):
                await desks.host()
            for done in range(len(people)):
                await until(lambda done=done: len(desks.list_asked()) == len(people) + done + 1)
                number = desks.list_asked()[-1].removeprefix("hold ")
                (tmp_path / f"{number}.go").touch()
                assert await wait_for_answers(platform, people[int(number)], 1) == [f"heard hold {number}"]
        assert sorted(desks.list_asked()[len(people) :]) == texts


async def test_a_slow_turn_in_quarantine_delayed_all_others_for_as_long_as_it_took(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        people = {name: await platform.user(name) for name in ("Eve", "Ann", "Bob")}
        place, ledger = str(tmp_path / "state"), tmp_path / "ledger"
        async with Desks("sqlite", place, platform, ledger, quarantine_seconds=0.1) as desks:
            host = await desks.host()
            for name, person in people.items():
                await platform.say(person, f"hold {name}")
            await until(lambda: len(desks.list_asked()) == len(people))
            await host.kill()
            await desks.host()
            # None of them has ended.
            await until(lambda: len(desks.list_asked()) == 2 * len(people))
            for name, person in people.items():
                (tmp_path / f"{name}.go").touch()
                assert await wait_for_answers(platform, person, 1) == [f"heard hold {name}"]


async def test_a_message_that_ends_its_process_had_the_others_of_two_hosts_rejected(
    postgres: str, tmp_path: Path
) -> None:
    async with (
        fork_platform(tmp_path / "log") as platform,
        Desks("postgres", postgres, platform, tmp_path / "ledger", lease=LEASE) as desks,
        keep_hosts_up(desks) as first,
        keep_hosts_up(desks) as second,
    ):
        eve = await platform.user("Eve")
        people = await say_all(platform, desks, 12)
        await platform.say(eve, "exit now")
        await until(lambda: first or second)
        (tmp_path / "all.go").touch()

        async def is_refused() -> bool:
            return bool(await platform.answers(eve.chat_id))

        await platform.until(is_refused, within=PATIENCE)
        assert await wait_for_answers(platform, eve, 1) == [REFUSED]
        await assert_all_answered(platform, people)
        assert set(first + second) == {3}
        # Beside those that were held at first, perhaps once more beside the rest, and then alone.
        assert MAX_ATTEMPTS < desks.list_asked().count("exit now") <= MAX_ATTEMPTS + 4


async def test_a_command_waited_for_the_quarantined_turn_that_it_cancels(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            for _ in range(2):
                asked = len(desks.list_asked())
                if not asked:
                    await platform.say(ann, HELD)
                await until(lambda asked=asked: len(desks.list_asked()) > asked)
                await host.kill()
                host = await desks.host()
            await until(lambda: len(desks.list_asked()) == 3)
            await platform.say(ann, "/cancel")
            (answer,) = await wait_for_answers(platform, ann, 1)
            assert answer != f"heard {HELD}"
            host.signal(signal.SIGTERM)
            await host.wait_for_end()
