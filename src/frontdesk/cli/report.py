"""A summary of a host, for `serve` and `check`."""

from frontdesk.abc.channel import Channel
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host import AgentFrameworkHost
from frontdesk.kit.chat.channel import ChatChannel


def describe(host: AgentFrameworkHost, base: str = "") -> list[str]:
    """Return a line for each channel: its path, or its URL if a base is given, and who has access."""
    places = [_place(channel, base) for channel in host.channels]
    names = max(len(channel.name) for channel in host.channels)
    width = max(map(len, places))
    return [
        f"  {channel.name:{names}}  {place:{width}}  {_access(host, channel)}".rstrip()
        for channel, place in zip(host.channels, places, strict=True)
    ]


def _place(channel: Channel, base: str) -> str:
    if webhook := _webhook(channel):
        return base + channel.path + webhook
    if not channel.takes_http:
        return "(no path)"
    more = "" if channel.path.endswith(channel.client_path) else channel.client_path
    return base + (channel.path + more or "/")


def _access(host: AgentFrameworkHost, channel: Channel) -> str:
    if _webhook(channel):
        return "its platform sends events there"
    if not channel.takes_http:
        return ""
    if channel.auth is not None:
        return f"auth: {channel.auth.name}"
    try:
        # Raises if the host may not be served to everyone.
        host.check_bind("*")
    except ChannelConfigurationError:
        return "no auth: it answers this machine only"
    return "no auth: it answers anyone"


def _webhook(channel: Channel) -> str | None:
    """Return the path below the channel's own to which the platform sends events, if it does."""
    if isinstance(channel, ChatChannel) and channel.chat_config.transport == "webhook":
        return channel.webhook_path
    return None
