"""An older and a newer host on one store, as real processes: nothing is lost, reordered or undone, both ways."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontdesk_testing.messages import MessagePlatform, Person
from tests.faults.inbox.desk import listen, wait_for_answers
from tests.faults.inbox.newer import ERA, WORD
from tests.faults.inbox.processes import DeskProcess, Desks
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform

PEOPLE = 6


class Chats:
    """People who talk while hosts come and go; each has to be answered in order, once."""

    def __init__(self, platform: MessagePlatform, people: list[Person]) -> None:
        self._platform = platform
        self._people = people
        self.said: list[str] = []

    async def use(self, host: DeskProcess) -> None:
        """Send what is said from now on to a host."""
        await listen(self._platform, str(host.http.base_url), "webhook")

    async def say(self, *texts: str) -> None:
        """Have everybody say something, without waiting for the answers."""
        self.said += texts
        for text in texts:
            events = [await self._platform.say(one, text) for one in self._people]
            await self._platform.wait_for_acknowledged(*events)

    async def wait_for_answers(self) -> None:
        """Wait until everything is answered."""
        for one in self._people:
            assert await wait_for_answers(self._platform, one, len(self.said)) == [
                f"heard {text}" for text in self.said
            ]


def rows(place: str, sql: str) -> list[Any]:
    with psycopg.connect(place) as connection:
        return connection.execute(sql.encode()).fetchall()


@pytest.mark.parametrize("first", ["old", "new"])
async def test_an_older_host_destroyed_what_a_newer_one_wrote(first: str, postgres: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        await platform.set(retry_seconds=0.2)
        chats = Chats(platform, [await platform.user(f"Person {number}") for number in range(PEOPLE)])
        settings: dict[str, Any] = {"intake": "webhook", "lease": 5.0, "left_alone": 0.5}
        old = Desks("postgres", postgres, platform, tmp_path / "old", **settings)
        new = Desks("postgres", postgres, platform, tmp_path / "new", newer=True, **settings)
        async with old, new:
            # The schema grows under the feet of the one, or has grown before the other starts.
            hosts = {first: await (old if first == "old" else new).host()}
            await chats.use(hosts[first])
            await chats.say("one", "two")
            await chats.wait_for_answers()
            second = "new" if first == "old" else "old"
            hosts[second] = await (old if second == "old" else new).host()
            await chats.use(hosts["new"])
            await chats.say(f"{WORD} three", "four", f"{WORD} five", "six")
            await chats.use(hosts["old"])
            await chats.say("seven", "eight")
            await chats.wait_for_answers()
            # By now each session was written by the newer one at least twice, and by either one after that.
            sessions = [json.loads(bytes(data))["data"] for (data,) in rows(postgres, "SELECT data FROM sessions")]
            assert [one.get("era") for one in sessions] == [ERA] * PEOPLE
            assert [one["turns"] for one in sessions] == [len(chats.said)] * PEOPLE
            await hosts["old"].kill()
            await chats.use(hosts["new"])
            await chats.say("nine")
            await chats.wait_for_answers()
        assert [one for one in old.list_asked() if WORD in one.split()] == []
        assert sorted(old.list_asked() + new.list_asked()) == sorted(chats.said * PEOPLE)
    assert rows(postgres, "SELECT kind FROM set_aside") == []
    assert rows(postgres, "SELECT error FROM inbox WHERE done_at IS NULL OR error IS NOT NULL") == []


async def test_an_older_host_opens_the_file_of_a_newer_one(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        await platform.set(retry_seconds=0.2)
        ann, bob = await platform.user("Ann"), await platform.user("Bob")
        place = str(tmp_path / "state")
        settings: dict[str, Any] = {"left_alone": 0.2}
        async with (
            Desks("sqlite", place, platform, tmp_path / "old", **settings) as old,
            Desks("sqlite", place, platform, tmp_path / "new", newer=True, **settings) as new,
        ):
            host = await new.host()
            for who in (ann, bob):
                await platform.say(who, "hello")
                await wait_for_answers(platform, who, 1)
            # Bob's event is acknowledged, and the process ends before it is answered.
            await platform.wait_for_acknowledged(await platform.say(bob, f"hold {WORD}"))
            await until(lambda: new.list_asked()[-1:] == [f"hold {WORD}"])
            await host.kill()
            (tmp_path / f"{WORD}.go").touch()
            older = await old.host()
            await platform.say(ann, "and you?")
            assert await wait_for_answers(platform, ann, 2) == ["heard hello", "heard and you?"]
            await older.kill()
            await new.host()
            assert await wait_for_answers(platform, bob, 2) == ["heard hello", f"heard hold {WORD}"]
            await until(lambda: _count(place, "SELECT COUNT(*) FROM inbox WHERE done_at IS NULL") == 0)
        assert old.list_asked() == ["and you?"]
        assert _count(place, "SELECT COUNT(*) FROM set_aside") == 0


def _count(place: str, sql: str) -> int:
    with closing(sqlite3.connect(Path(place) / "frontdesk.db")) as connection:
        return connection.execute(sql).fetchone()[0]
