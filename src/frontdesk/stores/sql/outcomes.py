"""Outcomes of writes, and how they reach their waiters."""

import asyncio
from typing import Any, TypeVar

E = TypeVar("E", bound=BaseException)


class Outcome(asyncio.Future[Any]):
    """The outcome of a write. A waiter that is cancelled gets the cancellation when the outcome is known.

    The write is done in any case. A waiter that left earlier would release its session while its turn is still being
    written, and the next turn would not see it.
    """

    def cancel(self, msg: Any = None) -> bool:
        """Refuse; the task is cancelled when it resumes."""
        return False


def resolve(answer: "asyncio.Future[Any]", outcome: Any) -> None:
    """Pass an outcome to its waiter, if there still is one; an exception is raised there."""
    if answer.done():
        return
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def caused(error: E, cause: BaseException) -> E:
    """Return an error with its cause, for an error that is passed on as a value."""
    error.__cause__ = cause
    return error
