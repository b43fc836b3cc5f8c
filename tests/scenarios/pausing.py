"""Workflows that ask, wait, and go on."""

from dataclasses import dataclass
from typing import Any

from agent_framework import (
    AgentExecutor,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)

from frontdesk import register_dataclass
from frontdesk.models.request import ChannelRequest
from tests.scenarios.cast import build_scripted, call


@dataclass
class Offer:
    """What a guest is asked."""

    room: str
    price: int


@dataclass
class Choice:
    """What a guest may answer."""

    accepted: bool
    nights: int = 1


register_dataclass(Offer, "offer-of-the-inn")
register_dataclass(Choice, "choice-at-the-inn")


class Clerk(Executor):
    """Offers a room, waits for the guest's word, and remembers every guest that it has served."""

    def __init__(self, ledger: list[str]) -> None:
        super().__init__("clerk")
        self.ledger = ledger
        self.served: list[str] = []

    @handler
    async def serve(self, guest: str, context: WorkflowContext[str, str]) -> None:
        if guest.startswith("who"):
            await context.yield_output(f"served {', '.join(self.served) or 'nobody'}")
            return
        self.served.append(guest)
        await context.yield_output(f"welcome {guest}")
        await context.request_info(Offer("attic", 90), Choice)
        if guest.startswith("two"):
            await context.request_info({"question": "breakfast?"}, str)

    @response_handler
    async def chosen(self, offer: Offer, choice: Choice, context: WorkflowContext[str, str]) -> None:
        self.ledger.append(f"{offer.room} {choice.nights}")
        taken = f"{self.served[-1]} takes the {offer.room} for {choice.nights}"
        await context.yield_output(taken if choice.accepted else "pity")
        await context.send_message(f"{choice.nights} nights")

    @response_handler
    async def fed(self, asked: dict, answer: str, context: WorkflowContext[str, str]) -> None:
        self.ledger.append(answer)
        await context.yield_output(f"breakfast: {answer}")

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"served": self.served}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.served = list(state["served"])


class Porter(Executor):
    """Carries what the clerk sends, unless the lift is out of order."""

    def __init__(self, lift: list[str]) -> None:
        super().__init__("porter")
        self.lift = lift

    @handler
    async def carry(self, order: str, context: WorkflowContext[str, str]) -> None:
        if "broken" in self.lift:
            raise RuntimeError("the lift is out of order")
        self.lift.append(order)
        await context.yield_output(f"bags for {order}")


class Inn:
    """A workflow with a clerk and a porter, and what has really been done in it."""

    def __init__(self) -> None:
        self.ledger: list[str] = []
        self.lift: list[str] = []

    def __call__(self) -> Workflow:
        clerk, porter = Clerk(self.ledger), Porter(self.lift)
        return WorkflowBuilder(name="inn", start_executor=clerk, output_from="all").add_edge(clerk, porter).build()


class Till:
    """A workflow with an agent in it that wants to be asked before it pays."""

    def __init__(self, *turns: Any, more: Any = ()) -> None:
        self.paid: list[int] = []
        self._turns = turns or ([call("pay", amount=5)], ["done"])
        self._more = more

    def __call__(self) -> Workflow:
        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pays."""
            self.paid.append(amount)
            return f"paid {amount}"

        if not hasattr(self, "agent"):
            self.agent = build_scripted(list(self._turns), tools=[pay, *self._more])
        executor = AgentExecutor(self.agent, id="cashier")
        return WorkflowBuilder(name="till", start_executor=executor, output_from=[executor]).build()


class Sum(Executor):
    """Adds numbers, and says nothing that a history keeps."""

    def __init__(self) -> None:
        super().__init__("sum")
        self.total = 0

    @handler
    async def add(self, number: int, context: WorkflowContext[str, dict[str, int]]) -> None:
        self.total += number
        await context.yield_output({"sum": self.total})

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"total": self.total}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.total = state["total"]


def counter() -> Workflow:
    """A workflow that takes a number."""
    adder = Sum()
    return WorkflowBuilder(name="counter", start_executor=adder, output_from=[adder]).build()


def count_input(request: ChannelRequest, **_: Any) -> ChannelRequest:
    """The hook that makes a number of what was said."""
    return request.replace(input=int(request.input))
