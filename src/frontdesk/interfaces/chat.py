"""The interfaces of channels that send messages: pushes, approvals, and live messages."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from frontdesk.interfaces.abilities import channel_ability
from frontdesk.interfaces.runner import RetryPolicy
from frontdesk.models.approval import PendingApproval, QuestionView
from frontdesk.models.base import FrozenStruct
from frontdesk.models.channel_storage import SealedToken
from frontdesk.models.delivery import DeliveryAction, DestinationKind
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.live_message import LiveFence
from frontdesk.models.operations import RateLimit, rate_findings
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord
from frontdesk.models.watcher import RunNotice


class PushTerms(FrozenStruct, frozen=True, kw_only=True):
    """The rate limits and retry policy of a push channel. The rates apply to each process."""

    at_once: int = 16
    """The number of destinations that are served at the same time."""
    per_second: float | None = None
    """The parts that the channel takes in a second, over all destinations; no limit without one."""
    per_destination: float | None = None
    """The parts that one destination takes in a second; no limit without one."""
    per_group: float | None = None
    """The same for a group; `per_destination` counts without one."""
    windows: tuple[RateLimit, ...] = ()
    """More rates of one destination, such as 60 parts in 30 seconds. All of them count; `burst` has no effect."""
    key_windows: tuple[RateLimit, ...] = ()
    """The same for all destinations with one key of a channel that is `SharesRates`, or for all of the channel."""
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
        """Return the validation findings, one line each."""
        counted = {"at_once": self.at_once, "failures": self.failures, "retry.attempts": self.retry.attempts}
        wrong = [f"push_terms: {name} must be at least 1" for name, value in counted.items() if value < 1]
        for name in ("timeout", "longest_age", "pause", "per_second", "per_destination", "per_group"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                wrong.append(f"push_terms: {name} must be above 0")
        for name, rates in (("windows", self.windows), ("key_windows", self.key_windows)):
            wrong += [f"push_terms: {finding}" for rate in rates for finding in rate_findings(name, rate)]
        return wrong


class PushPart(FrozenStruct, frozen=True, kw_only=True):
    """One part to push, with the metadata that a platform may need."""

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
    """The token of the event that it answers; `context.events.open_reply_token` opens it."""
    action: DeliveryAction = "send"
    """The action: only a channel with `push_edits` is asked for anything else than to send a new message."""
    replaces: str | None = None
    """The receipt or handle of the message to change.

    The same change may be asked for again: a platform's "not modified" is a `PushNotModifiedError`, its "not found" and
    "too old to edit" are a `PushNotEditableError`.
    """


@channel_ability
class ShowsQuestions(ABC):
    """A push channel that shows questions with buttons and can update them later."""

    @abstractmethod
    def question_in(self, content: Any) -> str | None:
        """Return the id of the approval that a part asks about, or None."""

    @abstractmethod
    def settled_question(self, approval: PendingApproval, by: ChannelIdentity | None) -> Any:
        """Return the JSON that replaces a decided question. `by` is the person who decided, if known."""


@channel_ability
class AsksApprovers(ShowsQuestions):
    """A push channel on which people can approve the runs of others."""

    @abstractmethod
    def approver_question(self, view: QuestionView) -> Sequence[Any]:
        """Return the parts that ask an approver, in order, as JSON. One of them is the question (`question_in`)."""


@channel_ability
class PushesParts(ABC):
    """A push channel that splits answers into parts with separate keys."""

    @abstractmethod
    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        """Split a result into the parts to send in order, before anything is sent.

        Called in a thread for results with more than 2,048 characters.
        """

    @abstractmethod
    async def push_part(self, part: PushPart) -> str | None:
        """Send one part. Return the platform's receipt, or raise a `PushError`."""


@channel_ability
class WatchesRuns(ABC):
    """A channel with its own format for the notifications of its watchers (`context.runs.watch`)."""

    notice_media_type: ClassVar[str] = "application/json"
    """The content type of the notifications."""

    @abstractmethod
    def render_notice(self, notice: RunNotice, run: RunRecord) -> Any:
        """Return the JSON body of a notification. The response hook of the channel was applied to the run."""


@channel_ability
class TimesPushes(ABC):
    """A push channel with parts that take less time than `PushTerms.timeout`.

    If a host is killed while it sends a part, the following parts for that destination wait until this time is over.
    """

    @abstractmethod
    def push_seconds(self, content: Any) -> float:
        """Return the timeout in seconds for pushing a part with this JSON content, at most `PushTerms.timeout`."""


@channel_ability
class SharesRates(ABC):
    """A push channel with rates that several destinations share, such as those of one tenant."""

    @abstractmethod
    def rate_key(self, identity: ChannelIdentity, reference: Mapping[str, Any]) -> str:
        """Return the key of `PushTerms.key_windows` for a destination. Pure.

        `reference` is that of the delivery. It is empty where the delivery names only the person.
        """


@channel_ability
class ChecksRecipients(ABC):
    """A push channel that can check whether an identity unknown to the host is reachable."""

    @abstractmethod
    async def has_recipient(self, identity: ChannelIdentity) -> bool:
        """Return False if the id certainly does not exist, True if it does or if the platform is unavailable."""


@channel_ability
class SupportsPushLookup(ABC):
    """A push channel whose platform can be queried for the status of a part."""

    @abstractmethod
    async def find_push(self, part: PushPart) -> str | None:
        """Return the receipt of a part that has arrived, or None if the platform never received it."""


LiveMode = Literal["auto", "always", "off"]
"""Whether answers are shown while they are written: `auto` does not where a `response_hook` could change what is shown,
`always` does there too, and `off` never does."""


class LiveTerms(FrozenStruct, frozen=True, kw_only=True):
    """The settings of a channel for showing an answer while it is written."""

    interval: float = 1.0
    """The seconds between two updates, at least."""
    longest: float = 600.0
    """For how many seconds a message is updated; after that the answer is only completed."""
    timeout: float = 10.0
    """The seconds that a call may take. After that nobody knows what becomes of it, and the message is given up."""
    silence: float | None = None
    """The seconds without news after which an open message is updated again, for platforms that end silent ones."""
    direct: bool = True
    """Whether answers are shown in direct chats."""
    group: bool = True
    """Whether they are shown in groups."""

    def findings(self) -> list[str]:
        """Return the validation findings, one line each."""
        names: tuple[str, ...] = ("interval", "longest", "timeout")
        if self.silence is not None:
            names = (*names, "silence")
        return [f"live_terms: {name} must be above 0" for name in names if not getattr(self, name) > 0]


class LivePlace(FrozenStruct, frozen=True, kw_only=True):
    """The location at which an answer is shown."""

    identity: ChannelIdentity
    conversation_id: str | None
    """The conversation to be answered; the person's direct chat without one."""
    reference: Mapping[str, Any] = {}
    """The platform's own reference to that conversation: see `ChannelRequest.reference`."""
    details: Mapping[str, Any] = {}
    """The channel's notes on the request, such as the message that is answered."""
    kind: DestinationKind = "direct"
    fence: LiveFence | None = None
    """The claim under which the answer is shown, for a channel whose messages are in the host's own store."""


ToolDetail = Literal["hidden", "names", "full"]
"""The part that a channel shows of the tools of an answer: nothing, their names, or arguments and results too."""
ToolState = Literal["running", "done", "failed", "stopped"]


class ToolUse(FrozenStruct, frozen=True, kw_only=True):
    """A tool call of an answer, with the details that a channel shows."""

    call_id: str
    name: str
    state: ToolState = "running"
    seconds: float | None = None
    """The seconds that it took, if that was seen."""
    arguments: str = ""
    """The arguments as JSON, only for a channel that shows them; a long text is cut, and ends with `…` then."""
    result: str = ""
    """The result as text, likewise."""


class Citation(FrozenStruct, frozen=True, kw_only=True):
    """A source cited by an answer."""

    title: str
    url: str = ""
    """Its address, http or https; empty for a source that has none."""


class LiveView(FrozenStruct, frozen=True, kw_only=True):
    """An answer in progress."""

    text: str
    """All of the text."""
    new_from: int = 0
    """The start of the part that was not shown before, for platforms that append; 0 if everything is new."""
    sequence: int = 0
    """The number of the view, from 0. It grows with each view, and by more if another process takes the answer over."""
    tools: tuple[ToolUse, ...] = ()
    """The tool calls so far, for a channel that is `ShowsNotes`; there may be some before there is a text."""
    citations: tuple[Citation, ...] = ()
    """The sources that are cited so far, likewise."""


@channel_ability
class StreamsReplies(ABC):
    """A channel that can show an answer while it is written.

    Calls raise a `PushError` like `push_part`. A failure does not fail the answer: the whole text is sent as a
    delivery, which replaces the live messages.
    """

    live_terms: LiveTerms

    @abstractmethod
    async def open_live(self, place: LivePlace, view: LiveView, key: str) -> str | None:
        """Send the first message of an answer. Return its handle, or None if it can't be replaced, such as a draft.

        The key is the same for every attempt of the answer.
        """

    @abstractmethod
    async def update_live(self, place: LivePlace, handles: tuple[str, ...], view: LiveView) -> tuple[str, ...]:
        """Update an answer. Return its handles, with those of additional messages at the end.

        Raise `PushStoppedError` if the person has stopped the answer: that cancels the run.

        Derive the key of an additional message from the first handle and its number.
        """


@channel_ability
class ShowsNotes(ABC):
    """A channel that shows the tool calls and sources of an answer.

    Its views contain them while the answer is written. `framework.notes` reads them from a complete result.
    """

    @property
    @abstractmethod
    def tool_detail(self) -> ToolDetail:
        """Return the level of detail for tool calls. Other details are not stored."""


@channel_ability
class SupportsLiveLookup(ABC):
    """A channel whose platform can be queried for the first message of an answer."""

    @abstractmethod
    async def find_live(self, place: LivePlace, key: str) -> str | None:
        """Return the handle of a message that has arrived, or None if the platform never received it."""


@channel_ability
class ShowsTyping(ABC):
    """A channel with a typing indicator."""

    typing_interval: float | None
    """After how many seconds the platform has to be told again; `None` tells it once."""
    typing_with_live: bool = False
    """Whether the indicator stays while a live message is written."""

    @abstractmethod
    async def show_typing(self, place: LivePlace) -> None:
        """Show the typing indicator."""

    @abstractmethod
    async def end_typing(self, place: LivePlace) -> None:
        """Remove the typing indicator, if that does not happen automatically."""
