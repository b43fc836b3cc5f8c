"""The hotel: opening hours, prices, and the rooms that are left."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal

from agent_framework import FunctionTool, tool
from pydantic import Field

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
    """The rooms that are left, and the bookings that were made."""

    left: dict[str, int] = field(default_factory=lambda: {"attic": 3, "garden": 5, "sea view": 4})
    bookings: int = 0

    def book(self, room: str, nights: int) -> str:
        """Book a room, if there is one left."""
        if self.left[room] == 0:
            return f"The {room} rooms are all taken, I am afraid."
        self.left[room] -= 1
        self.bookings += 1
        return f"Booked: {offer(room, nights)}. Your booking number is M-{self.bookings:03}."


def offer(room: str, nights: int) -> str:
    """Return a stay and its price in words."""
    stay = "one night" if nights == 1 else f"{nights} nights"
    return f"one {room} room for {stay} at {nights * PRICES[room]} euros"


def tools_of(hotel: Hotel) -> list[FunctionTool]:
    """Return the tools of the concierge; a booking costs money, so it needs an approval."""

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
    raise ValueError("this is not a sum")
