"""The contract between the host and a channel that has accepted events into the inbox."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from frontdesk.data.approval import ApprovalAnswer, PendingApproval
from frontdesk.data.delivery import InboxItem
from frontdesk.data.reply import Reply
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import RequestError


@runtime_checkable
class AnswersEvents(Protocol):
    """A channel that wants to see an event before it is answered; the answer itself is a delivery."""

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """Return what an event asks of the target; `None` if it asks nothing, such as a command, which is run here."""
        ...

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        """Return what to say because there is no answer; it is written in the transaction that finishes the event."""
        ...


@runtime_checkable
class RendersReplies(Protocol):
    """A channel that makes the parts of replies itself, to show buttons, or something to one person alone.

    On other push channels, a reply is shown like an answer of the target with its text and media.
    """

    def reply_parts(self, item: InboxItem, reply: Reply) -> Sequence[Any] | None:
        """Return what is pushed for a reply, in order; `None` if it can't be shown to the sender alone.

        Then it is asked for once more with `to="direct"`.
        """
        ...


@runtime_checkable
class SettlesAnswers(Protocol):
    """A channel that sees which questions an event answers, such as one whose buttons have no room for their ids."""

    async def settle_answers(
        self, item: InboxItem, answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]
    ) -> Sequence[ApprovalAnswer]:
        """Return the answers that count; `waiting` are the questions of whom the event was admitted for."""
        ...


@runtime_checkable
class ConfirmsAnswers(Protocol):
    """A channel that tells the sender of an event what their answer has decided, such as by the pop-up of a button."""

    def confirm_answer(self, item: InboxItem, approval: PendingApproval) -> Sequence[Reply]:
        """Return what to say about a question as it was decided; it is written in the transaction of the decision."""
        ...
