"""The A2A channel: other agents call this one over the Agent2Agent protocol 1.0."""

from frontdesk.channels.a2a.channel import A2AChannel
from frontdesk.channels.a2a.config import AgentExtension, AgentSkill

__all__ = ["A2AChannel", "AgentExtension", "AgentSkill"]
