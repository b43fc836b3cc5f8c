"""What a channel gets that answers an event in the HTTP reply to it."""

from typing import Any

from frontdesk.abc.push import PushPart
from frontdesk.data.noun import Value
from frontdesk.data.result import HostedRunResult


class AwaitedReply(Value, frozen=True, kw_only=True):
    """What is said to an event whose sender waits on the wire."""

    parts: tuple[PushPart, ...] = ()
    """What is to be said in the event's conversation, as it would be pushed, in order.

    Empty if nothing is to be said there, or if it came too late and is pushed.
    """
    result: HostedRunResult[Any] | None = None
    """The run that was asked for, as the channel shows it; `None` if there was none, or it came too late."""
    is_late: bool = False
    """Whether the time was over before the event was done."""
