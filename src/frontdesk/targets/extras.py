"""Parts of a request that only some targets take. Pure."""

from agent_framework import Message

from frontdesk.abc.target import TargetTurn
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.framework.client_outputs import returned

OWN_HISTORY = (
    "target: the agent has a history provider of its own; what that keeps is not committed with the rest of a turn, "
    "so a crash can leave one without the other"
)
"""The warning about an agent whose history is not the host's."""


def refuse_extras(request: ChannelRequest, kind: str) -> None:
    """Refuse options and tools for a target that does not take them."""
    if request.options:
        name = next(iter(request.options))
        raise InvalidRequestError(f"This {kind} does not take {name!r}.", param=name)
    if request.client_tools:
        raise InvalidRequestError(f"This {kind} does not take tools of the client's.", param="tools")


def function_results(turn: TargetTurn) -> list[Message]:
    """Return the results of the client's own functions, for a target that keeps no checkpoints."""
    request, record = turn.admitted.request, turn.record
    if request.checkpoint_id is not None:
        raise InvalidRequestError("This target keeps no checkpoints.", param="checkpoint_id")
    pending = () if record is None else record.client_calls
    return returned(pending, request.client_outputs) if pending or request.client_outputs else []
