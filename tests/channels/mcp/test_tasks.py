"""The tasks extension on background runs, over the wire."""

import asyncio
from pathlib import Path
from typing import Any

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.mcp import MCPChannel, MCPTool
from frontdesk_testing import HostClient, serving
from tests.channels.mcp.clients import modern, send, with_tasks
from tests.channels.mcp.test_questions import PAY, desk_workflow
from tests.scenarios.desk import until
from tests.scenarios.messages.test_buttons import Bank


class Gate:
    """A target that answers when it is opened."""

    def __init__(self) -> None:
        self.open, self.ended = asyncio.Event(), asyncio.Event()

    async def wait(self, text: str) -> str:
        try:
            await self.open.wait()
        finally:
            self.ended.set()
        return f"done: {text}"


def channel(**settings: Any) -> MCPChannel:
    tools = [MCPTool(name="work", description="Works.", tasks="always")]
    given: dict[str, Any] = {"tools": tools, "task_after_seconds": 0.2, **settings}
    return MCPChannel(**given)


async def begin(served: HostClient, message: str = "pay", **headers: str) -> dict[str, Any]:
    params = {"name": "work", "arguments": {"message": message}}
    return (await send(served.http, modern("tools/call", params, **with_tasks(elicitation={})), **headers)).json()


async def ask(served: HostClient, method: str, task_id: str, *, headers: Any = None, **params: Any) -> dict[str, Any]:
    body = modern(f"tasks/{method}", {"taskId": task_id, **params}, **with_tasks(elicitation={}))
    return (await send(served.http, body, **(headers or {}))).json()


async def until_status(served: HostClient, task_id: str, status: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def has_status() -> bool:
        found.update((await ask(served, "get", task_id))["result"])
        return found["status"] == status

    await until(has_status)
    return found


async def test_a_task_is_followed_to_its_result() -> None:
    gate = Gate()
    async with serving(AgentFrameworkHost(gate.wait, channels=[channel()])) as served:
        task = (await begin(served, "hi"))["result"]
        assert (task["resultType"], task["status"]) == ("task", "working")
        assert "task" not in task
        gate.open.set()
        done = await until_status(served, task["taskId"], "completed")
        assert done["result"]["structuredContent"]["text"] == "done: hi"
        assert (await ask(served, "cancel", task["taskId"]))["result"]["resultType"] == "complete"
        assert (await ask(served, "get", task["taskId"]))["result"]["status"] == "completed"


async def test_a_cancelled_task_cancels_its_run() -> None:
    gate = Gate()
    async with serving(AgentFrameworkHost(gate.wait, channels=[channel()])) as served:
        task = (await begin(served))["result"]
        await ask(served, "cancel", task["taskId"])
        await until_status(served, task["taskId"], "cancelled")


async def test_a_call_that_is_slow_becomes_a_task_only_for_clients_that_know_tasks() -> None:
    gate = Gate()
    tools = [MCPTool(name="work", description="Works.")]
    async with serving(AgentFrameworkHost(gate.wait, channels=[channel(tools=tools)])) as served:
        task = (await begin(served))["result"]
        assert task["resultType"] == "task"
        params = {"name": "work", "arguments": {"message": "hi"}}
        plain = asyncio.create_task(send(served.http, modern("tools/call", params)))
        gate.open.set()
        assert (await plain).json()["result"]["structuredContent"]["text"] == "done: hi"
        quick = (await begin(served, "quick"))["result"]
        assert quick["structuredContent"]["text"] == "done: quick"


async def test_tasks_need_the_extension_and_their_owner() -> None:
    keys = {"ada": "the-key-of-ada-is-long", "bob": "the-key-of-bob-is-long"}
    ada, bob = ({"x-api-key": key} for key in keys.values())
    gate = Gate()
    gate.open.set()
    host = AgentFrameworkHost(gate.wait, channels=[channel(auth=ApiKeyAuth(keys))])
    async with serving(host) as served:
        task_id = (await begin(served, **ada))["result"]["taskId"]
        for method in ("get", "cancel"):
            foreign = await ask(served, method, task_id, headers=bob)
            unknown = await ask(served, method, "mcp_unknown", headers=bob)
            assert foreign["error"] == unknown["error"]
            assert foreign["error"]["code"] == -32602
        missing = (await send(served.http, modern("tasks/get", {"taskId": task_id}), **ada)).json()
        assert missing["error"]["code"] == -32021
        call_params = {"name": "work", "arguments": {"message": "hi"}}
        refused = (await send(served.http, modern("tools/call", call_params), **ada)).json()
        assert refused["error"]["code"] == -32021
        body = modern("tasks/get", {"taskId": task_id}, **with_tasks())
        mismatch = await send(served.http, body, **{**ada, "mcp-name": "another"})
        assert (mismatch.status_code, mismatch.json()["error"]["code"]) == (400, -32020)


async def test_an_approval_of_a_task_is_answered_after_a_restart(tmp_path: Path) -> None:
    bank = Bank()
    async with serving(AgentFrameworkHost(bank.agent(PAY), channels=[channel()], state_dir=tmp_path)) as served:
        task_id = (await begin(served))["result"]["taskId"]
        asked = await until_status(served, task_id, "input_required")
        (name,) = asked["inputRequests"]
    async with serving(AgentFrameworkHost(bank.agent(["done"]), channels=[channel()], state_dir=tmp_path)) as served:
        answer = {name: {"action": "accept", "content": {"approved": True}}}
        ack = (await ask(served, "update", task_id, inputResponses=answer))["result"]
        assert ack["resultType"] == "complete"
        assert set(ack) <= {"resultType", "_meta"}
        done = await until_status(served, task_id, "completed")
        assert done["result"]["structuredContent"]["text"] == "done"
    assert bank.paid == [5]


async def test_a_workflow_goes_on_when_all_of_its_questions_are_answered() -> None:
    async with serving(AgentFrameworkHost(desk_workflow, channels=[channel()])) as served:
        task_id = (await begin(served, "Ada"))["result"]["taskId"]
        asked = await until_status(served, task_id, "input_required")
        assert set(asked["inputRequests"]) == {"stay", "breakfast"}
        await ask(served, "update", task_id, inputResponses={"stay": {"action": "accept", "content": {"nights": 2}}})
        rest = (await ask(served, "get", task_id))["result"]
        assert (rest["status"], set(rest["inputRequests"])) == ("input_required", {"breakfast"})
        last = {"breakfast": {"action": "accept", "content": {"answer": False}}}
        await ask(served, "update", task_id, inputResponses=last)
        done = await until_status(served, task_id, "completed")
        outputs = done["result"]["structuredContent"]["outputs"]
        assert set(outputs) == {"2 nights in the attic", "without breakfast"}
