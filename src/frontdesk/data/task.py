"""Tasks that are scheduled, and stored until they have ended."""

from collections.abc import Mapping
from typing import Any, Literal

from frontdesk.data.noun import Noun

TaskStatus = Literal["pending", "running", "succeeded", "failed", "cancelled"]


class TaskRecord(Noun, frozen=True, kw_only=True):
    """A task, its status, and the process that works on it."""

    task_id: str
    name: str
    payload: Mapping[str, Any]
    due_at: float
    status: TaskStatus = "pending"
    attempts: int = 0
    """The number of tries, the present one included; one that its process did not survive counts too."""
    holder: str = ""
    """The process that works on it; empty while it waits."""
    fence: int = 0
    """The number of all claims; only the last claim may write."""
    error: str | None = None
    """The error of the last try."""
