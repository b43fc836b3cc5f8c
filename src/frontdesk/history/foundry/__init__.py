"""The history of a hosted agent in Foundry's response storage."""

from frontdesk.history.foundry.provider import FoundryHostedAgentHistoryProvider, ResponseStorage

__all__ = ["FoundryHostedAgentHistoryProvider", "ResponseStorage"]
