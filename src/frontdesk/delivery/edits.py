"""Decides what becomes of a part that changes a message which was sent before. Pure."""

from frontdesk.data.delivery import Attempt, Delivery
from frontdesk.errors import PushError, PushNotEditableError, PushNotModifiedError

NOTHING_TO_CHANGE = "nothing to change"
"""The code in the history of a part that changes a message which is not there to be changed any more."""
NO_EDITS = "no edits"
"""The code in the history of a part that would have changed a message on a channel which can't."""
LONGEST_HISTORY = 20


def noted(row: Delivery, now: float, code: str, waited: float | None = None) -> Delivery:
    """Return a part with one more entry in its history."""
    return row.replace(history=(*row.history, Attempt(at=now, code=code, waited=waited))[-LONGEST_HISTORY:])


def before_call(row: Delivery, *, can_edit: bool, now: float) -> Delivery | None:
    """Return a part as it is to be written instead of being given to the platform; `None` if it is given to it."""
    if not row.edits or (can_edit and row.replaces is not None):
        return None
    return _without_message(row, NO_EDITS if row.replaces is not None else NOTHING_TO_CHANGE, now)


def after_error(row: Delivery, error: PushError, now: float) -> Delivery | None:
    """Return a part as it is after an error that only a change of a message can have; `None` for any other error.

    A message that has the content already is as good as changed. One that can't be changed any more is left alone: what
    has to be said is sent as a new one, and it is committed before that there is nothing to change.
    """
    if row.replaces is None:
        return None
    if isinstance(error, PushNotModifiedError):
        return _accepted(noted(row, now, error.code), now)
    if isinstance(error, PushNotEditableError):
        return _without_message(row.replace(attempts=row.attempts - 1), error.code, now)
    return None


def receipt_of(row: Delivery, receipt: str | None) -> str | None:
    """Return the receipt of a part that was accepted: that of the message that it changed, if there is no new one."""
    return row.replaces if receipt is None else receipt


def _without_message(row: Delivery, code: str, now: float) -> Delivery:
    changed = noted(row, now, code)
    if row.action == "send":
        return changed.replace(status="pending", replaces=None, due_at=now, error=None)
    return _accepted(changed, now)


def _accepted(row: Delivery, now: float) -> Delivery:
    return row.replace(status="accepted", receipt=row.replaces, error=None, ended_at=now)
