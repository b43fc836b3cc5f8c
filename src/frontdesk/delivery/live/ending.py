"""Decides what becomes of the messages of a live answer when its run ends. Pure."""

from collections.abc import Callable, Sequence

from frontdesk.data.delivery import Delivery, DeliveryAction
from frontdesk.data.run import RunStatus
from frontdesk.delivery.edits import noted

LOST = "live answer lost"
"""The code in the history of an answer that is sent anew, because the messages that showed it were lost."""


def end_live(
    rows: Sequence[Delivery],
    blank: Delivery,
    handles: Sequence[str],
    *,
    status: RunStatus,
    lost: bool,
    new_id: Callable[[str], str],
) -> list[Delivery]:
    """Return the deliveries of a run whose answer was shown in some messages; `blank` is a delivery to where that was.

    The parts of the answer replace these messages, and what is left of them is removed. Messages that were lost may
    still be changed by a call that is under way, so that no part replaces them, and they are removed. A run that did
    not complete says nothing more in them: they are settled.
    """
    if status != "completed":
        return [*_acts(blank, handles, "settle", new_id), *rows]
    if lost:
        anew = [noted(row, row.created_at, LOST) if _is_first(row, blank) else row for row in rows]
        return [*anew, *_acts(blank, handles, "retract", new_id)]
    left = list(handles)
    replacing = [row.replace(replaces=left.pop(0)) if left and _is_answer(row, blank) else row for row in rows]
    return [*replacing, *_acts(blank, left, "retract", new_id)]


def _is_answer(row: Delivery, blank: Delivery) -> bool:
    """Tell whether a delivery is a part of the answer that goes back to where it was shown."""
    return row.destination == blank.destination and row.action == "send" and row.ended_at is None and not row.is_echo


def _is_first(row: Delivery, blank: Delivery) -> bool:
    return _is_answer(row, blank) and row.part == 0


def _acts(
    blank: Delivery, handles: Sequence[str], action: DeliveryAction, new_id: Callable[[str], str]
) -> list[Delivery]:
    """Return a delivery for each message; they are an answer of their own, so that none of them dies with the text."""
    answer_id = new_id("ans")
    return [
        blank.replace(
            delivery_id=new_id("dlv"),
            answer_id=answer_id,
            action=action,
            replaces=handle,
            part=number,
            parts=len(handles),
            payload=None,
        )
        for number, handle in enumerate(handles)
    ]
