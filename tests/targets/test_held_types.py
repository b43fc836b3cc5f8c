"""The types of a workflow are read back from its checkpoints without a word from the operator."""

import warnings
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Never

import pytest
from agent_framework import (
    Executor,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
    workflow,
)
from pydantic import BaseModel

from frontdesk.models.session import CheckpointRef
from frontdesk.targets.blueprint import register_held_types
from frontdesk.targets.checkpoints import Checkpoints


class Colour(Enum):
    RED = "red"


@dataclass
class Inner:
    colour: Colour = Colour.RED


@dataclass
class Taken:
    inner: Inner = field(default_factory=Inner)


@dataclass
class Sent:
    number: int = 1


@dataclass
class Asked:
    number: int = 1


class Answered(BaseModel):
    number: int = 1


@dataclass
class Given:
    number: int = 1


@dataclass
class Nested:
    number: int = 1


@dataclass
class OfTheFunction:
    number: int = 1


@dataclass
class Hidden:
    """What no annotation tells of."""


class Clerk(Executor):
    @handler
    async def take(self, taken: Taken, context: WorkflowContext[Sent | None, list[Given]]) -> None: ...

    @response_handler
    async def hear(self, asked: Asked, answered: Answered, context: WorkflowContext[Never, str]) -> None: ...


class Child(Executor):
    @handler
    async def take(self, sent: Sent, context: WorkflowContext[Never, Nested]) -> None: ...


def _inn() -> Any:
    child = WorkflowBuilder(name="child", start_executor=Child("child")).build()
    clerk, inner = Clerk("clerk"), WorkflowExecutor(child, id="inner")
    return WorkflowBuilder(name="inn", start_executor=clerk).add_edge(clerk, inner).build()


async def _keep(value: Any, root: Path) -> Any:
    checkpoints = Checkpoints.under(root)
    point = WorkflowCheckpoint(workflow_name="inn", graph_signature_hash="g", state={"value": value})
    await checkpoints.open("s", lambda *_: None).save(point)
    found = await checkpoints.find(CheckpointRef(session_id="s", checkpoint_id=point.checkpoint_id))
    return None if found is None else found.state["value"]


@pytest.mark.parametrize(
    "value", [Taken(), Sent(), Given(), Asked(), Answered(), Nested(), {"type": Answered}], ids=lambda one: str(one)
)
async def test_what_the_annotations_name_is_known(value: Any, tmp_path: Path) -> None:
    register_held_types(_inn())
    assert await _keep(value, tmp_path) == value


async def test_a_function_is_looked_into_as_well(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @workflow(name="form")
        async def form(text: OfTheFunction, ctx: Any) -> str:
            return ""

        register_held_types(form.build())
    assert await _keep(OfTheFunction(), tmp_path) == OfTheFunction()


async def test_any_other_type_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    register_held_types(_inn())
    with pytest.raises(Exception, match="Hidden"):
        await _keep(Hidden(), tmp_path)
