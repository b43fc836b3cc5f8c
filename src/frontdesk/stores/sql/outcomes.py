"""How whoever waits for the database is told what came of it."""

import asyncio
from typing import Any, TypeVar

E = TypeVar("E", bound=BaseException)


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
