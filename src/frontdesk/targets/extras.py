"""What only an agent takes. Pure."""

from frontdesk.data.request import ChannelRequest
from frontdesk.errors import InvalidRequestError


def refuse_extras(request: ChannelRequest, kind: str) -> None:
    """Refuses options and tools for a target that has no use for them."""
    if request.options:
        name = next(iter(request.options))
        raise InvalidRequestError(f"This {kind} does not take {name!r}.", param=name)
    if request.client_tools:
        raise InvalidRequestError(f"This {kind} does not take tools of the client's.", param="tools")
