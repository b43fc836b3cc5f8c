"""Tells the framework's types apart, with their type arguments left open."""

from collections.abc import AsyncGenerator
from itertools import groupby
from typing import Any, TypeGuard, cast

from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    Message,
    ResponseStream,
    WorkflowEvent,
    WorkflowRunResult,
)


def is_response(value: Any) -> TypeGuard[AgentResponse[Any]]:
    """Tell whether a value is an agent's whole answer."""
    return isinstance(value, AgentResponse)


def is_event(value: Any) -> TypeGuard[WorkflowEvent[Any]]:
    """Tell whether a value is an event of a workflow."""
    return isinstance(value, WorkflowEvent)


def is_response_stream(value: Any) -> TypeGuard[ResponseStream[Any, Any]]:
    """Tell whether a value is the framework's own stream."""
    return isinstance(value, ResponseStream)


def is_generator(value: Any) -> TypeGuard[AsyncGenerator[Any, Any]]:
    """Tell whether a value is a stream that can be closed."""
    return isinstance(value, AsyncGenerator)


def whole_outputs(result: WorkflowRunResult) -> list[Any]:
    """Return the outputs of a workflow; the updates that an agent has streamed are joined to its whole answer."""
    outputs: list[Any] = []
    events = (event for event in result if event.type == "output")
    for (streamed, _), together in groupby(events, _source):
        data: list[Any] = [event.data for event in together]
        outputs += [AgentResponse.from_updates(data)] if streamed else data
    return outputs


def _source(event: WorkflowEvent[Any]) -> tuple[bool, str | None]:
    return isinstance(event.data, AgentResponseUpdate), event.executor_id


def updates_of(result: Any) -> list[Any]:
    """Return the updates that a stream of a result would bring if it were replayed: one per message, or per event."""
    if isinstance(result, WorkflowRunResult):
        return list(cast("list[Any]", result))
    if not is_response(result):
        return []
    return [
        AgentResponseUpdate(
            contents=message.contents,
            role=message.role,
            author_name=message.author_name,
            # Messages that follow each other without ids of their own would be joined.
            message_id=f"{place}",
        )
        for place, message in enumerate(result.messages)
    ]


def is_messages(value: Any) -> TypeGuard[list[Message]]:
    """Tell whether a value is a list of messages, and not an empty one."""
    many = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(many) and all(isinstance(part, Message) for part in many)
