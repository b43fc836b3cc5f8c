"""An id that a caller chose for two requests at once is one run: the second is refused, and doubles nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.postgres import PostgresStateStore
from frontdesk.testing import serving
from tests.scenarios.desk import open_desk, until
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
        await until(lambda: slow.entered == 2)
        slow.go_on.set()
        answers = [await request for request in asked]
        if stream:
            assert sorted("run_exists" in answer.text for answer in answers) == [False, True]
        else:
            assert sorted(answer.status_code for answer in answers) == [200, 409]
        kept = (await one.http.get("/invocations/mine")).json()
        assert kept["status"] == "completed"
        (good,) = [answer for answer in answers if answer.status_code == 200 and "run_exists" not in answer.text]
        assert kept["text"] in good.text


async def test_a_failure_with_an_id_that_another_run_has_is_still_told() -> None:
    async def fail(text: str) -> str:
        raise RuntimeError(text)

    async with open_desk(fail) as desk:
        assert (await desk.ask("it", headers=MINE)).json()["status"] == "failed"
        assert (await desk.ask("it", headers=MINE)).status_code == 409
