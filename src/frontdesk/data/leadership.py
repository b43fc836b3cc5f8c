"""A role of a channel that one process over all replicas holds at a time."""

from frontdesk.data.noun import Value


class Leadership(Value, frozen=True, kw_only=True):
    """A leadership that is held; whoever holds it next has a higher fence."""

    channel: str
    name: str
    holder: str
    """An id that stands for this one hold, and for no other of any process."""
    fence: int
