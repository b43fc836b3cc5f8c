"""Removes secret headers from the logs of the HTTP client."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_quiet: ContextVar[bool] = ContextVar("frontdesk_quiet", default=False)


@contextmanager
def quiet() -> Generator[None]:
    """Suppress the client's logs of headers within the block. Other calls are logged as usual."""
    for name in ("httpcore.http11", "httpcore.proxy"):
        # A filter that is there already is not added again.
        logging.getLogger(name).addFilter(_of_others)
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def _of_others(_: logging.LogRecord) -> bool:
    return not _quiet.get()
