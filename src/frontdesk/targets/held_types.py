"""The types that a workflow's checkpoints may hold, found when the host is built and registered with the framework."""

import dataclasses
import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any, cast, get_args, get_type_hints

from agent_framework import Executor, register_checkpoint_type


def register_held_types(workflow: Any) -> None:
    """Register a workflow's own types, so that they can be read back from its checkpoints."""
    seen: set[type] = set()
    for annotation in _annotations(workflow):
        for kind in _types_in(annotation, seen):
            register_checkpoint_type(kind)


def _annotations(workflow: Any) -> Iterator[Any]:
    for executor in getattr(workflow, "executors", {}).values():
        yield from _of_executor(executor)
    # A workflow that is one function: the types of the function and of its steps.
    function = getattr(workflow, "__wrapped__", None)
    if inspect.isfunction(function):
        yield from _hints(function).values()
        for step in _used_by(function):
            yield from _hints(getattr(step, "__wrapped__", None)).values()


def _used_by(function: FunctionType) -> list[Any]:
    try:
        used = inspect.getclosurevars(function)
    except ValueError:
        # It uses a variable that has no value yet.
        return []
    return [*used.globals.values(), *used.nonlocals.values()]


def _of_executor(executor: Executor) -> Iterator[Any]:
    yield from [*executor.input_types, *executor.output_types, *executor.workflow_output_types]
    for name in dir(type(executor)):
        # The types of requests and answers are only in the annotations of the response handlers.
        function = getattr(inspect.getattr_static(type(executor), name, None), "__wrapped__", None)
        yield from _hints(function).values()
    inner: Any = getattr(executor, "workflow", None)
    if inner is not None:
        yield from _annotations(inner)


def _hints(function: Any) -> dict[str, Any]:
    if function is None:
        return {}
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError, SyntaxError):
        # An annotation that exists only for type checkers, or an object without any.
        return {}


def _types_in(annotation: Any, seen: set[type]) -> Iterator[type]:
    """Yield a type, those in its arguments, and those of its fields."""
    for argument in get_args(annotation):
        yield from _types_in(argument, seen)
    if not isinstance(annotation, type) or annotation in seen or annotation.__module__ == "builtins":
        return
    kind = cast("type[Any]", annotation)
    seen.add(kind)
    yield kind
    if dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields") or hasattr(kind, "__struct_fields__"):
        for hint in _hints(kind).values():
            yield from _types_in(hint, seen)
