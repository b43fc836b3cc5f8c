"""Point 4: the database stands still during the turn of a chat message, for longer than its host holds the session."""

from typing import Any

import pytest

from tests.databases import PostgresServer
from tests.judge.site import site

PATIENCE = 40.0
SETTINGS = [
    pytest.param({"lease": 3.0, "statement_timeout": 1.0}, id="a lease that is longer than all timeouts"),
    pytest.param({"lease": 5.0, "statement_timeout": 3.0}, id="a lease that is hardly longer"),
]


@pytest.mark.parametrize("settings", SETTINGS)
async def test_the_database_stalls_while_a_message_is_answered(
    postgres_of_this_process: PostgresServer, settings: dict[str, Any]
) -> None:
    async with site("postgres", chats=("chat",), server=postgres_of_this_process, **settings) as place:
        host, platform = place.hosts[0], place.platforms["chat"]
        assert host.proxy is not None
        person = await platform.user("ann")
        event = await platform.say(person, "word hold:gate")
        await platform.wait_for_acknowledged(event)
        assert await place.noted("held", "word")
        host.proxy.stall()
        assert await place.noted("interrupted", "word"), "the host goes on although it can't keep the session"
        place.open("gate")
        host.proxy.flow()

        async def answered() -> bool:
            return any('"word"' in one.text for one in await platform.answers(person.chat_id))

        await platform.until(answered, within=PATIENCE)
