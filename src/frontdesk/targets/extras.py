"""Request options, tools and outputs that only some targets support. Pure."""

from agent_framework import Message

from frontdesk.errors import InvalidRequestError
from frontdesk.framework.client_outputs import build_returned
from frontdesk.interfaces.target import TargetTurn
from frontdesk.models.request import ChannelRequest

OWN_HISTORY = (
    "target: the agent has a history provider of its own; what that keeps is not committed with the rest of a turn, "
    "so a crash can leave one without the other"
)
"""The warning about an agent whose history is not the host's."""


def refuse_extras(request: ChannelRequest, kind: str) -> None:
    """Reject options and tools for a target that does not support them."""
    if request.options:
        name = next(iter(request.options))
        raise InvalidRequestError(f"This {kind} does not support {name!r}.", param=name)
    if request.client_tools:
        raise InvalidRequestError(f"This {kind} does not support client tools.", param="tools")


def function_results(turn: TargetTurn) -> list[Message]:
    request, record = turn.admitted.request, turn.record
    if request.checkpoint_id is not None:
        raise InvalidRequestError("This target does not support checkpoints.", param="checkpoint_id")
    pending = () if record is None else record.client_calls
    return build_returned(pending, request.client_outputs) if pending or request.client_outputs else []
