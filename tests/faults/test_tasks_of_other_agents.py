"""Tasks of other agents on several hosts, and on hosts that were killed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.a2a import A2AChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import serving
from tests.channels.a2a.caller import Client, joined, message, questions_of, state_of, states, text_of
from tests.faults.crash.processes import HostProcess, HostProcesses
from tests.faults.crash.storyteller import tell
from tests.scenarios.desk import until
from tests.scenarios.test_decisions import Shop


def host(target: Any, postgres: str) -> AgentFrameworkHost:
    return AgentFrameworkHost(target, channels=[A2AChannel()], store=PostgresStateStore(postgres))


def at(process: HostProcess) -> Client:
    return Client(process.client)


async def read_and_kill(process: HostProcess, sent: Any, seen: list[Any]) -> None:
    """Read a stream, and kill its host in the middle."""
    async with at(process).events("SendStreamingMessage", sent) as events:
        async for event in events:
            seen.append(event)
            if "word20 " in "".join(joined(seen).values()):
                process.kill()


async def test_a_message_that_came_to_two_hosts_ran_once(postgres: str) -> None:
    heard: list[str] = []
    go_on = asyncio.Event()

    async def slow(text: str) -> str:
        heard.append(text)
        await go_on.wait()
        return f"done {len(heard)}"

    async with serving(host(slow, postgres)) as one, serving(host(slow, postgres)) as other:
        clients = [Client(served.http) for served in (one, other, one, other)]
        sent = {"message": message("hello")}
        asked = [asyncio.create_task(client.call("SendMessage", sent)) for client in clients]
        await until(lambda: bool(heard))
        go_on.set()
        tasks = [(await request)["task"] for request in asked]
        assert heard == ["hello"]
        assert all(task == tasks[0] for task in tasks)
        assert text_of(tasks[0]) == "done 1"


async def test_a_question_of_one_host_is_answered_at_the_other_and_seen_at_both(postgres: str) -> None:
    shop = Shop()
    async with serving(host(shop.agent, postgres)) as one, serving(host(shop.agent, postgres)) as other:
        here, there = Client(one.http), Client(other.http)
        task = await here.send("pay")
        assert await there.get(task) == task
        async with here.events("SubscribeToTask", {"id": task["id"]}) as events:
            await anext(events)
            (question,) = questions_of(task)
            answer = {"data": {"id": question["id"], "approved": True}}
            done = await there.send(answer, taskId=task["id"])
            rest = [event async for event in events]
        assert (state_of(done), states(rest)) == ("COMPLETED", ["WORKING", "COMPLETED"])
        assert await here.get(task) == await there.get(task)
    assert shop.paid == [5]


@pytest.fixture(params=["sqlite", "postgres"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HostProcesses]:
    place = str(tmp_path / "state") if request.param == "sqlite" else request.getfixturevalue("postgres")
    async with HostProcesses(request.param, place, tmp_path / "signs", lease=1.0, server="storyteller") as house:
        yield house


async def test_a_stream_whose_host_was_killed_is_read_to_its_end_at_the_next_one(house: HostProcesses) -> None:
    first = await house.start()
    sent = {"message": message("40 stop")}
    seen: list[Any] = []
    with pytest.raises(httpx.TransportError):
        await read_and_kill(first, sent, seen)
    second = at(await house.start())
    task_id = seen[0]["task"]["id"]

    async def has_failed() -> bool:
        return state_of(await second.get(task_id)) == "FAILED"

    await until(has_failed)
    # The message is not run again, and what was said is not lost.
    async with second.events("SendStreamingMessage", sent) as events:
        again = [event async for event in events]
    assert again[0]["task"]["id"] == task_id
    assert "".join(joined(again).values()) == tell(21)
    assert states(again)[-1] == "FAILED"
    assert "interrupted" in str(again[-1])


async def test_a_message_whose_host_was_killed_is_not_run_again(house: HostProcesses) -> None:
    first = await house.start()
    sent = {"message": message("10 stop")}
    asked = asyncio.create_task(at(first).call("SendMessage", sent))
    await until(lambda: house.sign("stop-reached").exists())
    first.kill()
    with pytest.raises(httpx.TransportError):
        await asked
    second = at(await house.start())
    answers = [(await second.call("SendMessage", sent))["task"] for _ in range(2)]
    assert answers[0] == answers[1]
    assert state_of(answers[0]) == "FAILED"


async def test_tasks_that_only_waited_are_run_by_the_next_host(house: HostProcesses) -> None:
    first = await house.start()
    now = {"returnImmediately": True}
    for _ in range(2):
        await at(first).send("10 stop", configuration=now)
    task = await at(first).send("12", configuration=now)
    await until(lambda: house.sign("stop-reached").exists())
    first.kill()
    second = at(await house.start())

    async def is_done() -> bool:
        return state_of(await second.get(task)) == "COMPLETED"

    await until(is_done)
    assert text_of(await second.get(task)) == tell(12)
