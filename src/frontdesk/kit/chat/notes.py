"""Takes note of what an operator should know about a chat channel."""

from frontdesk.loggers import http as log


def pass_over(channel: str, error: Exception) -> None:
    """Log that an event is passed over, on a platform that would send it again and again, and why."""
    log.error("an event of %s is passed over: %s", channel, error)


def warn(channel: str, text: str) -> None:
    """Log what the platform has said about the bot, and does not fit the settings of the channel."""
    log.warning("%s: %s", channel, text)
