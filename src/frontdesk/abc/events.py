"""What a channel does about the events that it has accepted into the inbox, when it is their turn."""

from typing import Protocol, runtime_checkable

from frontdesk.data.delivery import InboxItem
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import RequestError


@runtime_checkable
class AnswersEvents(Protocol):
    """A channel that wants to see an event before it is answered; the answer itself is a delivery."""

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """What an event asks of the target; `None` when it asks nothing, such as a command, which is run here."""
        ...

    async def refuse(self, item: InboxItem, error: RequestError) -> None:
        """Says why there is no answer."""
        ...
