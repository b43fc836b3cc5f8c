"""People on the platforms behind Azure Bot Service: Web Chat, Direct Line, Slack, Teams and others."""

from frontdesk.activity.credentials import Certificate, ClientSecret, FederatedIdentity, ManagedIdentity
from frontdesk.channels.activity.channel import ActivityChannel

__all__ = ["ActivityChannel", "Certificate", "ClientSecret", "FederatedIdentity", "ManagedIdentity"]
