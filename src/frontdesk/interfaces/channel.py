"""The interface between channels and the host."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from frontdesk.interfaces.abilities import Abilities, channel_ability
from frontdesk.interfaces.access import Allowlist, Inherit
from frontdesk.interfaces.auth import OneAuth
from frontdesk.interfaces.chat import LiveMode, PushTerms
from frontdesk.interfaces.context import BuiltInTexts, CommandLocale, CommandScope, CommandState
from frontdesk.interfaces.context_groups import (
    ApprovalsContext,
    ConversationsContext,
    DeprecatedCalls,
    EventsContext,
    LinksContext,
    RunsContext,
    SessionsContext,
    StorageContext,
)
from frontdesk.interfaces.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.approval import ApprovalAnswer, PendingApproval
from frontdesk.models.base import FrozenStruct
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.operations import EventLimits
from frontdesk.models.reply import Reply
from frontdesk.models.request import (
    AcceptInGroup,
    CancelBy,
    ChannelRequest,
    ChannelSession,
    ConversationScope,
    OnBusy,
    SessionMode,
)
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunRecord

LifespanCallback = Callable[[], Awaitable[None]]
AllowsOrigin = Callable[[str], bool]
"""Tells whether pages of an origin may call."""
SettleAnswers = Callable[[Sequence[ApprovalAnswer], Sequence[PendingApproval]], Awaitable[Sequence[ApprovalAnswer]]]
"""Matches the answers of a request to the pending approvals of its owner; returns those that count."""


class ChannelCommandContext(Protocol):
    """The data and calls available to a command."""

    request: ChannelRequest
    caller: Caller
    session: ChannelSession | None
    """The session that the request names, or the present one where the host tracks it; `run_command` sets that."""
    state: CommandState
    """A place for small values; `run_command` sets it."""
    raw_event: Any
    event: InboxItem | None
    """The event that it came with, if it was accepted into the inbox."""

    async def reply(self, reply: Reply | str, /) -> None:
        """Reply to the command. The reply is sent once, after the command has ended.

        A command that is interrupted by a crash is run again and has sent nothing before. On a channel that does not
        accept events, the reply is sent immediately.
        """
        ...

    async def run(self, request: ChannelRequest) -> HostedRunResult[Any]: ...


CommandHandler = Callable[[ChannelCommandContext], Awaitable[None] | None]


class ChannelCommand(FrozenStruct, frozen=True):
    """A command handled by the host, such as `/new`."""

    name: str
    description: str
    handler: CommandHandler
    """A function or an async one; `await context.reply(...)` needs an async one."""
    expose_in_ui: bool = True
    control: bool = False
    """Whether it acts at once, and does not wait for the turns of its conversation; for channels that accept events."""
    scopes: tuple[CommandScope, ...] = ()
    """The places where it can be used; none means everywhere."""
    locales: Mapping[str, CommandLocale] = {}
    """Its name and description in other languages, by tags such as `de` or `pt-BR`; all of its names work."""
    metadata: Mapping[str, Any] = {}


class ChannelContribution(FrozenStruct, frozen=True, kw_only=True):
    """The routes, commands and callbacks that a channel adds to the host."""

    routes: Sequence[BaseRoute] = ()
    middleware: Sequence[Middleware] = ()
    commands: Sequence[ChannelCommand] = ()
    on_startup: Sequence[LifespanCallback] = ()
    """Opens clients of the platform; called in workers too, which receive nothing."""
    on_serving: Sequence[LifespanCallback] = ()
    """Begins to listen, for example to poll; after start-up, and only where the host is served."""
    on_shutdown: Sequence[LifespanCallback] = ()


class ChannelContext(DeprecatedCalls, ABC):
    """The API of the host for channels: the calls of the request flow, and seven groups of calls.

    Every call is made for a caller and limited to the caller's own data. Every call raises `ForbiddenError` for a
    caller without access: show its `group_message` in a group, and its message in the direct chat. It raises
    `LinkRequiredError` for a caller that has to link first: show the instructions of `links.begin`, only in the direct
    chat.
    """

    channel: str
    target: TargetInfo
    anonymous_allowed: bool
    """Whether callers without credentials are also accepted from other machines."""
    adopts_ids: bool
    """Whether an unknown id of a response or a conversation may be one that only the platform has stored."""
    allows_origin: AllowsOrigin | None
    """The check of the host's CORS middleware, if it has one. A channel may accept further origins."""
    texts: BuiltInTexts
    """The texts of the host's own commands and notices."""

    runs: RunsContext
    approvals: ApprovalsContext
    links: LinksContext
    sessions: SessionsContext
    events: EventsContext
    storage: StorageContext
    conversations: ConversationsContext

    @abstractmethod
    async def allow(self, caller: Caller) -> None:
        """Reject a caller without access before any work that precedes a run."""

    @abstractmethod
    async def run(
        self,
        request: ChannelRequest,
        caller: Caller,
        *,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
    ) -> HostedRunResult[Any]:
        """Run the target to its end.

        A request with approvals that names no session continues the session that asked. If there are approvals,
        `settle` is called after admission, for a channel whose protocol can't name the questions or carries more
        information about them.
        """

    @abstractmethod
    async def stream(
        self,
        request: ChannelRequest,
        caller: Caller,
        *,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
    ) -> HostedStreamResult[Any]:
        """Start a run and stream its updates. `settle` as in `run`."""

    @abstractmethod
    async def submit(self, request: ChannelRequest, caller: Caller, *, protocol_request: Any = None) -> RunRecord:
        """Start a run in the background."""

    @abstractmethod
    def commands(self, *, scope: CommandScope | None = None, locale: str | None = None) -> Sequence[ChannelCommand]:
        """Return the commands of this channel: all, or those offered in a scope, localized if a locale is given."""

    @abstractmethod
    def find_command(self, name: str) -> ChannelCommand | None:
        """Return the command with a name in any language."""

    @abstractmethod
    async def run_command(self, name: str, context: ChannelCommandContext) -> bool:
        """Run a command for an authorized caller. Return False if there is no command of that name.

        Where its `scopes` do not allow it, the reply explains that. `context` gets its `state`, and its `session` if
        the host tracks sessions.
        """

    @abstractmethod
    def new_id(self, prefix: str) -> str:
        """Return an unguessable id, such as `msg_0192f0c1a2b3...`."""

    @abstractmethod
    def now(self) -> float:
        """Return the current time."""


class Channel(ABC):
    """Base class of channels. A subclass sets `name` and `path` and implements `contribute`."""

    name: str
    path: str
    auth: OneAuth | None = None
    run_hook: RunHook | None = None
    response_hook: ResponseHook | None = None
    stream_transform_hook: StreamTransformHook | None = None
    session_mode: SessionMode = "auto"
    conversation_scope: ConversationScope = "per_user_per_conversation"
    accept_in_group: AcceptInGroup = "mention_only"
    cancel_by: CancelBy = "sender"
    """The turns that a person can cancel where a group shares its session: their own, or those of anyone."""
    on_busy: OnBusy = "queue"
    """Whether a new message waits for the answer to the sender's last one, or cancels it and keeps its question."""
    gather_seconds: float = 0.0
    """For how many seconds after a message more of its sender are waited for, to be answered with it in one turn."""
    album_seconds: float = 0.0
    """For how many seconds after a message of an album the others are waited for, to be answered in one turn; 0 on a
    channel that does not know albums. See `InboxItem.album_id`."""
    event_limits: EventLimits | None = None
    """The limits of what people may send, for channels that accept events; `None` is `EventLimits()`."""
    live: LiveMode = "auto"
    """Whether answers to events are shown while they are written, on a channel that can: see `StreamsReplies`."""
    allowlist: Allowlist | Inherit | None = "inherit"
    """The callers who may come in: as the host says, by a list or a rule of its own, or all whom it has verified."""
    require_link: bool = False
    """Whether an identity must be linked besides."""
    emits_verified_claims: bool = False
    """Whether its `verify` proves claims itself; an `auth` that does so need not be told of."""
    confidentiality_tier: str | None = None
    """The confidentiality of what is said here, in the operator's own words, for the host's `link_policy`."""
    link_commands: Mapping[str, str | None] = {}
    """Other names for the host's `link`, `connect`, `unlink` and `whoami`; `None` hides one."""
    callers_of: str | None = None
    """The name of another channel whose identities and inherited allowlist this one uses."""
    push_terms: PushTerms = PushTerms()
    push_is_idempotent: bool = False
    """Whether the platform drops a part that it has by the same idempotency key, so that repeating one is safe."""
    push_edits: bool = False
    """Whether its `push_part` can change and remove messages that were sent: see `PushPart.action` and `replaces`."""
    edits_may_be_late: bool = True
    """Whether the platform may apply an edit after a later one, as of a process that was killed meanwhile.

    Then the end of a live answer that another process took over is edited twice: see `LiveTerms.timeout`.
    """
    needs_seal_key: bool = False
    """Whether it keeps tokens of its platform with events; the host is refused without a `seal_key` then."""
    fetches_events: bool = False
    """Whether it asks its platform for events, which come only while a process of the host runs."""
    run_prefix: ClassVar[str] = "run"
    """The prefix of the ids of its runs."""
    session_family: ClassVar[Literal["caller_supplied", "host_tracked"]] = "caller_supplied"
    announces_sessions: ClassVar[bool] = True
    """Whether the id of a new session is sent before its first turn ends; it is stored first then."""
    shares_path: ClassVar[bool] = False
    """Whether its routes have names of their own below its path, so that channels of other kinds can have it too."""
    client_path: ClassVar[str] = ""
    """The end of the base URL that its clients are given, below its path; `serve` and `check` print it."""
    requires_auth_when_public: ClassVar[bool] = True
    """Whether strangers can reach it over HTTP, so that it needs `auth` on a public address."""
    links_by_text: ClassVar[bool] = False
    """Whether the commands of linking are taken from the text of a request, on a channel that is no chat."""
    shares_inbox_per_person: ClassVar[bool] = False
    """Whether all identities of a person on it are shown the same messages, so that an answer goes to one of them."""
    identifies_anonymous_callers: ClassVar[bool] = False
    """Whether callers without credentials have identities of their own, such as by a cookie, and can be linked."""

    abilities: ClassVar[tuple[Abilities, ...]] = (channel_ability,)
    """The abilities whose methods are checked when the host is built."""

    @abstractmethod
    def contribute(self, context: ChannelContext) -> ChannelContribution:
        """Return the channel's contribution to the host. Called once, when the host is built."""

    def findings(self) -> list[str]:
        """Return the validation findings for the channel's own configuration, one line each."""
        return []

    def warnings(self) -> list[str]:
        """Return warnings about suboptimal settings, one line each. Shown by `frontdesk check` and at startup."""
        return []


@channel_ability
class ChannelPush(ABC):
    """A channel that can send messages proactively. See `interfaces/chat.py` for its optional abilities."""

    @abstractmethod
    async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
        """Send a result to a user. Return the platform's receipt, or raise a `PushError`."""


@channel_ability
class ChannelPushCodec(ABC):
    """A push channel whose payload needs its own JSON form."""

    @abstractmethod
    def encode_push(self, result: Any) -> Any:
        """Return the payload as JSON."""

    @abstractmethod
    def decode_push(self, payload: Any) -> Any:
        """Return the payload from its JSON form."""
