"""Matches the outputs of client tools with open calls. Each call accepts one output. Pure."""

from collections.abc import Collection, Sequence
from typing import Any, TypeGuard

from agent_framework import Content, Message

from frontdesk.errors import InvalidRequestError
from frontdesk.framework.types import is_messages
from frontdesk.models.request import ClientOutput
from frontdesk.models.session import ClientCall


def tells_of_calls(value: Any) -> TypeGuard[Sequence[Message]]:
    """Return True for messages that contain function calls."""
    return is_messages(value) and any(
        content.type == "function_call" for message in value for content in message.contents
    )


def require_new_calls(messages: Sequence[Message], history: Sequence[Message]) -> None:
    """Reject a call in the input that could be mistaken for one made by the session."""
    taken = _call_ids(messages) & _call_ids(history)
    if taken:
        raise InvalidRequestError(f"The call id {min(taken)} is already used in this session.", param="input")


def _call_ids(messages: Sequence[Message]) -> set[str]:
    return {
        str(content.call_id) for message in messages for content in message.contents if content.type == "function_call"
    }


def build_returned(pending: Sequence[ClientCall], outputs: Sequence[ClientOutput]) -> list[Message]:
    """Return the messages that continue a turn. Exactly the pending calls must be answered."""
    return build_answered({call.call_id for call in pending}, outputs)


def build_answered(waiting: Collection[str], outputs: Sequence[ClientOutput]) -> list[Message]:
    """Return the outputs like `build_returned`, for calls with known ids only."""
    left = take_outputs(waiting, outputs)
    if left:
        raise InvalidRequestError(f"No tool output found for function call {min(left)}.", param="input")
    return as_results(outputs)


def take_outputs(waiting: Collection[str], outputs: Sequence[ClientOutput]) -> set[str]:
    """Return the calls that remain pending after the outputs. Rejects an output without a pending call."""
    left = set(waiting)
    for output in outputs:
        if output.call_id not in left:
            raise InvalidRequestError(f"No pending tool call has the call_id {output.call_id}.", param="input")
        left.remove(output.call_id)
    return left


def chain_of_calls(pending: Sequence[ClientCall], messages: Sequence[Message]) -> str | None:
    """Return the chain of the first pending call with a result in the messages, or None if there is none."""
    chains = {call.call_id: call.root_run_id for call in pending}
    contents = (content for message in messages for content in message.contents if content.type == "function_result")
    return next((chains[str(content.call_id)] for content in contents if str(content.call_id) in chains), None)


def in_given_order(
    resumed: Sequence[Message], said: Sequence[Message], outputs: Sequence[ClientOutput]
) -> list[Message]:
    """Return the input after the messages that resume a turn, with each output where the caller has placed it."""
    places = {output.call_id: min(output.after, len(said)) for output in outputs if output.after}
    if not places:
        return [*resumed, *said]
    first: list[Message] = []
    later: dict[int, list[Content]] = {}
    for message in resumed:
        kept: list[Content] = []
        for content in message.contents:
            place = places.get(str(content.call_id), 0) if content.type == "function_result" else 0
            (later.setdefault(place, []) if place else kept).append(content)
        if kept:
            first.append(message if len(kept) == len(message.contents) else Message(message.role, kept))
    for place, message in enumerate(said, 1):
        first.append(message)
        if place in later:
            first.append(Message("tool", later[place]))
    return first


def as_results(outputs: Sequence[ClientOutput]) -> list[Message]:
    results = [Content.from_function_result(output.call_id, result=output.output) for output in outputs]
    return [Message("tool", results)] if results else []
