"""The AG-UI channel: agents inside web applications, with shared state, frontend tools and interrupts."""

from frontdesk.channels.agui.channel import AGUIChannel

__all__ = ["AGUIChannel"]
