"""Decides how a background run goes on whose process has ended. Pure."""

from typing import Literal

from frontdesk.data.background import BackgroundRun
from frontdesk.data.run import FINAL, RunRecord

Next = Literal["run", "resume", "fail", "cancel", "nothing"]


def after_interruption(job: BackgroundRun, record: RunRecord | None, events: int) -> Next:
    """Decide how an interrupted run goes on; `events` is the number of events that it has published."""
    if record is None or record.status in FINAL:
        return "nothing"
    if job.cancelled:
        return "cancel"
    if record.status == "queued":
        # It waited for its turn, and nothing was done for it.
        return "run"
    if job.on_interrupt == "restart" and not job.begun and not events:
        return "run"
    if job.on_interrupt == "resume" and job.checkpoint is not None and events == job.events:
        # It is not known whether what was published since the checkpoint would come again in the same words.
        return "resume"
    return "fail"
