"""Point 3: an approval is answered, and its host is disturbed before the tool has begun."""

from typing import Any

import pytest

from tests.databases import PostgresServer
from tests.judge.ledger import Approval, Ledger
from tests.judge.proxy import Rule
from tests.judge.site import Process, Site, site
from tests.judge.steps import check, read

WINDOW = 0.7
PATIENCE = 40.0


async def _ask(host: Process) -> dict[str, Any]:
    """Have the agent ask, and return the body that approves."""
    asked = await host.post("/invocations", {"message": "w act:key", "session_id": "s"})
    return {"approval": {"id": asked.body["approvals"][0]["id"], "approved": True}}


async def _answers_again(place: Site, host: Process, body: dict[str, Any], first: list[str]) -> None:
    """Send the same answer until it is clear what became of it; the tool must have run once by then."""
    ledger = Ledger()
    approval = ledger.approvals["key"] = Approval("key", answers=first)
    for _ in range(30):
        answer = await host.post("/invocations", body)
        approval.answers.append("done" if answer.ok else answer.code)
        if answer.code in ("", "approval_answered"):
            break
    await place.noted("did", "key", within=5.0 if answer.ok else 1.0)
    ledger.effects = place.effects("did")
    check(ledger)
    assert ledger.effects == ["key"]


async def test_a_client_hangs_up_while_its_answer_is_written() -> None:
    async with site("sqlite") as place:
        host = place.hosts[0]
        body = await _ask(host)
        with place.lock():
            leaving = await host.begin("/invocations", body)
            for _ in range(30):
                # Each of them is read from the store, as what comes before the write is.
                await host.get("/invocations/none")
            leaving.cut()
            await place.noted("did", "key", within=WINDOW)
        await _answers_again(place, host, body, ["cut"])


@pytest.mark.parametrize("at_byte", [0, 6, 12, 17])
async def test_the_reply_to_the_commit_of_an_answer_is_lost(
    postgres_of_this_process: PostgresServer, at_byte: int
) -> None:
    async with site("postgres", server=postgres_of_this_process) as place:
        host = place.hosts[0]
        body = await _ask(host)
        assert host.proxy is not None
        host.proxy.add(Rule("cut", touching="approvals", at_byte=at_byte))
        answer = await host.post("/invocations", body)
        await _answers_again(place, host, body, ["done" if answer.ok else answer.code])


async def test_a_host_is_killed_when_it_has_written_an_answer(postgres_of_this_process: PostgresServer) -> None:
    async with site("postgres", server=postgres_of_this_process) as place:
        host = place.hosts[0]
        body = await _ask(host)
        assert host.proxy is not None
        rule = host.proxy.add(Rule("hold_reply", touching="approvals"))
        exchange = await host.begin("/invocations", body)
        await rule.seen.wait()
        await host.kill()
        rule.release.set()
        assert await read(exchange) is None
        await host.start()
        await _answers_again(place, host, body, ["cut"])


async def test_a_host_is_killed_when_it_has_written_the_answer_of_a_chat(
    postgres_of_this_process: PostgresServer,
) -> None:
    async with site("postgres", chats=("chat",), server=postgres_of_this_process) as place:
        host, platform = place.hosts[0], place.platforms["chat"]
        person = await platform.user("ann")
        await platform.say(person, "w act:key")
        question = (await platform.wait_for_answers(person.chat_id))[0]
        assert host.proxy is not None
        rule = host.proxy.add(Rule("hold_reply", touching="UPDATE approvals"))
        await platform.click(person, question, "Approve")
        await rule.seen.wait()
        await host.kill()
        rule.release.set()
        await host.start()
        done = await place.noted("did", "key", within=PATIENCE)
        said = [one.text for one in await platform.answers(person.chat_id)]
        told = (await platform.state()).clicks
        assert done, f"the tool never ran; the chat says {said}, and the button says {told}"
        assert place.effects("did") == ["key"]
