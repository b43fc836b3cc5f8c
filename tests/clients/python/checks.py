"""Notes what a client could do, and tells it as JSON at the end. It runs where nothing of ours is installed."""

import asyncio
import json
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

URL = os.environ.get("CLIENTS_URL", "")
_DATA = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PIXEL = f"data:image/png;base64,{_DATA}"
QUESTION = "good day"
ANSWER = "You said good day after 0 others."
LATER = "You said and after 1 others."
LAMP = "The tool said: The lamp is on."
ROOM = {"number": 12, "view": "sea"}
PICTURE = "I see a picture."
FAILURE = "The agent failed while it answered."

# Clients keep their connections, which belong to the loop.
_runner = asyncio.Runner()
_found: dict[str, dict[str, str]] = {}


def check(door: str, name: str) -> Callable[[Callable[[], Any]], None]:
    """Run a function at once, async or not; what it raises is what is wrong."""

    def run(function: Callable[[], Any]) -> None:
        try:
            made = function()
            if asyncio.iscoroutine(made):
                _runner.run(made)
        except Exception as error:
            traceback.print_exc()
            _found.setdefault(door, {})[name] = f"{type(error).__name__}: {error}"[:200]
        else:
            _found.setdefault(door, {})[name] = "yes"

    return run


def same(given: Any, wanted: Any) -> None:
    """Raise unless both are the same."""
    if given != wanted:
        raise ValueError(f"{given!r} is not {wanted!r}")


@contextmanager
def fails() -> Iterator[None]:
    """Raise unless what is done raises an error that has the message of the failed run."""
    try:
        yield
    except Exception as error:
        if FAILURE not in str(error):
            raise
    else:
        raise ValueError("the failure was not shown")


def tell() -> None:
    """Print what was found."""
    print(json.dumps(_found))
