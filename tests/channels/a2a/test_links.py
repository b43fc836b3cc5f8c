"""Callers who have to link their account first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import ApiKeyAuth, AuthPolicy, OneTimeCodeIdentityLinker
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing import EchoAgent
from tests.channels.a2a.caller import Client, RefusedError, calling, message, state_of, text_of
from tests.scenarios.desk import until

ALICE, ANN = "the-key-of-alice", "the-key-of-ann-long"
AUTH = ApiKeyAuth({"alice": ALICE})


@asynccontextmanager
async def linking(agent: Any, **options: Any) -> AsyncIterator[Client]:
    """Alice has to link before she calls over A2A. Over Invocations she and Ann may write commands."""
    channels = [
        InvocationsChannel(auth=AUTH),
        InvocationsChannel(name="other", path="/other", auth=ApiKeyAuth({"ann": ANN})),
    ]
    given = {"linker": OneTimeCodeIdentityLinker(), **options}
    async with calling(
        agent, channels=channels, options=given, auth=AUTH, allowlist=AuthPolicy.require_link()
    ) as client:
        yield client.as_caller(ALICE)


async def say(client: Client, path: str, key: str, text: str) -> str:
    answer = await client.http.post(path, json={"message": text}, headers={"x-api-key": key})
    assert answer.status_code == 200, answer.text
    return answer.json()["text"]


async def link(client: Client, code: str) -> None:
    await say(client, "/other", ANN, f"/link {code}")
    await say(client, "/other", ANN, "/link confirm")
    for _ in range(2):
        await say(client, "/invocations", ALICE, "/link confirm")


def code_in(task: dict[str, Any]) -> str:
    text = task["status"]["message"]["parts"][0]["text"]
    return next(word for word in text.replace("\n", " ").split() if word.strip(".").isupper() and len(word) >= 8)


async def test_a_task_waits_for_the_link_and_goes_on_after_it() -> None:
    agent = EchoAgent()
    async with linking(agent, max_link_request_bytes=16_384) as client:
        sent = {"message": message("what is due?", contextId="ctx-1")}
        task = (await client.call("SendMessage", sent))["task"]
        assert (state_of(task), task["contextId"]) == ("AUTH_REQUIRED", "ctx-1")
        assert "goes on after that" in task["status"]["message"]["parts"][0]["text"]
        assert await client.get(task) == task
        assert (await client.call("SendMessage", sent))["task"] == task
        assert agent.seen == []
        await link(client, code_in(task))

        async def is_over() -> bool:
            return state_of(await client.get(task)) == "COMPLETED"

        await until(is_over)
        done = await client.get(task)
        assert (text_of(done), done["contextId"]) == ("what is due?", "ctx-1")
    assert len(agent.seen) == 1


async def test_a_request_that_is_not_stored_is_sent_again_on_its_task() -> None:
    agent = EchoAgent()
    async with linking(agent) as client:
        task = await client.send("what is due?")
        assert state_of(task) == "AUTH_REQUIRED"
        assert "Send the message again" in task["status"]["message"]["parts"][0]["text"]
        await link(client, code_in(task))
        done = await client.send("what is due?", taskId=task["id"])
        assert (done["id"], state_of(done), done["contextId"]) == (task["id"], "COMPLETED", task["contextId"])


async def test_a_stream_of_a_task_that_waits_for_a_link_is_that_task() -> None:
    async with linking(EchoAgent()) as client:
        (event,) = await client.stream("what is due?")
        assert state_of(event["task"]) == "AUTH_REQUIRED"
        async with client.events("SubscribeToTask", {"id": event["task"]["id"]}) as events:
            assert [one async for one in events] == [event]


async def test_other_calls_say_that_a_link_is_needed() -> None:
    async with linking(EchoAgent()) as client:
        for method, params in (("ListTasks", {}), ("GetTask", {"id": "task_x"}), ("CancelTask", {"id": "task_x"})):
            with pytest.raises(RefusedError) as error:
                await client.call(method, params)
            assert (error.value.reason, error.value.code) == ("LINK_REQUIRED", -32051)
