"""The chat that the scenarios of the design call Telegram: the message channel, which polls a platform."""

from typing import Any

from frontdesk.testing.messages import MessageChannel, MessagePlatform


def polling_chat(platform: MessagePlatform, **settings: Any) -> MessageChannel:
    """Make the channel; other settings are its own."""
    return MessageChannel(
        name="telegram",
        path="/telegram",
        platform_url=platform.url,
        token=platform.token,
        intake="polling",
        poll_seconds=1.0,
        **settings,
    )
