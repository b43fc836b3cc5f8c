"""The host: builds its components and serves the channels."""

from frontdesk.host.host import AgentFrameworkHost

__all__ = ["AgentFrameworkHost"]
