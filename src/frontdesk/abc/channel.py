"""The contract between a channel and the host."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from frontdesk.abc.allowlist import Allowlist, Inherit
from frontdesk.abc.auth import OneAuth
from frontdesk.abc.awaited import AwaitedReply
from frontdesk.abc.channel_files import ChannelFilesContext
from frontdesk.abc.channel_state import ChannelStateContext
from frontdesk.abc.commands import BuiltInTexts, CommandLocale, CommandScope, CommandState
from frontdesk.abc.conversations import ConversationsContext
from frontdesk.abc.hooks import ResponseHook, RunHook, StreamTransformHook
from frontdesk.abc.live import LiveMode
from frontdesk.abc.push import PushTerms
from frontdesk.abc.target import TargetInfo
from frontdesk.data.approval import ApprovalAnswer, Decision, PendingApproval, WaitingPage
from frontdesk.data.delivery import Cancelled, InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.limits import EventLimits
from frontdesk.data.link import LinkChallenge, LinkRecord, LinkStatus, Whoami
from frontdesk.data.noun import Value
from frontdesk.data.reply import Reply
from frontdesk.data.request import (
    AcceptInGroup,
    CancelBy,
    ChannelRequest,
    ChannelSession,
    ConversationScope,
    OnBusy,
    SessionMode,
)
from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.data.run import RunRecord
from frontdesk.data.session import SessionSummary
from frontdesk.data.transcript import TranscriptPage

LifespanCallback = Callable[[], Awaitable[None]]
AllowsOrigin = Callable[[str], bool]
"""Tells whether pages of an origin may call."""
SettleAnswers = Callable[[Sequence[ApprovalAnswer], Sequence[PendingApproval]], Awaitable[Sequence[ApprovalAnswer]]]
"""Matches the answers of a request to the pending approvals of its owner; returns those that count."""


class ChannelCommandContext(Protocol):
    """All that a command may use and call."""

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
        """Answer the command. What it says is sent when it has ended, and once.

        A command that a crash cuts off is run again, and has said nothing until then. On a channel that accepts no
        events, the channel sends it at once.
        """
        ...

    async def run(self, request: ChannelRequest) -> HostedRunResult[Any]:
        """Run the target for the caller."""
        ...


CommandHandler = Callable[[ChannelCommandContext], Awaitable[None] | None]


class ChannelCommand(Value, frozen=True):
    """A word that the host understands itself, such as `/new`."""

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


class ChannelContribution(Value, frozen=True, kw_only=True):
    """The routes, commands and callbacks that a channel adds to the host."""

    routes: Sequence[BaseRoute] = ()
    middleware: Sequence[Middleware] = ()
    commands: Sequence[ChannelCommand] = ()
    on_startup: Sequence[LifespanCallback] = ()
    """Opens clients of the platform; called in workers too, which receive nothing."""
    on_serving: Sequence[LifespanCallback] = ()
    """Begins to listen, for example to poll; after start-up, and only where the host is served."""
    on_shutdown: Sequence[LifespanCallback] = ()


class ChannelContext(ChannelStateContext, ChannelFilesContext, Protocol):
    """All that a channel may call. Every call is made for a caller, and sees only what is theirs.

    A caller who may not come in is a `ForbiddenError` from each of them: in a group a channel says its `group_message`,
    and its message in the person's direct chat. One who has to link first is a `LinkRequiredError`: `begin_link` gives
    what to do, and that is for the direct chat alone.
    """

    channel: str
    target: TargetInfo
    anonymous_allowed: bool
    """Whether callers without credentials are let in from other machines too."""
    adopts_ids: bool
    """Whether an id that the host does not know may be one of the platform's: of a response or a conversation that
    only the platform has kept."""
    allows_origin: AllowsOrigin | None
    """The check of the host's CORS middleware, if it has one; a channel may let in other pages besides."""

    @property
    def texts(self) -> BuiltInTexts:
        """Return the sentences of the host's own commands and notices."""
        ...

    @property
    def conversations(self) -> ConversationsContext:
        """Return the calls that only a channel with conversations of the OpenAI APIs needs."""
        ...

    def new_id(self, prefix: str) -> str:
        """Make an unguessable id, such as `msg_0192f0c1a2b3...`."""
        ...

    def now(self) -> float:
        """Return the time."""
        ...

    async def allow(self, caller: Caller) -> None:
        """Refuse a caller who may not come in, before work is done for them that comes ahead of a run."""
        ...

    async def run(
        self,
        request: ChannelRequest,
        caller: Caller,
        *,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
    ) -> HostedRunResult[Any]:
        """Run the target to its end.

        A request with approvals that names no session goes on in the one that asked. `settle` is called behind the gate
        if there are approvals, for a channel whose wire can't name the questions, or says more about them.
        """
        ...

    async def stream(
        self,
        request: ChannelRequest,
        caller: Caller,
        *,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
    ) -> HostedStreamResult[Any]:
        """Start a run whose updates are read one by one; `settle` as in `run`."""
        ...

    async def submit(self, request: ChannelRequest, caller: Caller, *, protocol_request: Any = None) -> RunRecord:
        """Start a run in the background."""
        ...

    async def accept(self, item: InboxItem) -> bool:
        """Keep a platform's event, to be run in order; when it returns, the event may be acknowledged.

        Tell whether it is kept: what is beyond the channel's `event_limits` is not, and its sender is told so now and
        then.
        """
        ...

    def accept_and_wait(self, item: InboxItem, seconds: float) -> AbstractAsyncContextManager[AwaitedReply]:
        """Keep a platform's event, and wait for what is said to it, to write that into the HTTP reply to the event.

        What was said counts as sent when the block is left. If the block raises an error of its own, it is pushed at
        once; if the client is gone meanwhile, it is dealt with like a push without an answer. What comes after
        `seconds`, at most 120, is pushed. An event that the platform sends again, because it got no reply, gets the
        same parts under the same keys.
        """
        ...

    async def reply(self, item: InboxItem, reply: Reply | str, *, number: int = 0) -> None:
        """Answer an event with the channel's own words, behind all that is on its way to the same conversation.

        While the event is worked on, the reply is kept, and written in the transaction that finishes it; of an event
        that asks something of the target, before the target is asked. Later it is written at once. The same number for
        the same event is one reply, however often the event is dealt with.
        """
        ...

    async def keep_reference(self, caller: Caller, reference: Mapping[str, Any]) -> None:
        """Keep what the platform has to be told to reach the caller's direct chat, instead of what was kept before.

        For events that are no messages; a message brings it as `ChannelRequest.reference`. One that is no JSON or has
        more than 4,096 bytes is a `ValueError`.
        """
        ...

    async def get_reference(self, identity: ChannelIdentity) -> Mapping[str, Any]:
        """Return what was kept to reach somebody on this channel; empty if nothing was."""
        ...

    async def get_run(self, caller: Caller, run_id: str) -> RunRecord:
        """Return a run, its input and its result."""
        ...

    async def cancel_run(self, caller: Caller, run_id: str) -> RunRecord:
        """Ask a run to end; one that has ended stays as it is."""
        ...

    async def delete_run(self, caller: Caller, run_id: str) -> None:
        """Remove a run and its events."""
        ...

    async def follow(self, caller: Caller, run_id: str) -> HostedStreamResult[Any]:
        """Read a background stream from its first update, and then live; closing it leaves the run alone."""
        ...

    async def pending_approvals(self, caller: Caller) -> Sequence[PendingApproval]:
        """List the questions that wait for the caller, and those whose answer may come again.

        No hook is asked: where one decides who a request is for, the questions are seen by the `settle` of a run.
        """
        ...

    async def waiting_approvals(self, caller: Caller, *, after: str | None = None, limit: int = 100) -> WaitingPage:
        """List questions of others that wait for the caller's answer, oldest first, for those who can't be asked.

        `after` is that of the page before.
        """
        ...

    async def get_approval(self, caller: Caller, approval_id: str) -> PendingApproval:
        """Return a question that was asked of the caller, decided or not."""
        ...

    async def decide(
        self,
        caller: Caller,
        approval_id: str,
        approved: bool,
        *,
        digest: str | None = None,
        reason: str | None = None,
    ) -> Decision:
        """Decide a question at once, and let a run in the background go on with it, as the person who asked.

        The decision, that run and what the audit log says of it are one transaction. `digest` is that of the question
        as it was shown. A question that the channel's `run_hook` has given to another person is `not_yours`.
        """
        ...

    async def may_decide(self, caller: Caller, approval_id: str) -> bool:
        """Tell whether a caller's answer to a question counts."""
        ...

    async def vote(self, caller: Caller, approval_id: str, approved: bool) -> Decision | None:
        """Decide as `decide` does, if others than the requester decide the question; `None` for all others."""
        ...

    async def approval_request(self, caller: Caller, answers: Sequence[ApprovalAnswer]) -> ChannelRequest:
        """Make the request that answers questions and resumes what asked them; to be run or streamed.

        Nothing is looked up here. The questions must belong to whom the request is admitted for, after the hook.
        """
        ...

    async def begin_link(self, caller: Caller, *, return_to: str | None = None) -> LinkChallenge:
        """Ask the caller for a proof that links this identity to another; for the person's direct chat alone.

        `return_to` is the path of a page of the channel's, to which the browser goes back after a sign-in.
        """
        ...

    async def complete_link(self, caller: Caller, proof: str) -> LinkRecord | LinkChallenge | None:
        """Take a proof from the caller; a challenge says what is left to do, `None` that it was given up."""
        ...

    async def unlink(self, caller: Caller) -> bool:
        """Separate the caller's identity again; false if it was not linked."""
        ...

    async def whoami(self, caller: Caller) -> Whoami:
        """Tell how the host knows the caller."""
        ...

    async def link_status(self, caller: Caller) -> LinkStatus | None:
        """Return the caller's account with the question that waits for them; `None` on a host without a linker."""
        ...

    async def home_of(self, caller: Caller, *, fresh: bool = False) -> ChannelIdentity:
        """Return the identity of this channel that stands for all those of the caller's on it that are linked.

        It is the caller's own without a link; of several, the first that was linked. Unless `fresh`, what another
        process has linked may be seen a moment later.
        """
        ...

    async def reset_session(self, caller: Caller, *, conversation_id: str | None = None) -> str:
        """Start the caller's tracked session anew, and keep the old one."""
        ...

    async def list_sessions(
        self, caller: Caller, *, conversation_id: str | None = None, limit: int = 20
    ) -> Sequence[SessionSummary]:
        """List the caller's tracked sessions in a direct chat, or in a group if one is named; the last used first."""
        ...

    async def resume_session(self, caller: Caller, session_id: str, *, conversation_id: str | None = None) -> None:
        """Let the next message go on with one of those sessions; any other is a `NotFoundError`."""
        ...

    async def track_session(self, caller: Caller, key: str) -> None:
        """Let the caller's direct chats, on all channels, go on with the session that they have under a key.

        A key without a session is a `NotFoundError`. The session that they went on with stays among the past ones.
        """
        ...

    async def transcript(
        self, caller: Caller, *, key: str | None = None, before: int | None = None, limit: int = 50
    ) -> TranscriptPage:
        """Return what was said in the caller's direct chat, on whichever channel: the last turns, or those before.

        With a key, it is the session that they have under it. `before` is that of an earlier page, and `limit` a number
        of turns, 100 at most. A caller without a session gets an empty page.
        """
        ...

    async def name_session(
        self, caller: Caller, session_id: str, title: str | None, *, conversation_id: str | None = None
    ) -> None:
        """Give one of those sessions a title of 100 characters at most, or none; any other is a `NotFoundError`."""
        ...

    async def cancel_background_runs(
        self, caller: Caller, *, conversation_id: str | None = None
    ) -> Sequence[RunRecord]:
        """Cancel what runs in the background for the caller, on whichever channel it was asked; return these runs.

        If a group is named, only what the caller has asked in it. A message that is being answered is not among them:
        `cancel_turns` cancels that.
        """
        ...

    async def cancel_turns(
        self, item: InboxItem, *, rotate: bool = False, reply: Callable[[Cancelled], Reply | str] | None = None
    ) -> Cancelled:
        """Cancel the turns of an event's sender that came before it in its conversation, and finish the event.

        All of it is one transaction: turns that wait are dropped, those that are being answered end as cancelled,
        `rotate` starts the sender's tracked session anew, and what `reply` makes of the numbers is sent. Turns of
        others are cancelled only where the channel's `cancel_by` says so. If there is no turn to cancel, the session
        gives up the questions of a workflow with which it waits.
        """
        ...

    def commands(self, *, scope: CommandScope | None = None, locale: str | None = None) -> Sequence[ChannelCommand]:
        """List the commands of this channel: all, or those that are offered in a scope, named as a locale says."""
        ...

    def find_command(self, name: str) -> ChannelCommand | None:
        """Return the command of a name, in whichever language."""
        ...

    async def run_command(self, name: str, context: ChannelCommandContext) -> bool:
        """Run a command for an authorized caller; `False` when there is none of that name.

        Where its `scopes` do not allow it, the reply says so. `context` gets its `state`, and its `session` if the host
        tracks sessions.
        """
        ...


class Channel(ABC):
    """A door. A subclass sets `name` and `path` and says what it adds."""

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
    """The limit of what one person may send; for channels that accept events."""
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
    needs_seal_key: bool = False
    """Whether it keeps tokens of its platform with events; the host is refused without a `seal_key` then."""
    fetches_events: bool = False
    """Whether it asks its platform for events, which come only while a process of the host runs."""
    run_prefix: ClassVar[str] = "run"
    """The prefix of the ids of its runs."""
    session_family: ClassVar[Literal["caller_supplied", "host_tracked"]] = "caller_supplied"
    tells_sessions: ClassVar[bool] = True
    """Whether the id of a new session is sent before its first turn ends; it is stored first then."""
    shares_path: ClassVar[bool] = False
    """Whether its routes have names of their own below its path, so that channels of other kinds can have it too."""
    client_path: ClassVar[str] = ""
    """The end of the base URL that its clients are given, below its path; `serve` and `check` print it."""
    takes_http: ClassVar[bool] = True
    """Whether strangers can reach it over HTTP, so that it needs `auth` on a public address."""
    one_place_per_person: ClassVar[bool] = False
    """Whether all identities of a person on it are shown the same messages, so that an answer goes to one of them."""
    tells_callers_apart: ClassVar[bool] = False
    """Whether callers without credentials have identities of their own, such as by a cookie, and can be linked."""

    @abstractmethod
    def contribute(self, context: ChannelContext) -> ChannelContribution:
        """Return what the channel adds to the host; called once, when the host is built."""

    def findings(self) -> list[str]:
        """List what is wrong with the channel's own configuration, a line each."""
        return []

    def warnings(self) -> list[str]:
        """List what works, but not as well as it could, a line each; shown by `frontdesk check` and at the start."""
        return []


@runtime_checkable
class ChannelPush(Protocol):
    """A channel that can speak first; `abc/push.py` has what else it may be able to do."""

    async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
        """Send a result to a user; return the platform's receipt, or raise a `PushError`."""
        ...


@runtime_checkable
class ChannelPushCodec(Protocol):
    """A push channel whose payload needs its own JSON form."""

    def encode_push(self, result: Any) -> Any:
        """Return the payload as JSON."""
        ...

    def decode_push(self, payload: Any) -> Any:
        """Return the payload as it was."""
        ...
