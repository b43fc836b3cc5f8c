"""Takes note of events that can't be read, on platforms that would send them again and again."""

from frontdesk.errors import RequestError
from frontdesk.loggers import http as log


def pass_over(channel: str, error: RequestError) -> None:
    """Log that an event of a channel is passed over, and why."""
    log.error("an event of %s is passed over: %s", channel, error)
