"""The interface between channels and the host."""

import warnings
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
    well_known: Sequence[BaseRoute] = ()
    """Routes below `/.well-known/` of the host, relative to it: `Route("/agent-card.json", ...)`."""
    middleware: Sequence[Middleware] = ()
    commands: Sequence[ChannelCommand] = ()
    on_startup: Sequence[LifespanCallback] = ()
    """Opens clients of the platform, also in workers."""
    on_serving: Sequence[LifespanCallback] = ()
    """Starts to receive events, only where the host is served."""
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
    shares_store: bool = False
    """Whether several processes may use the store, so that the next request may reach another process."""
    public_url: str | None = None
    """The URL of this host for others, without a slash at its end: the default of the channel's own setting."""

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
        """Return the commands of this channel. A scope selects those offered in it, and a locale translates them."""

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


_RENAMED = {
    "tells_sessions": "announces_sessions",
    "takes_http": "requires_auth_when_public",
    "one_place_per_person": "shares_inbox_per_person",
    "tells_callers_apart": "identifies_anonymous_callers",
}
"""Old names of attributes that still work. Version 0.3 removes them."""


class Channel(ABC):
    """Base class of channels. A subclass sets `name` and `path` and implements `contribute`."""

    name: str
    path: str
    # `interfaces/policies.py` documents the settings that operators choose.
    allowlist: Allowlist | Inherit | None = "inherit"
    require_link: bool = False
    confidentiality_tier: str | None = None
    run_hook: RunHook | None = None
    response_hook: ResponseHook | None = None
    stream_transform_hook: StreamTransformHook | None = None
    link_commands: Mapping[str, str | None] = {}
    conversation_scope: ConversationScope = "per_user_per_conversation"
    accept_in_group: AcceptInGroup = "mention_only"
    cancel_by: CancelBy = "sender"
    on_busy: OnBusy = "queue"
    gather_seconds: float = 0.0
    album_seconds: float = 0.0
    event_limits: EventLimits | None = None
    live: LiveMode = "auto"
    auth: OneAuth | None = None
    """Verifies the credentials of HTTP callers."""
    session_mode: SessionMode = "auto"
    """Whether a request needs a session."""
    callers_of: str | None = None
    """The channel whose identities and inherited allowlist this one uses."""
    emits_verified_claims: bool = False
    """Whether its `verify` proves claims, without an `auth`."""
    push_terms: PushTerms = PushTerms()
    """The pace of sending."""
    push_is_idempotent: bool = False
    """Whether the platform drops a part with a known idempotency key."""
    push_edits: bool = False
    """Whether `push_part` can change and remove messages. See `PushPart.action` and `replaces`."""
    edits_may_be_late: bool = True
    """Whether the platform may apply edits in another order.

    If so, the end of a live answer that another process took over is edited twice. See `LiveTerms.timeout`.
    """
    needs_seal_key: bool = False
    """Whether it stores tokens of its platform, which requires a `seal_key`."""
    fetches_events: bool = False
    """Whether it polls its platform, which requires a running process."""
    run_prefix: ClassVar[str] = "run"
    """The prefix of its run ids."""
    session_family: ClassVar[Literal["caller_supplied", "host_tracked"]] = "caller_supplied"
    """Who names sessions: its callers or the host."""
    announces_sessions: ClassVar[bool] = True
    """Whether callers receive the id of a new session before its first turn ends."""
    shares_path: ClassVar[bool] = False
    """Whether channels of other kinds can have the same path."""
    client_path: ClassVar[str] = ""
    """The end of the base URL for clients, below `path`."""
    requires_auth_when_public: ClassVar[bool] = True
    """Whether it needs `auth` on a public address."""
    links_by_text: ClassVar[bool] = False
    """Whether texts of requests can be link commands."""
    shares_inbox_per_person: ClassVar[bool] = False
    """Whether all identities of a person see the same messages, so that one of them receives an answer."""
    identifies_anonymous_callers: ClassVar[bool] = False
    """Whether callers without credentials have linkable identities, for example by a cookie."""

    abilities: ClassVar[tuple[Abilities, ...]] = (channel_ability,)
    """The abilities whose methods are checked when the host is built."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for old, new in _RENAMED.items():
            if old in vars(cls):
                warnings.warn(f"{cls.__name__}.{old} is deprecated. Set {new}.", DeprecationWarning, stacklevel=2)
                setattr(cls, new, vars(cls)[old])

    def apply_settings(self, config: object) -> None:
        """Set the attributes of the channel to the fields of a config that have the same names."""
        for name in Channel.__annotations__:
            if hasattr(config, name):
                setattr(self, name, getattr(config, name))

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
