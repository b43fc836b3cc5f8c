"""The interface to the messages in which questions are shown."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.approval import PendingApproval
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity


class SettlesPlaces(Protocol):
    """Makes the deliveries that settle the messages in which a question is shown."""

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        """Return the deliveries for a question that was decided, for each place where it is shown."""
        ...

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        """Return the deliveries of what is said to an event about the question that it has decided."""
        ...

    async def rows_of_leavers(self, people: Sequence[ChannelIdentity]) -> Sequence[Delivery]:
        """Return the deliveries for people who are asked and may not answer any more once they are unlinked."""
        ...

    async def wake(self, rows: Sequence[Delivery]) -> None:
        """Send deliveries that were written."""
        ...

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        """Settle the places that came to be known while a decision was written with the deliveries for the others."""
        ...


class NoPlaces:
    """Settles nothing, where there are no channels that could."""

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        return ()

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        return ()

    async def rows_of_leavers(self, people: Sequence[ChannelIdentity]) -> Sequence[Delivery]:
        return ()

    async def wake(self, rows: Sequence[Delivery]) -> None:
        """Do nothing: there are none."""

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        """Do nothing."""
