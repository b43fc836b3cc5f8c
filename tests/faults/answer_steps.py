"""Steps around the answer to an approval: what happens between the decision and the tool."""

import asyncio
from typing import Any

from agent_framework import ContextProvider, WorkflowAgent

from frontdesk import AgentFrameworkHost
from frontdesk_testing.internals import get_components
from tests.scenarios.asking import Clerk
from tests.scenarios.cast import call
from tests.scenarios.pausing import Till
from tests.scenarios.test_approvals import Bank

KINDS = ("agent", "workflow", "workflow as agent", "function")


class Doorway(ContextProvider):
    """A provider in which a run can be held, after the decision and before any tool."""

    def __init__(self) -> None:
        super().__init__("doorway")
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def before_run(self, **_: Any) -> None:
        self.entered.set()
        await self.open.wait()

    def close(self) -> None:
        """Hold whoever comes next."""
        self.entered.clear()
        self.open.clear()


class Decided:
    """Holds runs in a host whose decision is committed, until `go_on` is set."""

    def __init__(self, host: AgentFrameworkHost) -> None:
        self.seen = asyncio.Event()
        self.go_on = asyncio.Event()
        answers: Any = get_components(host).answers
        plain = answers.take

        async def take(*given: Any) -> Any:
            attempt = await plain(*given)
            self.seen.set()
            await self.go_on.wait()
            return attempt

        answers.take = take


class Payer:
    """A target of any kind that asks before it pays 5, and what it has paid."""

    def __init__(self, kind: str) -> None:
        asks, done = [call("pay", amount=5)], ["done"]
        if kind == "agent":
            self._bank = Bank()
            self.target: Any = self._bank.agent(asks, done, done, done)
        elif kind == "function":
            self._bank = Clerk("question")
            self.target = self._bank.answer
        else:
            till = self._bank = Till(asks, done, done, done)
            self.target = till if kind == "workflow" else lambda: WorkflowAgent(till())

    @property
    def paid(self) -> list[int]:
        return self._bank.paid


def yes(run: dict[str, Any], approved: bool = True, **more: Any) -> dict[str, Any]:
    """The body that answers the one question of a run."""
    (question,) = run["approvals"]
    return {"approval": {"id": question["id"], "approved": approved}, **more}


def code(response: Any) -> tuple[int, str]:
    """How a request was refused."""
    return response.status_code, response.json()["error"]["code"]
