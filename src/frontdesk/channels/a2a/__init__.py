"""The A2A channel: other agents call this one over the Agent2Agent protocol 1.0."""

from frontdesk.channels.a2a.card import AgentExtension, AgentSkill
from frontdesk.channels.a2a.channel import A2AChannel

__all__ = ["A2AChannel", "AgentExtension", "AgentSkill"]
