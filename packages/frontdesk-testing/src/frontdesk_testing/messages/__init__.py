"""A message channel and the platform behind it, for tests: the features of a chat app, and its failures.

Its parts are imported when they are first used, because the platform's process needs nothing of the channel.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk_testing.messages.channel import LookupMessageChannel as LookupMessageChannel
    from frontdesk_testing.messages.channel import MessageChannel as MessageChannel
    from frontdesk_testing.messages.channel import TypingMessageChannel as TypingMessageChannel
    from frontdesk_testing.messages.platform.driver import MessagePlatform as MessagePlatform
    from frontdesk_testing.messages.platform.driver import Person as Person
    from frontdesk_testing.messages.platform.driver import message_platform as message_platform

_HOME = {
    "LookupMessageChannel": "channel",
    "MessageChannel": "channel",
    "MessagePlatform": "platform.driver",
    "Person": "platform.driver",
    "TypingMessageChannel": "channel",
    "message_platform": "platform.driver",
}

__all__ = [
    "LookupMessageChannel",
    "MessageChannel",
    "MessagePlatform",
    "Person",
    "TypingMessageChannel",
    "message_platform",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'frontdesk_testing.messages' has no attribute {name!r}")
    value = getattr(import_module(f"frontdesk_testing.messages.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
