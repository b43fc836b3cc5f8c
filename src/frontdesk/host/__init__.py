"""The host: builds the house and opens its doors."""

from frontdesk.host.host import AgentFrameworkHost

__all__ = ["AgentFrameworkHost"]
