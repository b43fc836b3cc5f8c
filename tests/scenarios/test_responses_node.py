"""The `openai` client for Node, against a started server; tests/node has what it does.

Everything that the server says to it goes through the same judges as with the client for Python.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Message, tool

from frontdesk import ApiKeyAuth
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.faults.test_runs_that_clients_repeated import Shop
from tests.node_program import INSTALLED, SCRIPTS, node_with
from tests.scenarios.cast import build_scripted, call, parrot
from tests.scenarios.chat_completions.desk import ChatHost
from tests.scenarios.chat_completions.desk import open_client as open_chat_desk
from tests.scenarios.responses.desk import ResponsesHost, open_client

KEY = "the-key-of-the-node-client"

Script = Callable[..., Awaitable[None]]


NODE = node_with("openai", "the Responses API with")


@pytest.fixture
def run(tmp_path: Path) -> Script:
    """Runs a script as a user's own: beside its `node_modules`, with the address in the environment."""
    (tmp_path / "node_modules").symlink_to(INSTALLED, target_is_directory=True)

    async def run_script(name: str, desk: ResponsesHost | ChatHost) -> None:
        script = shutil.copy(SCRIPTS / name, tmp_path)
        environment = {"OPENAI_BASE_URL": f"{desk.url}/v1", "OPENAI_API_KEY": KEY}
        process = await asyncio.create_subprocess_exec(
            NODE, script, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, said.decode()

    return run_script


def _open(target: Any) -> Any:
    return open_client(target, auth=ApiKeyAuth({"node": KEY}))


@pytest.mark.parametrize("name", ["create.mjs", "stream.mjs", "background.mjs"])
async def test_a_question_and_its_answer(run: Script, name: str) -> None:
    async with _open(parrot()) as desk:
        await run(name, desk)
        assert desk.runs()


async def test_a_function_of_the_client_s(run: Script) -> None:
    def reply(messages: list[Message]) -> Any:
        answered = any(one.type == "function_result" for one in messages[-1].contents)
        return ["It is sunny."] if answered else [call("weather", f"call-{len(agent.client.seen)}", city="Rome")]

    agent: Any = build_scripted(reply)
    async with _open(agent) as desk:
        await run("tools.mjs", desk)
        assert [one.result for one in agent.client.seen[1][-1].contents] == ["sunny"]


async def test_an_answer_in_the_form_that_was_asked_for(run: Script) -> None:
    agent: Any = build_scripted(lambda messages: ['{"city": "Rome", ', '"degrees": 21}'])
    async with _open(agent) as desk:
        await run("structured.mjs", desk)
        assert all(options["response_format"] for options in agent.client.options)


async def test_a_tool_that_waits_for_a_human(run: Script) -> None:
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    async with _open(_payer(pay)) as desk:
        await run("approvals.mjs", desk)
        assert paid == [5, 5]


@pytest.mark.parametrize("host_tools", ["hide", "full"])
async def test_an_approval_of_the_ai_sdk_named_its_question_and_was_a_404(run: Script, host_tools: str) -> None:
    node_with("ai", "the Responses API with")
    paid: list[int] = []

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    def reply(messages: list[Message]) -> Any:
        if messages[-1].text == "thanks":
            return ["you are welcome"]
        if any(one.type == "function_result" for one in messages[-1].contents):
            return ["paid twice"]
        turn = len(agent.client.seen)
        return [call("pay", f"call-{turn}-{number}", amount=5) for number in range(2)]

    agent: Any = build_scripted(reply, tools=[pay])
    async with open_client(agent, auth=ApiKeyAuth({"node": KEY}), host_tools=host_tools) as desk:
        await run("ai_approvals.mjs", desk)
        assert paid == [5] * 4


def _payer(pay: Any) -> Agent:
    def reply(messages: list[Message]) -> Any:
        results = [one for one in messages[-1].contents if one.type == "function_result"]
        if not results:
            return [call("pay", f"call-{len(agent.client.seen)}", amount=5)]
        return ["paid 5" if results[0].result == "paid 5" else "not paid"]

    agent: Any = build_scripted(reply, tools=[pay])
    return agent


async def test_a_chain_of_responses(run: Script) -> None:
    def reply(messages: list[Message]) -> Any:
        return ["heard " + ", ".join(one.text for one in messages if one.role == "user")]

    async with _open(build_scripted(reply)) as desk:
        await run("chain.mjs", desk)


async def test_a_conversation(run: Script) -> None:
    def reply(messages: list[Message]) -> Any:
        return ["heard " + ", ".join(one.text for one in messages if one.role == "user")]

    auth = ApiKeyAuth({"node": KEY})
    async with open_client(build_scripted(reply), auth=auth, beside=[ConversationsChannel(auth=auth)]) as desk:
        await run("conversations.mjs", desk)


@pytest.mark.skipif(not (INSTALLED / "ws").exists(), reason="NOT TESTED: ResponsesWS for Node, as npm lacks ws")
async def test_a_socket(run: Script) -> None:
    def reply(messages: list[Message]) -> Any:
        return ["heard " + ", ".join(one.text for one in messages if one.role == "user")]

    async with _open(build_scripted(reply)) as desk:
        await run("socket.mjs", desk)
        assert len(desk.tap.connections) == 1


async def test_a_failed_run_was_repeated(run: Script) -> None:
    shop = Shop()
    async with _open(shop.agent()) as desk:
        await run("repeated.mjs", desk)
        assert (shop.charged, len(desk.runs())) == ([5] * 3, 3)


async def test_a_failed_run_was_repeated_by_the_ai_sdk(run: Script) -> None:
    node_with("ai", "both APIs with")
    shop = Shop()
    async with open_chat_desk(shop.agent(), beside=[ResponsesChannel()]) as desk:
        await run("ai_repeated.mjs", desk)
        assert shop.charged == [5] * 4


async def test_errors(run: Script) -> None:
    def reply(messages: list[Message]) -> Any:
        if messages[-1].text == "fail":
            raise RuntimeError("the secret reason")
        return ["fine"]

    async with _open(build_scripted(reply)) as desk:
        await run("errors.mjs", desk)
