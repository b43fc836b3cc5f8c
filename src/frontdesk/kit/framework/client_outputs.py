"""Results of a client's own functions: only a call that was handed out takes one, and each takes one. Pure."""

from collections.abc import Collection, Sequence
from typing import Any, TypeGuard

from agent_framework import Content, Message

from frontdesk.data.request import ClientOutput
from frontdesk.data.session import ClientCall
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.framework.types import is_messages


def tells_of_calls(value: Any) -> TypeGuard[Sequence[Message]]:
    """Tell whether an input is messages, with calls of functions among them."""
    return is_messages(value) and any(
        content.type == "function_call" for message in value for content in message.contents
    )


def need_new_calls(messages: Sequence[Message], history: Sequence[Message]) -> None:
    """Refuse a call in the input that could pass for one that the session has made."""
    taken = _call_ids(messages) & _call_ids(history)
    if taken:
        raise InvalidRequestError(f"The session has a call {min(taken)} of its own.", param="input")


def _call_ids(messages: Sequence[Message]) -> set[str]:
    return {
        str(content.call_id) for message in messages for content in message.contents if content.type == "function_call"
    }


def returned(pending: Sequence[ClientCall], outputs: Sequence[ClientOutput]) -> list[Message]:
    """Return the messages that take a turn further; every call that waits must be answered, and no other."""
    return answered({call.call_id for call in pending}, outputs)


def answered(waiting: Collection[str], outputs: Sequence[ClientOutput]) -> list[Message]:
    """Return the same for calls of which only the ids are known."""
    left = taken(waiting, outputs)
    if left:
        raise InvalidRequestError(f"No tool output found for function call {min(left)}.", param="input")
    return as_results(outputs)


def taken(waiting: Collection[str], outputs: Sequence[ClientOutput]) -> set[str]:
    """Return the calls that still wait when the outputs are taken; one that no call waits for is refused."""
    left = set(waiting)
    for output in outputs:
        if output.call_id not in left:
            raise InvalidRequestError(f"No tool call waits for an output with call_id {output.call_id}.", param="input")
        left.remove(output.call_id)
    return left


def as_results(outputs: Sequence[ClientOutput]) -> list[Message]:
    """Return the outputs as a message."""
    results = [Content.from_function_result(output.call_id, result=output.output) for output in outputs]
    return [Message("tool", results)] if results else []
