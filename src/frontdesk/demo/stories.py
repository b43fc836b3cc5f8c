"""The data and tools of the demo hotel, and the workflow of its restaurant."""

import ast
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from agent_framework import (
    Executor,
    FunctionTool,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)
from pydantic import BaseModel, Field
from starlette.routing import Mount

from frontdesk.channels.web import WebChatChannel
from frontdesk.host import AgentFrameworkHost
from frontdesk.interfaces.host import HostContribution
from frontdesk.serialization.codec import register_model

Place = Literal["reception", "breakfast", "bar", "pool", "sauna", "library"]
RoomKind = Literal["attic", "garden", "sea view"]
Number = int | float

HOURS: dict[str, str] = {
    "reception": "The reception is open day and night; after midnight, ring the brass bell twice.",
    "breakfast": "Breakfast is served from 7:00 to 10:30, on the terrace when the wind allows.",
    "bar": "The bar is open from 17:00 until the last guest has finished their story.",
    "pool": "The pool is open from 8:00 to 20:00. The ducks leave at nine.",
    "sauna": "The sauna is open from 15:00 to 21:00.",
    "library": "The library is never locked. Please bring back the ladder.",
}
PRICES: dict[str, int] = {"attic": 80, "garden": 110, "sea view": 150}

_OPERATORS: dict[type[ast.AST], Callable[[Number, Number], Number]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}


@dataclass
class Hotel:
    left: dict[str, int] = field(default_factory=lambda: {"attic": 3, "garden": 5, "sea view": 4})
    bookings: int = 0

    def book(self, room: str, nights: int) -> str:
        if self.left[room] == 0:
            return f"The {room} rooms are all taken, I am afraid."
        self.left[room] -= 1
        self.bookings += 1
        return f"Booked: {offer(room, nights)}. Your booking number is M-{self.bookings:03}."


def offer(room: str, nights: int) -> str:
    stay = "one night" if nights == 1 else f"{nights} nights"
    return f"one {room} room for {stay} at {nights * PRICES[room]} euros"


def list_tools(hotel: Hotel) -> list[FunctionTool]:
    """Return the tools of the concierge. Bookings cost money and require approval."""

    @tool(approval_mode="always_require")
    def book_room(
        room: Annotated[RoomKind, Field(description="The kind of room.")],
        nights: Annotated[int, Field(ge=1, le=30, description="How many nights.")],
    ) -> str:
        """Book a room."""
        return hotel.book(room, nights)

    return [opening_hours, calculate, book_room]


@tool(approval_mode="never_require")
def opening_hours(place: Annotated[Place, Field(description="The part of the hotel.")]) -> str:
    """Tell when a part of the hotel is open."""
    return HOURS[place]


@tool(approval_mode="never_require")
def calculate(
    expression: Annotated[str, Field(max_length=100, description="For example 3 * (110 + 12).")],
) -> str:
    """Work out a sum with + - * / and brackets."""
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        return "That divides by zero, and even we can't."
    except (SyntaxError, ValueError, OverflowError):
        return f"I can't work out {expression!r}."
    return f"{expression.strip()} = {value if isinstance(value, int) else format(value, '.12g')}"


def _value(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # pyright: ignore[reportReturnType]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError("unsupported expression")


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
    """Asks for a table in one form and confirms the reservation."""

    def __init__(self) -> None:
        super().__init__("waiter")

    @handler
    async def ask(self, said: str, context: WorkflowContext[str, str]) -> None:
        """Ask for the details of the table."""
        await context.request_info({"question": "With pleasure. Which table may it be?"}, Table)

    @response_handler
    async def lay(self, asked: dict[str, Any], table: Table, context: WorkflowContext[str, str]) -> None:
        kept = f" We keep {' and '.join(table.dishes)} for you." if table.dishes else ""
        dog = " There will be a bowl of water." if table.dog else ""
        people = "one" if table.people == 1 else str(table.people)
        await context.yield_output(
            f"Thank you, {table.guest.name}: {table.place} for {people}, {table.evening} at eight.{kept}{dog}"
        )


def build_workflow() -> Workflow:
    """Build the restaurant's workflow. Each conversation has its own instance."""
    waiter = Waiter()
    return WorkflowBuilder(name="Restaurant", start_executor=waiter, output_from=[waiter]).build()


def restaurant(state_dir: str | Path | None) -> HostContribution:
    """Return the restaurant as a contribution to the concierge's host, served below its own path."""
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
