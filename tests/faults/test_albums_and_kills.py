"""Coming in: a host is killed around each commit of an album. Its messages are answered in one turn, and once."""

import signal
from pathlib import Path

import pytest

from frontdesk_testing.messages import MessagePlatform, Person
from tests.faults.inbox.desk import texts, wait_for_answers
from tests.faults.inbox.processes import Desks
from tests.testing.messages.starting import fork_platform

WHOLE = "heard one\ntwo"
COMMITS = 6
"""Two accept the messages. Then both are claimed, the session gets its id, and the turn is recorded."""
KILLS = [*((passes, "before_commit") for passes in range(1, COMMITS + 1)), (COMMITS, "after_commit")]


async def send_album(platform: MessagePlatform, who: Person) -> None:
    for text in ("one", "two"):
        await platform.say(who, text, album_id="album")


async def assert_answered(platform: MessagePlatform, who: Person) -> None:
    """See that the messages of the album were answered once, and in one turn."""
    answers: list[str] = []

    async def is_whole() -> bool:
        answers[:] = texts(await platform.answers(who.chat_id))
        return [line.removeprefix("heard ") for answer in answers for line in answer.split("\n")] == ["one", "two"]

    await platform.until(is_whole)
    assert answers == [WHOLE]
    await platform.say(who, "after")
    assert await wait_for_answers(platform, who, 2) == [WHOLE, "heard after"]


@pytest.mark.parametrize(("passes", "point"), KILLS)
async def test_a_kill_around_each_commit(passes: int, point: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", claims_wait_for=2) as desks:
            host = await desks.host()
            await host.arm(point, passes)
            await send_album(platform, ann)
            assert await host.wait_for_end() == -signal.SIGKILL
            await desks.host()
            await assert_answered(platform, ann)
        assert desks.list_asked().count("one") <= 2


@pytest.mark.parametrize(("passes", "point"), [(4, "before_commit"), (4, "after_commit"), (6, "before_commit")])
async def test_another_host_takes_an_album_over(passes: int, point: str, postgres: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", claims_wait_for=2, lease=1.0) as desks:
            host = await desks.host()
            await host.arm(point, passes)
            await send_album(platform, ann)
            assert await host.wait_for_end() == -signal.SIGKILL
            await desks.host()
            await assert_answered(platform, ann)


async def test_two_hosts_answer_an_album_once(postgres: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        people = [await platform.user(name) for name in ("Ann", "Bob", "Eve")]
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", claims_wait_for=6) as desks:
            for _ in range(2):
                await desks.host()
            for who in people:
                await send_album(platform, who)
            for who in people:
                await assert_answered(platform, who)
        assert desks.list_asked().count("one") == len(people)
