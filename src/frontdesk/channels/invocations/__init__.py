"""The Invocations channel: `POST /invocations`, the simplest API for calling an agent."""

from frontdesk.channels.invocations.channel import InvocationsChannel

__all__ = ["InvocationsChannel"]
