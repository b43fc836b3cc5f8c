"""Streams of messages, and subscriptions to tasks."""

import asyncio
from typing import Any

import pytest

from frontdesk.framework.contents import refusal
from frontdesk_testing import EchoAgent, FailingAgent, GatedAgent
from tests.channels.a2a.caller import RefusedError, calling, joined, message, state_of, states, text_of
from tests.scenarios.cast import build_scripted, call, parrot
from tests.scenarios.desk import until
from tests.scenarios.test_cancel import Slow
from tests.scenarios.test_decisions import Shop


async def test_a_stream_begins_with_the_task_and_ends_with_its_state() -> None:
    async with calling(parrot()) as client:
        events = await client.stream("hello")
        assert list(events[0]) == ["task"]
        assert states(events) == ["WORKING", "COMPLETED"]
        assert list(joined(events).values()) == ["you said hello"]
        chunks = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
        assert [chunk.get("append", False) for chunk in chunks] == [False, True, True, True]
        assert [chunk.get("lastChunk", False) for chunk in chunks] == [False, False, False, True]
        assert "statusUpdate" in events[-1]
        task = await client.get(events[0]["task"]["id"])
        assert {one["artifactId"]: one["parts"][0]["text"] for one in task["artifacts"]} == joined(events)


async def test_the_task_comes_before_the_target_says_anything() -> None:
    slow = Slow()
    async with (
        calling(slow.whole) as client,
        client.events("SendStreamingMessage", {"message": message("hello")}) as events,
    ):
        assert state_of((await anext(events))["task"]) in ("SUBMITTED", "WORKING")
        slow.go_on.set()
        assert states([event async for event in events])[-1] == "COMPLETED"


async def test_a_stream_that_is_sent_again_is_the_same() -> None:
    agent = EchoAgent()
    async with calling(agent) as client:
        sent = {"message": message("one two")}
        async with client.events("SendStreamingMessage", sent) as events:
            first = [event async for event in events]
        async with client.events("SendStreamingMessage", sent) as events:
            assert [event async for event in events] == first
        answer = await client.call("SendMessage", sent)
        assert text_of(answer["task"]) == "one two"
    assert len(agent.seen) == 1


@pytest.mark.parametrize(
    ("target", "state"),
    [
        (FailingAgent(RuntimeError("secret")), "FAILED"),
        (build_scripted(lambda _: [refusal("I won't do that.")]), "REJECTED"),
    ],
)
async def test_a_stream_ends_with_the_state_of_its_task(target: Any, state: str) -> None:
    async with calling(target) as client:
        events = await client.stream("hello")
        assert states(events)[-1] == state
        assert "secret" not in str(events)
        assert state_of(await client.get(events[0]["task"]["id"])) == state


async def test_a_reader_that_leaves_ends_nothing_and_subscribes_again_without_a_gap() -> None:
    agent = GatedAgent()
    async with calling(agent) as client:
        params = {"message": message("one two three")}
        async with client.events("SendStreamingMessage", params) as events:
            task = (await anext(events))["task"]
            async for event in events:
                if "artifactUpdate" in event:
                    break
        await agent.started.wait()
        async with client.events("SubscribeToTask", {"id": task["id"]}) as events:
            snapshot = await anext(events)
            assert text_of(snapshot["task"]).startswith("one")
            agent.release.set()
            rest = [event async for event in events]
        assert list(joined([snapshot, *rest]).values()) == ["one two three"]
        assert states(rest)[-1] == "COMPLETED"
        assert not agent.cancelled.is_set()


async def test_a_task_of_a_plain_message_is_subscribed_to() -> None:
    slow = Slow()
    async with calling(slow.whole) as client:
        sending = asyncio.create_task(client.send("hello"))
        await slow.began.wait()
        (task,) = (await client.call("ListTasks"))["tasks"]
        assert state_of(task) == "WORKING"
        async with client.events("SubscribeToTask", {"id": task["id"]}) as events:
            first = await anext(events)
            assert state_of(first["task"]) == "WORKING"
            slow.go_on.set()
            rest = [event async for event in events]
        assert list(joined(rest).values()) == ["done with hello"]
        assert states(rest) == ["COMPLETED"]
        assert text_of(await sending) == "done with hello"


async def test_readers_of_a_waiting_task_receive_the_same_events_until_it_has_ended() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        assert state_of(task) == "INPUT_REQUIRED"
        ready: list[int] = []

        async def read() -> list[Any]:
            async with client.events("SubscribeToTask", {"id": task["id"]}) as events:
                found = [await anext(events)]
                ready.append(1)
                return [*found, *[event async for event in events]]

        readers = [asyncio.create_task(read()) for _ in range(2)]

        async def are_ready() -> bool:
            return len(ready) == 2

        await until(are_ready)
        done = await client.send("yes", taskId=task["id"])
        first, second = await asyncio.gather(*readers)
        assert first == second
        assert first[0]["task"] == task
        assert states(first) == ["WORKING", "COMPLETED"]
        assert "done" in "".join(joined(first).values())
        assert state_of(done) == "COMPLETED"
    assert shop.paid == [5]


async def test_a_subscription_ends_when_the_task_is_canceled() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        task = await client.send("pay")
        async with client.events("SubscribeToTask", {"id": task["id"]}) as events:
            await anext(events)
            assert state_of(await client.call("CancelTask", {"id": task["id"]})) == "CANCELED"
            rest = [event async for event in events]
        assert states(rest) == ["CANCELED"]
    assert shop.paid == []


async def test_a_stream_ends_where_the_task_waits_for_input() -> None:
    shop = Shop()
    async with calling(shop.agent) as client:
        events = await client.stream("pay")
        assert states(events) == ["WORKING", "INPUT_REQUIRED"]
        last = events[-1]["statusUpdate"]["status"]["message"]
        assert list(last["parts"][0]) == ["text"]
        task_id = events[0]["task"]["id"]
        more = await client.stream("yes", taskId=task_id)
        assert (more[0]["task"]["id"], state_of(more[0]["task"])) == (task_id, "WORKING")
        assert states(more)[-1] == "COMPLETED"
    assert shop.paid == [5]


async def test_streams_of_unknown_and_ended_tasks_are_refused() -> None:
    async with calling(parrot()) as client:
        for task_id, code in (("task_nope", -32001), ((await client.send("hi"))["id"], -32004)):
            with pytest.raises(RefusedError) as error:
                async with client.events("SubscribeToTask", {"id": task_id}):
                    raise AssertionError
            assert error.value.code == code


async def test_several_messages_of_an_answer_are_several_artifacts() -> None:
    from agent_framework import tool

    @tool(approval_mode="never_require")
    def rate() -> str:
        """Rates."""
        return "5"

    async with calling(
        build_scripted(lambda m: ["done"] if len(m) > 1 else ["wait ", call("rate")], tools=[rate])
    ) as client:
        events = await client.stream("hello")
        assert list(joined(events).values()) == ["wait ", "done"]
        task = await client.get(events[0]["task"]["id"])
        assert {one["artifactId"] for one in task["artifacts"]} == set(joined(events))
