"""The Invocations door: `POST /invocations`, the plainest way to call an agent."""

from frontdesk.channels.invocations.channel import InvocationsChannel

__all__ = ["InvocationsChannel"]
