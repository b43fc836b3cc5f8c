"""How whoever waits for the database is told what came of it."""

import asyncio
from typing import Any, TypeVar

E = TypeVar("E", bound=BaseException)


class Outcome(asyncio.Future[Any]):
    """The outcome of a write. A waiter that is cancelled gets the cancellation when the outcome is known.

    The write is done in any case. A waiter that left earlier would give its session free while the turn that it wrote
    is still on its way, and the next turn would not see it.
    """

    def cancel(self, msg: Any = None) -> bool:
        """Refuse: the task is cancelled when it goes on."""
        return False


def settle(answer: "asyncio.Future[Any]", outcome: Any) -> None:
    """Gives an outcome to its waiter, if there still is one; an exception is raised there."""
    if answer.done():
        return
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def caused(error: E, cause: BaseException) -> E:
    """An error that is handed on as a value, with what led to it."""
    error.__cause__ = cause
    return error
