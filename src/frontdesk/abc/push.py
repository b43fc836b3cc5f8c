"""The contract between the host and a channel that can speak first."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from frontdesk.abc.runner import RetryPolicy
from frontdesk.data.approval import PendingApproval, QuestionView
from frontdesk.data.delivery import DeliveryAction, DestinationKind
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Value
from frontdesk.data.reply_token import SealedToken
from frontdesk.data.result import HostedRunResult


class PushTerms(Value, frozen=True, kw_only=True):
    """The rates and the retries of a channel that is pushed. The rates hold for each process."""

    at_once: int = 16
    """The number of destinations that are served at the same time."""
    per_second: float | None = None
    """The parts that the channel takes in a second, over all destinations; no limit without one."""
    per_destination: float | None = None
    """The parts that one destination takes in a second; no limit without one."""
    per_group: float | None = None
    """The same for a group; `per_destination` counts without one."""
    timeout: float = 30.0
    """The seconds that a push may take; after that nobody knows whether it arrived."""
    retry: RetryPolicy = RetryPolicy(attempts=8)
    longest_age: float = 86_400.0
    """After how many seconds of waiting a part that could not be sent is not sent any more."""
    failures: int = 5
    """After how many failures of the platform in a row it is left alone for a while."""
    pause: float = 2.0
    """The seconds of that at first; it doubles, up to the longest delay of `retry`."""

    def findings(self) -> list[str]:
        """List what is wrong with the terms, a line each."""
        counted = {"at_once": self.at_once, "failures": self.failures, "retry.attempts": self.retry.attempts}
        wrong = [f"push_terms: {name} must be at least 1" for name, value in counted.items() if value < 1]
        for name in ("timeout", "longest_age", "pause", "per_second", "per_destination", "per_group"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                wrong.append(f"push_terms: {name} must be above 0")
        return wrong


class PushPart(Value, frozen=True, kw_only=True):
    """One part on its way, with all that a platform may want to know of it."""

    identity: ChannelIdentity
    conversation_id: str | None
    """The conversation to be answered; the person's direct chat without one."""
    reference: Mapping[str, Any] = {}
    """The platform's own reference to that conversation, or to the person: see `ChannelRequest.reference`."""
    content: Any
    """The payload that `parts` has returned for it."""
    idempotency_key: str
    """The same however often the part is sent, and no other part's."""
    part: int = 0
    parts: int = 1
    is_echo: bool = False
    kind: DestinationKind = "direct"
    attempt: int = 1
    reply_token: SealedToken | None = None
    """The token of the event that it answers; `context.open_reply_token` opens it."""
    action: DeliveryAction = "send"
    """The action: only a channel with `push_edits` is asked for anything else than to send a new message."""
    replaces: str | None = None
    """The receipt or handle of the message to change.

    The same change may be asked for again: a platform's "not modified" is a `PushNotModifiedError`, its "not found" and
    "too old to edit" are a `PushNotEditableError`.
    """


@runtime_checkable
class ShowsQuestions(Protocol):
    """A push channel that shows questions with buttons, and can settle them later."""

    def question_in(self, content: Any) -> str | None:
        """Return the id of the approval that a part asks about; `None` if it asks nothing."""
        ...

    def settled_question(self, approval: PendingApproval, by: ChannelIdentity | None) -> Any:
        """Return, as JSON, what is shown instead of a question that was decided; `by` is who did it, if it is known."""
        ...


@runtime_checkable
class AsksApprovers(ShowsQuestions, Protocol):
    """A push channel on which people are asked questions of the runs of others."""

    def approver_question(self, view: QuestionView) -> Sequence[Any]:
        """Return what is pushed to ask an approver, in order, as JSON; one part is the question (`question_in`)."""
        ...


@runtime_checkable
class PushesParts(Protocol):
    """A push channel that splits answers, and knows each part by its key."""

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        """Split a result into what is sent one after the other, before anything is sent."""
        ...

    async def push_part(self, part: PushPart) -> str | None:
        """Send one part; return the platform's receipt, or raise a `PushError`."""
        ...


@runtime_checkable
class SupportsPushLookup(Protocol):
    """A push channel whose platform can be asked what became of a part."""

    async def find_push(self, part: PushPart) -> str | None:
        """Return the receipt of a part that arrived; `None` when the platform never got it."""
        ...
