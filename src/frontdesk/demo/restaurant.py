"""The restaurant of the hotel: a workflow that asks with a form, on a host of its own beside the concierge's."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler
from pydantic import BaseModel, Field
from starlette.routing import Mount

from frontdesk.abc.host import HostContribution
from frontdesk.channels.web import WebChatChannel
from frontdesk.data.codec import register_model
from frontdesk.host import AgentFrameworkHost

PATH = "/restaurant"
GREETING = "The Spoon and Anchor. Shall we lay a table?"
PROMPTS = ("A table, please",)


class Guest(BaseModel):
    """The guest who comes."""

    name: str = Field(min_length=1, max_length=60)
    email: str = Field(default="", title="E-mail", max_length=120, json_schema_extra={"format": "email"})


class Table(BaseModel):
    """A table, as a guest wants it."""

    guest: Guest
    people: int = Field(ge=1, le=12, description="One to twelve.")
    evening: Literal["tonight", "tomorrow", "on Sunday"]
    place: Literal["the terrace", "the window", "by the fire"] = "the window"
    dishes: list[Literal["fish soup", "oysters", "marmalade cake"]] = Field(
        default=[], description="To be kept for you."
    )
    dog: bool = Field(default=False, title="A dog comes too")


register_model(Table, "table-of-the-marmalade")


class Waiter(Executor):
    """Asks for a table in one form, and says what was written down."""

    def __init__(self) -> None:
        super().__init__("waiter")

    @handler
    async def ask(self, said: str, context: WorkflowContext[str, str]) -> None:
        """Ask which table it shall be."""
        await context.request_info({"question": "With pleasure. Which table may it be?"}, Table)

    @response_handler
    async def lay(self, asked: dict[str, Any], table: Table, context: WorkflowContext[str, str]) -> None:
        """Say which table is laid."""
        kept = f" We keep {' and '.join(table.dishes)} for you." if table.dishes else ""
        dog = " There will be a bowl of water." if table.dog else ""
        people = "one" if table.people == 1 else str(table.people)
        await context.yield_output(
            f"Thank you, {table.guest.name}: {table.place} for {people}, {table.evening} at eight.{kept}{dog}"
        )


def build_workflow() -> Workflow:
    """Build the workflow of the restaurant; each conversation has one of its own."""
    waiter = Waiter()
    return WorkflowBuilder(name="Restaurant", start_executor=waiter, output_from=[waiter]).build()


def restaurant(state_dir: str | Path | None) -> HostContribution:
    """Return the restaurant as a part of the concierge's host: its page is below a path of its own."""
    page = WebChatChannel(title="The Spoon and Anchor", greeting=GREETING, prompts=PROMPTS)
    state = None if state_dir is None else Path(state_dir) / "restaurant"
    host = AgentFrameworkHost(build_workflow, channels=[page], state_dir=state)
    life = AsyncExitStack()

    async def open_doors() -> None:
        await life.enter_async_context(host.lifespan())

    return HostContribution(
        name="restaurant",
        path=PATH,
        routes=[Mount("/", app=host.app)],
        on_startup=[open_doors],
        on_shutdown=[life.aclose],
    )
