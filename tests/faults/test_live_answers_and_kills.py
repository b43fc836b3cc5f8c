"""Going out: a host is killed while it shows an answer that is being written. In the end there is one message."""

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontdesk_testing.messages import MessagePlatform, Person, message_platform
from tests.faults.inbox.processes import DeskProcess, Desks
from tests.scenarios.desk import until

WHOLE = "heard hold one"
# The event is accepted and claimed, the session gets its id, the first message is opened in two commits, the end of the
# run is recorded, and the delivery is claimed and done.
COMMITS = 8


async def list_answers(platform: MessagePlatform, who: Person) -> list[str]:
    return [message.text for message in await platform.answers(who.chat_id)]


async def say_until_killed(platform: MessagePlatform, who: Person, host: DeskProcess, go: Path) -> None:
    """Ask, let the answer be completed once it is shown, and wait until the host is dead."""
    await platform.say(who, "hold one")

    async def is_shown() -> bool:
        return bool(await list_answers(platform, who))

    showing = asyncio.ensure_future(platform.until(is_shown))
    dead = asyncio.ensure_future(host.wait_for_end())
    await asyncio.wait({showing, dead}, return_when=asyncio.FIRST_COMPLETED)
    go.touch()  # noqa: ASYNC240 - an empty file
    assert await dead == -signal.SIGKILL
    showing.cancel()


async def assert_said(platform: MessagePlatform, who: Person, *texts: str) -> None:
    """Wait until a chat has exactly these messages of the bot."""

    async def same() -> bool:
        return await list_answers(platform, who) == list(texts)

    await platform.until(same)


async def assert_goes_on(platform: MessagePlatform, who: Person, *texts: str) -> None:
    """See that nothing is said late, when the next message has been answered."""
    await platform.say(who, "after")
    await assert_said(platform, who, *texts, "heard after")


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("passes", range(1, COMMITS + 1))
async def test_a_kill_around_each_commit(passes: int, point: str, tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", live=True) as desks:
            host = await desks.host()
            await host.arm(point, passes)
            await say_until_killed(platform, ann, host, tmp_path / "one.go")
            await desks.host()
            await assert_said(platform, ann, WHOLE)
            await assert_goes_on(platform, ann, WHOLE)


@pytest.mark.parametrize("settings", [{}, {"idempotent": False, "lookup": True}])
@pytest.mark.parametrize("point", ["before_live", "after_live", "before_push", "after_push"])
async def test_a_kill_around_each_call(point: str, settings: dict[str, Any], tmp_path: Path) -> None:
    options = () if settings.get("idempotent", True) else ("--no-dedupe",)
    async with message_platform(tmp_path / "log", *options) as platform:
        ann = await platform.user("Ann")
        place = str(tmp_path / "state")
        async with Desks("sqlite", place, platform, tmp_path / "ledger", live=True, **settings) as desks:
            host = await desks.host()
            await host.arm(point, 1)
            await say_until_killed(platform, ann, host, tmp_path / "one.go")
            await desks.host()
            await assert_said(platform, ann, WHOLE)
            await assert_goes_on(platform, ann, WHOLE)


@pytest.mark.parametrize("point", ["before_live", "after_live"])
async def test_a_kill_around_the_message_in_which_an_answer_goes_on(point: str, tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        await platform.set(stream_seconds=0.0)
        ann = await platform.user("Ann")
        place = str(tmp_path / "state")
        async with Desks("sqlite", place, platform, tmp_path / "ledger", live=True, pause=0.3) as desks:
            host = await desks.host()
            await host.arm(point, 2)
            await say_until_killed(platform, ann, host, tmp_path / "one.go")
            await desks.host()
            await assert_said(platform, ann, WHOLE)
            await assert_goes_on(platform, ann, WHOLE)


async def test_a_first_message_that_nobody_can_find_is_left_alone(tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log", "--no-dedupe") as platform:
        ann = await platform.user("Ann")
        place = str(tmp_path / "state")
        async with Desks("sqlite", place, platform, tmp_path / "ledger", live=True, idempotent=False) as desks:
            host = await desks.host()
            await host.arm("after_live", 1)
            await say_until_killed(platform, ann, host, tmp_path / "one.go")
            await desks.host()
            await assert_said(platform, ann, "heard ", WHOLE)
            await assert_goes_on(platform, ann, "heard ", WHOLE)


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("passes", range(1, 4))
async def test_a_kill_while_an_answer_that_is_shown_is_cancelled(passes: int, point: str, tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", live=True) as desks:
            host = await desks.host()
            await platform.say(ann, "hold one")
            await assert_said(platform, ann, "heard ")
            await host.arm(point, passes)
            await platform.say(ann, "/cancel")
            assert await host.wait_for_end() == -signal.SIGKILL
            await desks.host()
            await assert_said(platform, ann, "heard ", "I have stopped.")
            (tmp_path / "one.go").touch()
            await assert_goes_on(platform, ann, "heard ", "I have stopped.")


async def test_an_answer_that_was_stopped_before_its_next_try_stayed_being_written(tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        people = {name: await platform.user(name) for name in ("Ann", "Bob")}
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", live=True) as desks:
            host = await desks.host()
            for name, who in people.items():
                await platform.say(who, f"hold {name}")
                await assert_said(platform, who, "heard ")
            await until(lambda: _live_states(tmp_path) == ["open", "open"])
            await host.kill()
            await desks.host()
            # The other one waits for the end of its quarantine.
            await until(lambda: len(desks.list_asked()) == len(people) + 1)
            tried = desks.list_asked()[-1].removeprefix("hold ")
            (waiting,) = people.keys() - {tried}
            await platform.say(people[waiting], "/cancel")
            await until(lambda: _live_states(tmp_path) == ["closed", "open"])
            await assert_said(platform, people[waiting], "heard ", "I have stopped.")
            (tmp_path / f"{tried}.go").touch()
            await assert_said(platform, people[tried], f"heard hold {tried}")
            await assert_goes_on(platform, people[waiting], "heard ", "I have stopped.")


def _live_states(directory: Path) -> list[str]:
    (place,) = directory.glob("state/**/*.db")
    with closing(sqlite3.connect(place)) as connection:
        return sorted(state for (state,) in connection.execute("SELECT state FROM live"))


@pytest.mark.parametrize(
    ("point", "passes"), [("before_live", 1), ("after_live", 1), ("before_commit", 1), ("after_commit", 1)]
)
async def test_another_host_takes_over(point: str, passes: int, postgres: str, tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", live=True) as desks:
            first = await desks.host()
            if point.endswith("live"):
                await first.arm(point, passes)
                await say_until_killed(platform, ann, first, tmp_path / "one.go")
                await desks.host()
            else:
                await platform.say(ann, "hold one")
                await assert_said(platform, ann, "heard ")
                await desks.host()
                # The next commits of the first are the record of the run, and renewals before it.
                await first.arm(point, passes)
                (tmp_path / "one.go").touch()
                assert await first.wait_for_end() == -signal.SIGKILL
            await assert_said(platform, ann, WHOLE)
            await assert_goes_on(platform, ann, WHOLE)


async def _has_handle(postgres: str) -> bool:
    async with await psycopg.AsyncConnection.connect(postgres) as connection:
        cursor = await connection.execute("SELECT 1 FROM live WHERE state = 'open'")
        return await cursor.fetchone() is not None


async def test_a_host_that_stood_still_changes_nothing_afterwards(postgres: str, tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("postgres", postgres, platform, tmp_path / "ledger", live=True) as desks:
            first = await desks.host()
            await platform.say(ann, "hold one")
            await assert_said(platform, ann, "heard ")
            await until(lambda: _has_handle(postgres))
            first.signal(signal.SIGSTOP)
            await desks.host()
            (tmp_path / "one.go").touch()
            await assert_said(platform, ann, WHOLE)
            edits = len(platform.log_on_disk())
            first.signal(signal.SIGCONT)
            await assert_goes_on(platform, ann, WHOLE)
            late = [entry.text for entry in platform.log_on_disk()[edits:] if entry.method == "edit"]
            assert set(late) <= {WHOLE, "heard after"}


async def kill_in_an_edit(platform: MessagePlatform, who: Person, host: DeskProcess, go: Path, whole: str) -> None:
    """Kill a host while the platform holds an edit of it, which it makes only after the edit by another host."""
    await platform.fail("reorder", method="edit", times=1, seconds=60.0, behind=whole)
    await platform.say(who, "hold one")
    go.touch()  # noqa: ASYNC240 - an empty file

    async def is_held() -> bool:
        return (await platform.state()).struck == (1,)

    await platform.until(is_held)
    await host.kill()


def edits_of(platform: MessagePlatform) -> list[str]:
    return [entry.text for entry in platform.log_on_disk() if entry.method == "edit"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_an_edit_of_a_killed_host_overwrote_the_answer_for_good(
    kind: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    place = request.getfixturevalue("postgres") if kind == "postgres" else str(tmp_path / "state")
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks(kind, place, platform, tmp_path / "ledger", live=True, pause=0.2) as desks:
            await kill_in_an_edit(platform, ann, await desks.host(), tmp_path / "one.go", WHOLE)
            await desks.host()

            async def is_repeated() -> bool:
                return edits_of(platform).count(WHOLE) == 2

            await platform.until(is_repeated)
            # The late one came between the two.
            assert edits_of(platform)[-3:] == [WHOLE, "heard hold ", WHOLE]
            await assert_said(platform, ann, WHOLE)
            await assert_goes_on(platform, ann, WHOLE)


async def test_the_repeat_of_an_edit_survives_kills(tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        place = str(tmp_path / "state")
        async with Desks("sqlite", place, platform, tmp_path / "ledger", live=True, pause=0.2) as desks:
            await kill_in_an_edit(platform, ann, await desks.host(), tmp_path / "one.go", WHOLE)
            second = await desks.host()
            await platform.until(lambda: _is_last(platform, "heard hold "))
            await second.kill()
            await assert_said(platform, ann, "heard hold ")
            third = await desks.host()
            await third.arm("before_push", 1)
            assert await third.wait_for_end() == -signal.SIGKILL
            fourth = await desks.host()
            await platform.until(lambda: _is_last(platform, WHOLE))
            await assert_goes_on(platform, ann, WHOLE)
            # The platform shows a message before the host has recorded that it was accepted.
            while [status for status, _ in (await _get_deliveries(fourth)).values()] != ["accepted"] * 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def _get_deliveries(host: DeskProcess) -> dict[str, tuple[str, int]]:
    return (await host.http.get("/deliveries")).json()


async def test_an_ordinary_answer_is_not_edited_once_more(tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", live=True) as desks:
            host = await desks.host()
            (tmp_path / "one.go").touch()
            await platform.say(ann, "hold one")
            await assert_said(platform, ann, WHOLE)
            await assert_goes_on(platform, ann, WHOLE)
            assert len((await host.http.get("/deliveries")).json()) == 2


async def _is_last(platform: MessagePlatform, text: str) -> bool:
    return edits_of(platform)[-1:] == [text]
