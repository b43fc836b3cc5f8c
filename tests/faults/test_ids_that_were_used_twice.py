"""An id that a caller chose for two requests at once is one run: the second is refused, and doubles nothing."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import serving
from tests.faults.crash.processes import HostProcesses
from tests.scenarios.desk import open_client, until
from tests.scenarios.test_cancel import MINE, Slow


async def test_a_second_request_with_the_id_of_one_that_ran_doubled_the_turn(tmp_path: Path) -> None:
    slow = Slow()
    host = AgentFrameworkHost(target=slow.whole, channels=[InvocationsChannel()], state_dir=tmp_path)
    async with serving(host) as client:
        ask: Any = {"headers": MINE, "json": {"message": "it", "session_id": "s"}}
        first = asyncio.create_task(client.http.post("/invocations", **ask))
        await slow.began.wait()
        second = asyncio.create_task(client.http.post("/invocations", **ask))
        # It has come to where it waits for the session, or has been refused.
        for _ in range(20):
            await client.http.get("/invocations/none")
        slow.go_on.set()
        answers = [await first, await second]
        assert [one.status_code for one in answers] == [200, 409]
        assert (await client.http.get("/invocations/mine")).json() == answers[0].json()


@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_id_on_two_hosts_was_two_turns_and_one_result(postgres: str, stream: bool) -> None:
    slow = Slow()
    hosts = [
        AgentFrameworkHost(
            target=slow.whole, channels=[InvocationsChannel()], store=PostgresStateStore(postgres, pool_size=2)
        )
        for _ in range(2)
    ]
    async with serving(hosts[0]) as one, serving(hosts[1]) as other:
        asked = [
            asyncio.create_task(
                client.http.post("/invocations", headers=MINE, json={"message": text, "stream": stream})
            )
            for client, text in ((one, "a"), (other, "b"))
        ]
        # One is refused while the other runs.
        await until(lambda: slow.entered and any(request.done() for request in asked))
        slow.go_on.set()
        answers = [await request for request in asked]
        assert slow.entered == 1
        if stream:
            assert sorted("run_exists" in answer.text for answer in answers) == [False, True]
        else:
            assert sorted(answer.status_code for answer in answers) == [200, 409]
        kept = (await one.http.get("/invocations/mine")).json()
        assert kept["status"] == "completed"
        (good,) = [answer for answer in answers if answer.status_code == 200 and "run_exists" not in answer.text]
        assert kept["text"] in good.text


async def test_an_id_is_refused_while_another_host_runs_it(postgres: str) -> None:
    slow = Slow()
    hosts = [
        AgentFrameworkHost(target=slow.whole, channels=[InvocationsChannel()], store=PostgresStateStore(postgres))
        for _ in range(2)
    ]
    async with serving(hosts[0]) as one, serving(hosts[1]) as other:
        asked = asyncio.create_task(one.http.post("/invocations", headers=MINE, json={"message": "a"}))
        await slow.began.wait()
        refused = await other.http.post("/invocations", headers=MINE, json={"message": "a"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run_exists")
        running = (await other.http.get("/invocations/mine")).json()
        assert running["status"] == "running"
        slow.go_on.set()
        answer = (await asked).json()
        assert answer["status"] == "completed"
        assert (await other.http.get("/invocations/mine")).json() == answer
    assert slow.entered == 1


async def test_a_request_that_is_refused_leaves_its_id_free(postgres: str) -> None:
    async def repeat(text: str) -> str:
        return text

    host = AgentFrameworkHost(repeat, channels=[InvocationsChannel()], store=PostgresStateStore(postgres))
    async with serving(host) as client:
        bad: Any = {"headers": MINE, "json": {"message": "x", "session_id": "s", "checkpoint_id": "none"}}
        assert (await client.http.post("/invocations", **bad)).status_code in (400, 404)
        good = await client.http.post("/invocations", headers=MINE, json={"message": "good"})
        assert (good.status_code, good.json()["text"]) == (200, "good")


async def test_the_id_of_a_run_whose_host_was_killed_is_not_run_again(postgres: str, tmp_path: Path) -> None:
    async with HostProcesses("postgres", postgres, tmp_path / "signs", lease=1.0, server="storyteller") as house:
        first = await house.start()
        body = {"message": "10 stop"}
        asked = asyncio.create_task(first.client.post("/invocations", json=body, headers=MINE))
        await until(lambda: house.sign("stop-reached").exists())
        first.kill()
        with pytest.raises(httpx.TransportError):
            await asked
        second = await house.start()
        assert (await second.client.post("/invocations", json=body, headers=MINE)).status_code == 409

        async def is_ended() -> bool:
            return (await second.client.get("/invocations/mine")).json()["status"] == "failed"

        await until(is_ended)


async def test_a_failure_with_an_id_that_another_run_has_is_still_told() -> None:
    async def fail(text: str) -> str:
        raise RuntimeError(text)

    async with open_client(fail) as desk:
        assert (await desk.ask("it", headers=MINE)).json()["status"] == "failed"
        assert (await desk.ask("it", headers=MINE)).status_code == 409
