"""Takes secrets out of log records: the host's own, and those of the libraries that log what they send."""

import logging
from collections.abc import Iterator

from frontdesk.kit.secrets import redact

_TALKATIVE = (
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
"""Loggers that write addresses and headers, at some level. Their records, and the host's own, are cleaned where they
are made, so that a handler that is added later gets nothing else."""


class Redacting(logging.Filter):
    """Lets every record pass, without the secrets in its message and its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        _clean(record)
        if record.exc_info and record.exc_text is None:
            record.exc_text = _plain.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return True


def _clean(record: logging.LogRecord) -> None:
    # One by one at first: some formatters, such as the one of uvicorn's access log, want them as they are.
    if isinstance(record.args, tuple):
        record.args = tuple(redact(one) if isinstance(one, str) else one for one in record.args)
    try:
        said = record.getMessage()
    except (TypeError, ValueError, LookupError, AttributeError):
        # A message that can't be put together would be shown in its parts, by the handler that fails to.
        said, record.msg, record.args = "", redact(f"{record.msg!r} {record.args!r}"), ()
    cleaned = redact(said)
    if cleaned != said:
        record.msg, record.args = cleaned, ()


_plain = logging.Formatter()
_filter = Redacting()


def install() -> None:
    """Redacts what every handler there is will write, and what the talkative loggers say to any other."""
    for handler in _handlers():
        handler.addFilter(_filter)
    for name in (*_TALKATIVE, *(one for one in _names() if one.startswith("frontdesk."))):
        logging.getLogger(name).addFilter(_filter)


def _names() -> list[str]:
    return list(logging.root.manager.loggerDict)


def _handlers() -> Iterator[logging.Handler]:
    for logger in (logging.getLogger(), *map(logging.getLogger, _names())):
        yield from logger.handlers
    if logging.lastResort is not None:
        yield logging.lastResort
