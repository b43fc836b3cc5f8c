"""Live messages as stored."""

from typing import Literal

from frontdesk.models.base import FrozenStruct

LiveState = Literal["opening", "open", "lost", "closed"]
"""The progress of a live answer.

`opening`: the platform is being asked for its first message, which may have arrived. `open`: its messages are known.
`lost`: nobody knows which messages it has, or what still happens to them, so that none of them is changed any more.
`closed`: its run has ended, and the outbox has what is left to be done.
"""


class LiveFence(FrozenStruct, frozen=True, kw_only=True):
    """The claim under which a process shows an answer. Writes are refused once another process has it."""

    run_id: str
    channel: str
    place: str
    fence: int


class LiveMessageRecord(FrozenStruct, frozen=True, kw_only=True):
    """The platform messages that show the answer of a run while it is written."""

    run_id: str
    channel: str
    place: str
    """The destination within the channel, as that of the deliveries of the answer."""
    state: LiveState
    handles: tuple[str, ...] = ()
    """The channel's handles of its messages, in their order."""
    fence: int
    """The number of the claim of the event or the background run that is answered; only the last claim may write."""
    expires_at: float
