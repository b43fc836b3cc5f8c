"""Tells the framework's types apart, with their type arguments left open."""

from collections.abc import AsyncGenerator
from typing import Any, TypeGuard, cast

from agent_framework import AgentResponse, Message, ResponseStream, WorkflowEvent


def is_response(value: Any) -> TypeGuard[AgentResponse[Any]]:
    """An agent's whole answer."""
    return isinstance(value, AgentResponse)


def is_event(value: Any) -> TypeGuard[WorkflowEvent[Any]]:
    """An event of a workflow."""
    return isinstance(value, WorkflowEvent)


def is_response_stream(value: Any) -> TypeGuard[ResponseStream[Any, Any]]:
    """The framework's own stream."""
    return isinstance(value, ResponseStream)


def is_generator(value: Any) -> TypeGuard[AsyncGenerator[Any, Any]]:
    """A stream that can be closed."""
    return isinstance(value, AsyncGenerator)


def is_messages(value: Any) -> TypeGuard[list[Message]]:
    """A list of messages, and not an empty one."""
    many = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(many) and all(isinstance(one, Message) for one in many)
