"""Work that was scheduled and is written down until it has ended."""

from collections.abc import Mapping
from typing import Any, Literal

from frontdesk.data.noun import Noun

TaskStatus = Literal["pending", "running", "succeeded", "failed", "cancelled"]


class TaskRecord(Noun, frozen=True, kw_only=True):
    """A task, how far it is, and who works on it."""

    task_id: str
    name: str
    payload: Mapping[str, Any]
    due_at: float
    status: TaskStatus = "pending"
    attempts: int = 0
    """How often it was taken up, the present time included; a process that died while it worked on it counts."""
    holder: str = ""
    """The process that works on it; nobody, while it waits."""
    fence: int = 0
    """How often it was taken up in all; whoever took it up last has the say."""
    error: str | None = None
    """What went wrong when it was last tried."""
