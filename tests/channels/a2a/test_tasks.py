"""Sends messages and reads, lists and cancels tasks."""

import asyncio
from typing import Any

import httpx
import pytest
from agent_framework import AgentResponse, Content, Message

from frontdesk import ApiKeyAuth
from frontdesk.framework.contents import refusal
from frontdesk_testing import EchoAgent, FailingAgent, GatedAgent
from tests.channels.a2a.caller import VERSION, RefusedError, calling, data, message, state_of, text_of
from tests.scenarios.cast import build_scripted, call, parrot
from tests.scenarios.desk import until
from tests.scenarios.test_cancel import Slow

ALICE, BOB = "the-key-of-alice", "the-key-of-bob-long"
AUTH = ApiKeyAuth({"alice": ALICE, "bob": BOB})


async def refused(work: Any) -> RefusedError:
    with pytest.raises(RefusedError) as found:
        await work
    return found.value


async def test_a_message_is_answered_by_a_completed_task() -> None:
    async with calling(parrot()) as client:
        task = await client.send("hello")
        assert (state_of(task), text_of(task)) == ("COMPLETED", "you said hello")
        assert task["contextId"]
        assert [one["role"] for one in task["history"]] == ["ROLE_USER", "ROLE_AGENT"]
        assert await client.get(task) == task


async def test_the_target_sees_the_id_of_the_message() -> None:
    agent = EchoAgent()
    async with calling(agent) as client:
        await client.send("hello", messageId="tck-complete-task-1")
    assert [one.message_id for one in agent.seen[0]] == ["tck-complete-task-1"]


async def test_a_context_is_a_conversation() -> None:
    async with calling(build_scripted(lambda messages: [f"{len(messages)} messages"])) as client:
        first = await client.send("one", contextId="ctx-1")
        assert first["contextId"] == "ctx-1"
        second = await client.send("two", contextId="ctx-1")
        assert second["id"] != first["id"]
        assert text_of(second) == "3 messages"


async def test_the_same_message_runs_once_and_another_one_under_its_id_runs_too() -> None:
    agent = EchoAgent()
    async with calling(agent) as client:
        sent = message("hello")
        answers = await asyncio.gather(*[client.call("SendMessage", {"message": sent}) for _ in range(5)])
        assert len({answer["task"]["id"] for answer in answers}) == 1
        assert len(agent.seen) == 1
        other = await client.send("something else", messageId=sent["messageId"])
        assert text_of(other) == "something else"


async def test_a_message_with_return_immediately_is_not_waited_for() -> None:
    agent = GatedAgent()
    async with calling(agent) as client:
        task = await client.send("hello", configuration={"returnImmediately": True})
        assert state_of(task) in ("SUBMITTED", "WORKING")
        await agent.started.wait()
        assert state_of(await client.get(task)) == "WORKING"
        agent.release.set()

        async def is_over() -> bool:
            return state_of(await client.get(task)) == "COMPLETED"

        await until(is_over)


async def test_a_message_that_was_not_waited_for_can_be_waited_for_later() -> None:
    slow = Slow()
    async with calling(slow.whole) as client:
        sent = {"message": message("hello")}
        first = (await client.call("SendMessage", {**sent, "configuration": {"returnImmediately": True}}))["task"]
        await slow.began.wait()
        asked = asyncio.create_task(client.call("SendMessage", sent))

        async def is_read() -> bool:
            return state_of(await client.get(first)) == "WORKING"

        await until(is_read)
        slow.go_on.set()
        task = (await asked)["task"]
        assert (task["id"], state_of(task), slow.entered) == (first["id"], "COMPLETED", 1)


async def test_a_client_that_leaves_ends_nothing() -> None:
    slow = Slow()
    async with calling(slow.whole) as client:
        sent = {"message": message("hello")}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": sent}
        with pytest.raises(httpx.ReadTimeout):
            await client.http.post("/a2a", json=body, headers=VERSION, timeout=0.3)
        await slow.began.wait()
        slow.go_on.set()
        task = (await client.call("SendMessage", sent))["task"]
        assert (state_of(task), slow.entered, slow.left) == ("COMPLETED", 1, [])


async def test_a_message_to_a_task_that_has_ended_is_refused_and_its_own_message_is_answered_again() -> None:
    async with calling(parrot()) as client:
        sent = message("hello")
        task = (await client.call("SendMessage", {"message": sent}))["task"]
        error = await refused(client.send("more", taskId=task["id"]))
        assert (error.code, error.reason) == (-32004, "UNSUPPORTED_OPERATION")
        assert (await client.call("SendMessage", {"message": sent}))["task"] == task


async def test_unknown_tasks_and_wrong_contexts_are_refused() -> None:
    async with calling(parrot()) as client:
        task = await client.send("hello")
        for method in ("GetTask", "CancelTask"):
            error = await refused(client.call(method, {"id": "task_nope"}))
            assert (error.code, error.reason) == (-32001, "TASK_NOT_FOUND")
        assert (await refused(client.send("hi", taskId="task_nope"))).code == -32001
        assert (await refused(client.send("hi", taskId=task["id"], contextId="other"))).code == -32602
        assert (await refused(client.call("CancelTask", {"id": task["id"]}))).code == -32002


async def test_a_task_of_another_caller_does_not_exist() -> None:
    async with calling(parrot(), auth=AUTH) as client:
        alice, bob = client.as_caller(ALICE), client.as_caller(BOB)
        task = await alice.send("hello", contextId="shared")
        for work in (
            bob.get(task),
            bob.call("CancelTask", {"id": task["id"]}),
            bob.send("hi", taskId=task["id"]),
        ):
            assert (await refused(work)).code == -32001
        # The same name of a context is another one for another caller.
        assert text_of(await bob.send("hi", contextId="shared")) == "you said hi"
        assert [one["id"] for one in (await alice.call("ListTasks"))["tasks"]] == [task["id"]]


async def test_a_running_task_is_canceled() -> None:
    agent = GatedAgent()
    async with calling(agent) as client:
        task = await client.send("hello", configuration={"returnImmediately": True})
        await agent.started.wait()
        canceled = await client.call("CancelTask", {"id": task["id"]})
        assert state_of(canceled) == "CANCELED"
        assert (await refused(client.call("CancelTask", {"id": task["id"]}))).reason == "TASK_NOT_CANCELABLE"


async def test_history_is_cut_from_its_beginning() -> None:
    async with calling(parrot()) as client:
        task = await client.send("hello", configuration={"historyLength": 0})
        assert "history" not in task
        for length, roles in ((0, None), (1, ["ROLE_AGENT"]), (5, ["ROLE_USER", "ROLE_AGENT"])):
            found = await client.get(task, historyLength=length)
            assert (None if "history" not in found else [one["role"] for one in found["history"]]) == roles
        assert (await refused(client.get(task, historyLength=-1))).code == -32602


async def test_tasks_are_listed_by_pages() -> None:
    async with calling(parrot()) as client:
        ids = [(await client.send(str(number), contextId=f"ctx-{number % 2}"))["id"] for number in range(5)]
        ids.reverse()
        whole = await client.call("ListTasks")
        assert [task["id"] for task in whole["tasks"]] == ids
        assert (whole["totalSize"], whole["pageSize"], whole["nextPageToken"]) == (5, 50, "")
        assert all("artifacts" not in task for task in whole["tasks"])
        found, token, pages = [], "", 0
        while token or not pages:
            page = await client.call("ListTasks", {"pageSize": 2, "pageToken": token, "includeArtifacts": True})
            found += [task["id"] for task in page["tasks"]]
            assert page["totalSize"] == 5
            assert all(text_of(task) for task in page["tasks"])
            token, pages = page["nextPageToken"], pages + 1
        assert (found, pages) == (ids, 3)
        some = await client.call("ListTasks", {"contextId": "ctx-0"})
        assert ([task["id"] for task in some["tasks"]], some["totalSize"]) == (ids[::2], 3)
        times = [task["status"]["timestamp"] for task in whole["tasks"]]
        assert times == sorted(times, reverse=True)
        late = await client.call("ListTasks", {"statusTimestampAfter": times[1]})
        assert {task["id"] for task in late["tasks"]} >= set(ids[:2])
        for state, count in (("TASK_STATE_COMPLETED", 5), ("TASK_STATE_WORKING", 0)):
            page = await client.call("ListTasks", {"status": state})
            assert (len(page["tasks"]), page["totalSize"]) == (count, count)
        for wrong in ({"pageSize": 0}, {"pageSize": 101}, {"status": "x"}, {"pageToken": "%%"}, {"historyLength": -1}):
            assert (await refused(client.call("ListTasks", wrong))).code == -32602, wrong


async def test_a_target_that_fails_ends_the_task_as_failed() -> None:
    async with calling(FailingAgent(RuntimeError("secret"))) as client:
        task = await client.send("hello")
        assert state_of(task) == "FAILED"
        assert "secret" not in str(task)
        assert state_of(await client.get(task)) == "FAILED"


async def test_a_refusal_of_the_target_rejects_the_task() -> None:
    async with calling(build_scripted(lambda _: [refusal("I won't do that.")])) as client:
        task = await client.send("hello")
        assert state_of(task) == "REJECTED"
        assert task["status"]["message"]["parts"] == [{"text": "I won't do that."}]
        assert "artifacts" not in task
        assert state_of(await client.get(task)) == "REJECTED"
        assert (await refused(client.call("SubscribeToTask", {"id": task["id"]}))).reason == "UNSUPPORTED_OPERATION"


class Painter(EchoAgent):
    """Answers with a text, a picture, and an address."""

    async def _answer(self, words: list[str]) -> AgentResponse[Any]:
        contents = [
            Content.from_text("Here."),
            Content.from_data(b"png", media_type="image/png"),
            Content.from_uri("https://example.com/a.pdf", media_type="application/pdf"),
        ]
        return AgentResponse(messages=[Message("assistant", contents)])


async def test_files_go_both_ways() -> None:
    agent = Painter()
    async with calling(agent) as client:
        task = await client.send(
            "look",
            {"raw": "cG5n", "mediaType": "image/png", "filename": "a.png"},
            {"raw": "_-8", "mediaType": "image/png"},
            {"url": "https://example.com/b.png", "mediaType": "image/png"},
            data(count=42),
        )
        contents = agent.seen[0][0].contents
        assert [content.type for content in contents] == ["text", "data", "data", "uri", "text"]
        assert contents[4].text == '{"count":42}'
        assert task["artifacts"][0]["parts"] == [
            {"text": "Here."},
            {"raw": "cG5n", "mediaType": "image/png"},
            {"url": "https://example.com/a.pdf", "mediaType": "application/pdf"},
        ]
        assert task["history"][0]["parts"][1] == {"raw": "cG5n", "mediaType": "image/png", "filename": "a.png"}
        assert task["history"][0]["parts"][4] == {"data": {"count": 42}, "mediaType": "application/json"}
        only = await client.send("again", configuration={"acceptedOutputModes": ["image/*"]})
        assert only["artifacts"][0]["parts"] == [{"raw": "cG5n", "mediaType": "image/png"}]
        assert (await client.get(only))["artifacts"] == only["artifacts"]


async def test_modes_that_are_not_supported_are_refused_before_anything_runs() -> None:
    agent = EchoAgent()
    async with calling(agent) as client:
        unknown = {"raw": "dGNr", "mediaType": "application/x-unsupported"}
        error = await refused(client.send(unknown))
        assert (error.code, error.reason) == (-32005, "CONTENT_TYPE_NOT_SUPPORTED")
        assert (await refused(client.send("a", configuration={"acceptedOutputModes": ["model/x"]}))).code == -32005
        assert agent.seen == []


async def test_a_short_answer_is_a_message_if_the_channel_says_so() -> None:
    async with calling(parrot(), short_answers_as_messages=True) as client:
        answer = await client.call("SendMessage", {"message": message("hello")})
        assert list(answer) == ["message"]
        assert answer["message"]["parts"] == [{"text": "you said hello"}]
        assert answer["message"]["contextId"]
        assert [list(event) for event in await client.stream("hello")] == [["message"]]
        long = await client.call("SendMessage", {"message": message("x" * 3000)})
        assert list(long) == ["task"]
        events = await client.stream("x" * 9000)
        assert "task" in events[0]
        assert "statusUpdate" in events[-1]


async def test_tenants_are_apart() -> None:
    async with calling(parrot(), tenants=["acme", "globex"]) as client:
        task = (await client.call("SendMessage", {"message": message("hi", contextId="c"), "tenant": "acme"}))["task"]
        assert task["contextId"] == "c"
        assert await client.call("GetTask", {"id": task["id"], "tenant": "acme"}) == task
        for tenant in ("globex", ""):
            assert (await refused(client.call("GetTask", {"id": task["id"], "tenant": tenant}))).code == -32001
            assert (await client.call("ListTasks", {"tenant": tenant}))["tasks"] == []
        assert (await client.call("ListTasks", {"tenant": "acme"}))["totalSize"] == 1
        assert (await refused(client.call("ListTasks", {"tenant": "umbrella"}))).code == -32602
        rest = await client.http.get(f"/a2a/v1/acme/tasks/{task['id']}", headers=VERSION)
        assert rest.json() == task
        wrong = await client.http.get(f"/a2a/v1/umbrella/tasks/{task['id']}", headers=VERSION)
        assert wrong.status_code == 400


async def test_structured_output_is_data() -> None:
    from pydantic import BaseModel

    class Bill(BaseModel):
        total: int

    agent = build_scripted(lambda _: ['{"total": 5}'], default_options={"response_format": Bill})
    async with calling(agent) as client:
        task = await client.send("bill")
        assert task["artifacts"][0]["parts"] == [{"data": {"total": 5}, "mediaType": "application/json"}]
        text = await client.send("bill", configuration={"acceptedOutputModes": ["text/plain"]})
        assert text["artifacts"][0]["parts"] == [{"text": '{"total":5}'}]
        events = await client.stream("bill")
        assert events[-2]["artifactUpdate"]["artifact"]["parts"] == [
            {"data": {"total": 5}, "mediaType": "application/json"}
        ]
        assert events[-2]["artifactUpdate"]["lastChunk"]


async def test_calls_of_tools_are_not_shown() -> None:
    from agent_framework import tool

    @tool(approval_mode="never_require")
    def rate() -> str:
        """Rates."""
        return "secret rate"

    async with calling(build_scripted([[call("rate")], ["done"]], tools=[rate])) as client:
        task = await client.send("hello")
        assert text_of(task) == "done"
        assert "secret rate" not in str(task)
