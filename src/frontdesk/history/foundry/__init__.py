"""The history of a hosted agent in Foundry's store of responses."""

from frontdesk.history.foundry.provider import FoundryHostedAgentHistoryProvider
from frontdesk.history.foundry.storage import ResponseStorage

__all__ = ["FoundryHostedAgentHistoryProvider", "ResponseStorage"]
