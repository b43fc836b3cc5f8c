"""Checks of how a chat channel treats messages that come in while it is busy."""

from typing import Any

from frontdesk.abc.channel import Channel
from frontdesk.abc.live import ShowsTyping, StreamsReplies
from frontdesk.data.limits import EventLimits


def chat_findings(channel: Channel) -> list[str]:
    """List settings of a channel that are wrong or have no effect, a line each."""
    wrong: list[str] = []
    if channel.cancel_by not in ("sender", "anyone"):
        wrong.append(f"cancel_by must be 'sender' or 'anyone', not {channel.cancel_by!r}")
    elif channel.cancel_by == "anyone" and channel.conversation_scope != "per_conversation":
        wrong.append("cancel_by='anyone' has no effect without conversation_scope='per_conversation'")
    if channel.on_busy not in ("queue", "interrupt"):
        wrong.append(f"on_busy must be 'queue' or 'interrupt', not {channel.on_busy!r}")
    elif channel.on_busy == "interrupt" and channel.session_family != "host_tracked":
        wrong.append("on_busy='interrupt' has no effect: only message channels accept events")
    for name, seconds in (("gather_seconds", channel.gather_seconds), ("album_seconds", channel.album_seconds)):
        if seconds < 0:
            wrong.append(f"{name} must not be negative, and is {seconds!r}")
        elif seconds and channel.session_family != "host_tracked":
            wrong.append(f"{name} has no effect: only message channels accept events")
    limits: Any = channel.event_limits
    if limits is not None and not isinstance(limits, EventLimits):
        wrong.append(f"event_limits: {limits!r} is not EventLimits(...)")
    elif limits is not None:
        wrong += [f"event_limits: {finding}" for finding in limits.findings()]
        if channel.session_family != "host_tracked":
            wrong.append("event_limits has no effect: only message channels accept events")
    if channel.live not in ("auto", "always", "off"):
        wrong.append(f"live must be 'auto', 'always' or 'off', not {channel.live!r}")
    elif channel.live == "always" and not isinstance(channel, StreamsReplies):
        wrong.append("live='always' has no effect: the channel can't show an answer while it is written")
    if isinstance(channel, StreamsReplies):
        wrong += channel.live_terms.findings()
    if isinstance(channel, ShowsTyping) and channel.typing_interval is not None and not channel.typing_interval > 0:
        wrong.append(f"typing_interval must be above 0, and is {channel.typing_interval!r}")
    return wrong
