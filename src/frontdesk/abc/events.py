"""What a channel does about the events that it has accepted into the inbox, when it is their turn."""

from typing import Any, Protocol, runtime_checkable

from frontdesk.data.delivery import InboxItem
from frontdesk.data.request import ChannelRequest
from frontdesk.data.result import HostedRunResult
from frontdesk.errors import RequestError


@runtime_checkable
class AnswersEvents(Protocol):
    """A channel whose answers go back to the conversation from which an event came."""

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """What an event asks of the target; `None` when it asks nothing, such as a command, which is run here."""
        ...

    async def answer(self, item: InboxItem, result: HostedRunResult[Any]) -> None:
        """Sends what a turn came to."""
        ...

    async def refuse(self, item: InboxItem, error: RequestError) -> None:
        """Says why there is no answer."""
        ...
