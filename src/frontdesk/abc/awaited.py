"""The reply of a channel that answers an event in the HTTP response to it."""

from typing import Any

from frontdesk.abc.push import PushPart
from frontdesk.data.noun import Value
from frontdesk.data.result import HostedRunResult


class AwaitedReply(Value, frozen=True, kw_only=True):
    """The answer to an event whose sender waits on the wire."""

    parts: tuple[PushPart, ...] = ()
    """The parts for the event's conversation, as they would be pushed, in order.

    Empty if nothing is to be said there, or if it came too late and is pushed.
    """
    result: HostedRunResult[Any] | None = None
    """The run that was asked for, as the channel shows it; `None` if there was none, or it came too late."""
    is_late: bool = False
    """Whether the time was over before the event was done."""
