"""A process is killed when the tool has begun that somebody has approved: who asked for it is told how it ended."""

import pytest

from tests.databases import PostgresServer
from tests.judge.site import Process, Site, site

PATIENCE = 40.0
KEY = "slow-key"


async def _kill_and_wait(place: Site, host: Process) -> None:
    """Approve as the requester, kill the host when the tool has begun, and wait for the news."""
    platform = place.platforms["chat"]
    person = await platform.user("ann")
    await platform.say(person, f"w act:{KEY}")
    question = (await platform.wait_for_answers(person.chat_id))[0]
    await platform.click(person, question, "Approve")
    assert await place.noted("held", KEY)
    await host.kill()
    await host.start()

    async def more() -> list[str]:
        return [one.text for one in await platform.answers(person.chat_id) if one.message_id != question.message_id]

    try:
        await platform.until(more, within=PATIENCE)
    except TimeoutError:
        shown = [one.text for one in await platform.answers(person.chat_id)]
        pytest.fail(f"nobody says what became of the tool; the chat says {shown}")
    # Nobody knows whether the tool has done its work, so that it must not run again.
    assert place.effects("held") == [KEY]
    place.open(KEY)
    await platform.say(person, "next")
    await platform.until(lambda: _has(place, person.chat_id, "next"), within=PATIENCE)


async def _has(place: Site, chat_id: str, word: str) -> bool:
    return any(f'"{word}"' in one.text for one in await place.platforms["chat"].answers(chat_id))


async def test_a_tool_is_cut_off_after_the_click_of_its_requester() -> None:
    async with site("sqlite", chats=("chat",)) as place:
        await _kill_and_wait(place, place.hosts[0])


async def test_a_tool_is_cut_off_after_the_click_of_its_requester_on_postgres(
    postgres_of_this_process: PostgresServer,
) -> None:
    async with site("postgres", chats=("chat",), server=postgres_of_this_process) as place:
        await _kill_and_wait(place, place.hosts[0])


async def test_a_tool_is_cut_off_after_an_answer_over_http() -> None:
    async with site("sqlite") as place:
        host = place.hosts[0]
        asked = await host.post("/invocations", {"message": f"w act:{KEY}", "session_id": "s"})
        body = {"approval": {"id": asked.body["approvals"][0]["id"], "approved": True}}
        chosen = {"x-agent-invocation-id": "the-answer"}
        exchange = await host.begin("/invocations", body, headers=chosen)
        assert await place.noted("held", KEY)
        await host.kill()
        exchange.cut()
        await host.start()
        again = await host.post("/invocations", body, headers=chosen)
        found = await host.get("/invocations/the-answer")
        assert found.ok or again.ok, f"the answer is {again.status} {again.code}, and its run {found.status}"
        if found.ok:
            assert found.body["status"] == "failed", found.body
        assert place.effects("held") == [KEY]
