"""Results of a client's own functions: only a call that was handed out takes one, and each takes one. Pure."""

from collections.abc import Sequence

from agent_framework import Content, Message

from frontdesk.data.request import ClientOutput
from frontdesk.data.session import ClientCall
from frontdesk.errors import InvalidRequestError


def returned(pending: Sequence[ClientCall], outputs: Sequence[ClientOutput]) -> list[Message]:
    """The messages that take a turn further; every call that waits must be answered, and no other."""
    waiting = {call.call_id for call in pending}
    for output in outputs:
        if output.call_id not in waiting:
            raise InvalidRequestError(f"No tool call waits for an output with call_id {output.call_id}.", param="input")
        waiting.remove(output.call_id)
    if waiting:
        raise InvalidRequestError(f"No tool output found for function call {min(waiting)}.", param="input")
    results = [Content.from_function_result(output.call_id, result=output.output) for output in outputs]
    return [Message("tool", results)] if results else []
