"""Types and comparisons for the tests of the codec."""

import importlib
import pkgutil
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

from agent_framework import (
    WorkflowRunResult,
)
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

import frontdesk.models
from frontdesk.models.base import StoredRecord
from frontdesk.serialization import codec
from tests.examples import examples

quick = examples(60)

# What the framework's own copies don't have either, and what a generic alias leaves on what it makes.
IGNORED = {"raw_representation", "__orig_class__"}
MARKER = "FunctionInvocationError"


class Colour(Enum):
    RED = ("red", 1)
    BLUE = ("blue", 2)


@dataclass(frozen=True)
class Order:
    number: int
    placed: date
    colour: Colour = Colour.RED
    lines: tuple[str, ...] = ()
    total: int = field(init=False, default=0)


class Agreeable:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Invoice(BaseModel):
    model_config = ConfigDict(strict=True)

    number: int
    due: datetime
    vat_id: str = Field(default="", validation_alias="vatId", serialization_alias="vat")


class Unknown(BaseModel):
    city: str


codec.register(Colour, "colour", lambda colour: colour.value, Colour)
codec.register(Agreeable, "agreeable", lambda _: None, lambda _: Agreeable())
codec.register_dataclass(Order, "order")
codec.register_model(Invoice, "invoice")

orders = st.builds(Order, st.integers(), st.dates(), st.sampled_from(Colour), st.lists(st.text()).map(tuple))
invoices = st.builds(
    lambda number, due, vat: Invoice.model_validate({"number": number, "due": due, "vatId": vat}),
    st.integers(),
    st.datetimes(timezones=st.just(UTC)),
    st.text(),
)


def round_trip(value: Any) -> Any:
    return codec.decode(codec.encode(value))


def picture(value: Any) -> Any:
    """A value with its types, so that objects without `==`, and 1 and True, can be compared."""
    kind = type(value)
    if isinstance(value, StoredRecord):
        return kind, {name: picture(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, WorkflowRunResult):
        return kind, [picture(one) for one in value], [picture(one) for one in value.status_timeline()]
    if isinstance(value, dict):
        return kind, [(picture(key), picture(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return kind, [picture(item) for item in value]
    if isinstance(value, set | frozenset):
        return kind, {(type(item), item) for item in value}
    if kind.__module__.startswith("agent_framework") and not isinstance(value, Enum):
        state = {name: picture(item) for name, item in vars(value).items() if name not in IGNORED}
        if state.get("exception", (None,))[-1] is not None:
            state["exception"] = (str, MARKER)
        return kind, state
    return kind, "nan" if value != value else value


def assert_kept(value: Any) -> None:
    assert picture(round_trip(value)) == picture(value)


def all_nouns() -> list[type[StoredRecord]]:
    for module in pkgutil.iter_modules(frontdesk.models.__path__):
        importlib.import_module(f"frontdesk.models.{module.name}")

    def below(kind: type[StoredRecord]) -> set[type[StoredRecord]]:
        return {kind}.union(*(below(one) for one in kind.__subclasses__()))

    ours = {kind for kind in below(StoredRecord) - {StoredRecord} if kind.__module__.startswith("frontdesk.models.")}
    return sorted(ours, key=lambda kind: kind.__name__)
