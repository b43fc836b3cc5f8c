"""Abilities of channels and stores, and the objects that a `ChannelContext` returns."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from frontdesk.errors import RequestError
from frontdesk.interfaces.abilities import channel_ability, store_ability
from frontdesk.interfaces.chat import PushPart
from frontdesk.models.approval import ApprovalAnswer, PendingApproval
from frontdesk.models.base import FrozenStruct
from frontdesk.models.channel_storage import StoredValue
from frontdesk.models.delivery import InboxItem
from frontdesk.models.live_message import LiveFence
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord


@channel_ability
class ReportsReadiness(ABC):
    """A channel that reports whether it can receive and send, for example once its platform has identified the bot."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return True if the channel is ready. Called at each `GET /readyz`, so it must not block."""


@channel_ability
class ChecksOnline(ABC):
    """A channel that can validate its settings with its platform."""

    @abstractmethod
    async def check_online(self) -> Sequence[str]:
        """Check the credentials with the platform and return the findings, one line each.

        Called on a host that was built and not started. It must leave nothing open.
        """


@store_ability
class ReportsWriteFailures(ABC):
    """A store that detects failing writes, for example because its disk is full.

    While writes fail, the host is not ready and starts no turn, because the result of its target would be lost.
    """

    @abstractmethod
    def check_writable(self) -> None:
        """Raise `StoreUnavailableError` while writes fail. Called before each turn, so it must not block."""


class ChannelStorage(Protocol):
    """Storage for small values of one channel, such as tokens. Sealed, shared by all replicas, private to the
    channel."""

    async def get(self, key: str) -> StoredValue | None:
        """Return a value with its version, or None if it is missing or expired.

        Raises `SealError` if it was sealed with a key that the host does not have.
        """
        ...

    async def set(self, key: str, value: Any, *, expires_at: float | None = None) -> str:
        """Store a value, replacing the current one. Return its version.

        Here and in the other methods, a value that is not JSON or exceeds 65,536 bytes raises `ValueError`.
        """
        ...

    async def compare_and_set(
        self,
        key: str,
        expected_version: str | None,
        value: Any,
        *,
        expires_at: float | None = None,
        fence: LiveFence | None = None,
    ) -> str | None:
        """Store a value unless it was changed since it was read. Return its version, or None if it was changed.

        With None as the version, store it only if there is no value. Of several concurrent calls on all replicas, one
        succeeds. With the `fence` of a `LivePlace`, raises `LostEventError` once another process shows that answer or
        has ended it. Both are checked in one transaction.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove a value if it exists."""
        ...


@channel_ability
class ShowsItems(ABC):
    """A channel that can render a run as conversation items in the format of the OpenAI APIs."""

    @abstractmethod
    def turn_items(self, run: RunRecord, result: Any) -> Sequence[Mapping[str, Any]]:
        """Return the items of a turn's input and answer, with unique ids."""


CommandScope = Literal["direct", "group", "admins"]
"""A place where a command is offered: direct chats, groups, or the administrators of a group."""


class CommandLocale(FrozenStruct, frozen=True, kw_only=True):
    """The name and description of a command in one language. Empty fields keep the default."""

    name: str = ""
    description: str = ""


class BuiltInTexts(Protocol):
    """The texts of the host's own commands and notices, in all languages."""

    def say(self, key: str, locale: str | None = None, /, **values: Any) -> str:
        """Return a text in a language. `pt-BR` falls back to `pt`, and then to English."""
        ...

    def described(self, key: str) -> tuple[str, dict[str, CommandLocale]]:
        """Return the description of a command, and its translations."""
        ...


class CommandState(Protocol):
    """Small values of commands for one person in one conversation, shared by all commands of a channel."""

    async def get(self, key: str) -> Any:
        """Return a value, or None if it is missing or expired."""
        ...

    async def set(self, key: str, value: Any, *, seconds: float | None = None) -> None:
        """Store a value for a time, 30 days by default. Raises `ValueError` if not JSON or above 65,536 bytes."""
        ...

    async def delete(self, key: str) -> None:
        """Remove a value if it exists."""
        ...


class AwaitedReply(FrozenStruct, frozen=True, kw_only=True):
    """The answer to an event whose sender waits for the HTTP response."""

    parts: tuple[PushPart, ...] = ()
    """The parts for the event's conversation, as they would be pushed, in order.

    Empty if nothing is to be said there, or if it came too late and is pushed.
    """
    result: HostedRunResult[Any] | None = None
    """The run that was asked for, as the channel shows it; `None` if there was none, or it came too late."""
    is_late: bool = False
    """Whether the time was over before the event was done."""


@channel_ability
class AnswersEvents(ABC):
    """A channel that processes an event before it is answered. The answer itself is a delivery."""

    @abstractmethod
    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        """Return the target request of an event. None if there is none, such as for a command, which is run here."""

    @abstractmethod
    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        """Return the replies that explain a missing answer. Written in the transaction that finishes the event."""


@channel_ability
class RendersReplies(ABC):
    """A channel that renders replies itself, to show buttons or ephemeral messages.

    On other push channels, a reply is shown like an answer of the target with its text and media.
    """

    @abstractmethod
    def reply_parts(self, item: InboxItem, reply: Reply) -> Sequence[Any] | None:
        """Return the parts of a reply, in order. None if it can't be shown to the sender alone.

        In that case the method is called again with `to="direct"`.
        """


@channel_ability
class SettlesAnswers(ABC):
    """A channel that resolves which questions an event answers, such as one whose buttons can't hold their ids."""

    @abstractmethod
    async def settle_answers(
        self, item: InboxItem, answers: Sequence[ApprovalAnswer], waiting: Sequence[PendingApproval]
    ) -> Sequence[ApprovalAnswer]:
        """Return the answers that count. `waiting` are the questions of the person the event was admitted for."""


@channel_ability
class ConfirmsAnswers(ABC):
    """A channel that confirms a decision to the sender of the answer, for example in the pop-up of a button."""

    @abstractmethod
    def confirm_answer(self, item: InboxItem, approval: PendingApproval) -> Sequence[Reply]:
        """Return the replies about a decided question. Written in the transaction of the decision."""
