"""The contract between the host and a channel that has accepted events into the inbox."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from frontdesk.data.approval import ApprovalAnswer, PendingApproval
from frontdesk.data.delivery import InboxItem
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import RequestError


@runtime_checkable
class AnswersEvents(Protocol):
    """A channel that wants to see an event before it is answered; the answer itself is a delivery."""

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """Return what an event asks of the target; `None` if it asks nothing, such as a command, which is run here."""
        ...

    async def refuse(self, item: InboxItem, error: RequestError) -> None:
        """Say why there is no answer."""
        ...


@runtime_checkable
class SettlesAnswers(Protocol):
    """A channel that sees which questions an event answers, such as one whose buttons have no room for their ids."""

    async def settle_answers(
        self, item: InboxItem, answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]
    ) -> Sequence[ApprovalAnswer]:
        """Return the answers that count; `waiting` are the questions of whom the event was admitted for."""
        ...
