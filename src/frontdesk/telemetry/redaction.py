"""Removes secrets from log records of the host and of verbose libraries."""

import logging
from collections.abc import Iterator

from frontdesk.secret import redact, shorten

_VERBOSE = (
    "uvicorn.access",
    "uvicorn.error",
    "httpx",
    "httpcore.connection",
    "httpcore.http11",
    "httpcore.http2",
    "httpcore.proxy",
    "httpcore.socks",
    "urllib3.connectionpool",
    "websockets.client",
    "websockets.server",
)
"""Loggers that write addresses and headers at some level. Their records, and the host's own, are redacted where they
are made, so that a handler that is added later gets nothing else."""


MAX_ARGUMENT = 4 * 1024
MAX_MESSAGE = 16 * 1024
MAX_TRACEBACK = 64 * 1024
"""The largest number of characters that are logged, since callers write some of them."""
_BY_ARGUMENT = frozenset({"uvicorn.access"})
"""Loggers whose formatters want the arguments and not the message."""
_DONE = "_redacted"


class RedactionFilter(logging.Filter):
    """Passes every record, with secrets removed from message and traceback, and truncated if it is long."""

    def filter(self, record: logging.LogRecord) -> bool:
        # The logger has this filter, and so has each handler.
        if _DONE in record.__dict__:
            return True
        record.__dict__[_DONE] = True
        _clean(record)
        if record.exc_info and record.exc_text is None:
            record.exc_text = _plain.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(shorten(record.exc_text, MAX_TRACEBACK))
        if record.stack_info:
            record.stack_info = redact(shorten(record.stack_info, MAX_TRACEBACK))
        return True


def _clean(record: logging.LogRecord) -> None:
    if isinstance(record.args, tuple) and record.name in _BY_ARGUMENT:
        record.args = tuple(
            _shorten_redacted(value, MAX_ARGUMENT) if isinstance(value, str) else value for value in record.args
        )
        return
    whole = True
    try:
        text = record.getMessage()
    except (TypeError, ValueError, LookupError, AttributeError):
        # A message that can't be formatted would be printed in its parts, by the handler that fails to.
        text, whole = f"{record.msg!r} {record.args!r}", False
    shown = _shorten_redacted(text, MAX_MESSAGE)
    if shown != text or not whole:
        record.msg, record.args = shown, ()


def _shorten_redacted(text: str, most: int) -> str:
    return redact(shorten(text, most))


_plain = logging.Formatter()
_filter = RedactionFilter()


def install() -> None:
    """Redact the output of all existing handlers, and the output of the verbose loggers to any other."""
    for handler in _handlers():
        handler.addFilter(_filter)
    for name in (*_VERBOSE, *(logger for logger in _names() if logger.startswith("frontdesk."))):
        logging.getLogger(name).addFilter(_filter)


def _names() -> list[str]:
    return list(logging.root.manager.loggerDict)


def _handlers() -> Iterator[logging.Handler]:
    for logger in (logging.getLogger(), *map(logging.getLogger, _names())):
        yield from logger.handlers
    if logging.lastResort is not None:
        yield logging.lastResort
