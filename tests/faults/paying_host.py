"""A host in a process of its own that asks before it pays, and ends itself at a moment of the answer.

Its settings are JSON with `root`, `kind` and `moment`: with a `port` it serves Invocations and Responses, with a
`platform` it answers a chat, and with a `bot_api` one on Telegram. With a `dsn` its state is in Postgres. What was paid
is in the file `paid` of its root.
"""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

from agent_framework import Agent, ContextProvider, WorkflowAgent, tool

from frontdesk import AgentFrameworkHost
from frontdesk.approvals.answers import ApprovalAttempt
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.delivery import destination_drain
from frontdesk.interfaces.chat import PushTerms
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing.internals import get_components
from frontdesk_testing.messages import MessageChannel
from tests.databases import short_lease
from tests.scenarios.cast import call
from tests.scenarios.pausing import Till

MOMENTS = ("decided", "entered", "written", "begun")
"""When it can die: with the decision committed, with the agent at work and no tool begun, with the beginning of the
tool committed and nothing done by it, or in the tool."""


def die() -> None:
    """End the process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


class Payments(list[Any]):
    """What was paid, over all processes."""

    def __init__(self, place: Path, moment: str) -> None:
        super().__init__()
        self._place = place
        self._moment = moment

    def append(self, amount: Any) -> None:
        with self._place.open("a") as file:
            file.write(f"{amount}\n")
        if self._moment == "begun":
            die()


class Doorway(ContextProvider):
    """Is passed before any tool; the second time, it may be the end."""

    def __init__(self, root: Path, moment: str) -> None:
        super().__init__("doorway")
        self._asked = root / "asked"
        self._moment = moment

    async def before_run(self, **_: Any) -> None:
        if self._asked.exists() and self._moment == "entered":
            die()
        self._asked.touch()


def _answer(messages: Any) -> Any:
    results = [one for message in messages for one in message.contents if one.type == "function_result"]
    return "done" if results else [call("pay", amount=5)]


def parse_target(kind: str, root: Path, moment: str) -> Any:
    """A target of a kind that asks before it pays 5."""
    paid = Payments(root / "paid", moment)

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    agent = Agent(ScriptedChatClient(_answer), tools=[pay], context_providers=[Doorway(root, moment)])
    if kind == "agent":
        return agent
    till = Till()
    till.agent = agent
    return till if kind == "workflow" else lambda: WorkflowAgent(till())


def main(settings: str) -> None:
    """Serve until the process is killed."""
    given: dict[str, Any] = json.loads(settings)
    root, moment = Path(given["root"]), given["moment"]
    channels: list[Any] = [InvocationsChannel(), ResponsesChannel()]
    if "platform" in given:
        channels = [MessageChannel(platform_url=given["platform"], token=given["token"], intake="polling")]
    elif "bot_api" in given:
        channels = [TelegramChannel(bot_token=given["token"], api_url=given["bot_api"], transport="polling")]
    target, policy = parse_target(given["kind"], root, moment), given.get("on_interrupt", "fail")
    place: dict[str, Any] = {"state_dir": root}
    if "dsn" in given:
        # What was being sent when a process ended is sent again after the time that a push may take.
        destination_drain._MARGIN_SECONDS = 0.5
        for channel in channels:
            channel.push_terms = PushTerms(timeout=2.0)
        place = {"store": short_lease(given["dsn"], 1.0)}
    host = AgentFrameworkHost(target, channels=channels, on_interrupt=policy, **place)
    if moment == "written":
        _die_when_begun()
    answers: Any = get_components(host).answers
    plain = answers.take

    async def take(*arguments: Any) -> Any:
        attempt = await plain(*arguments)
        if moment == "decided":
            die()
        return attempt

    answers.take = take
    if "platform" in given or "bot_api" in given:
        asyncio.run(_chat(host))
    else:
        host.serve(port=given["port"], log_level="critical")


def _die_when_begun() -> None:
    """End the process when it has written that a tool begins."""
    plain = ApprovalAttempt.begin

    async def begin(self: Any, *given: Any) -> None:
        await plain(self, *given)
        die()

    setattr(ApprovalAttempt, "begin", begin)  # noqa: B010


async def _chat(host: AgentFrameworkHost) -> None:
    async with host.app.router.lifespan_context(host.app):
        await asyncio.Event().wait()
