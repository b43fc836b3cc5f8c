"""The groups of calls of a `ChannelContext`, and the old names of these calls.

Each call is made for a caller and sees only the data of that caller. The data of others does not exist for it: a
foreign id raises the same `NotFoundError` as an unknown one. A caller who may not use the channel gets a
`ForbiddenError` from each call.
"""

import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, Self, TypeVar, overload

from frontdesk.interfaces.context import AwaitedReply, ChannelStorage
from frontdesk.interfaces.hooks import Feedback
from frontdesk.models.approval import ApprovalAnswer, Decision, PendingApproval, WaitingPage
from frontdesk.models.channel_storage import Leadership, SealedToken
from frontdesk.models.conversation import Conversation, ConversationItem, TranscriptPage
from frontdesk.models.delivery import Cancelled, InboxItem
from frontdesk.models.file import StoredFile
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.link import LinkChallenge, LinkRecord, LinkStatus, Whoami
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedStreamResult
from frontdesk.models.run import RunChain, RunPage, RunRecord, RunStatus
from frontdesk.models.session import SessionSummary
from frontdesk.models.watcher import RunWatcher


class RunsContext(Protocol):
    """The runs of the caller. The response hook of the channel applies to every result that is returned."""

    async def get(self, caller: Caller, run_id: str) -> RunRecord:
        """Return a run with its input and its result, also one from before the caller was linked."""
        ...

    async def cancel(self, caller: Caller, run_id: str) -> RunRecord:
        """Request cancellation, and end what waits for an answer to the run: approvals and workflow questions.

        A completed run that waited is recorded as cancelled. Any other finished run does not change.
        """
        ...

    async def chain(self, caller: Caller, run_id: str) -> RunChain:
        """Return the chain of a run. It has its first and its newest run, and all questions with their status."""
        ...

    async def list_chain(self, caller: Caller, run_id: str) -> Sequence[RunRecord]:
        """List the runs of a chain. At most the first 200, and the newest."""
        ...

    async def cancel_chain(self, caller: Caller, run_id: str) -> RunChain:
        """Cancel the newest run of a chain and its open questions. Return the chain afterwards."""
        ...

    async def list(
        self,
        caller: Caller,
        *,
        channel: str | None = None,
        session: str | None = None,
        session_prefix: str | None = None,
        status: RunStatus | None = None,
        since: float | None = None,
        roots_only: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> RunPage:
        """List the caller's runs of all channels: the open ones first, then those that ended last.

        `session` is a session key, and `session_prefix` the beginning of one. `since` is the time at or after which
        runs have ended. `roots_only` omits runs that continue a chain. `limit` is at most 200. A page with filters may
        have fewer runs and still have a cursor.
        """
        ...

    async def delete(self, caller: Caller, run_id: str) -> None:
        """Cancel a run and delete it with its events."""
        ...

    async def follow(self, caller: Caller, run_id: str, *, stored_events_only: bool = False) -> HostedStreamResult[Any]:
        """Return the updates of a run from the first one, then live. Closing does not cancel it.

        Only runs with `background` and `stream` store their updates. Any other run yields its output once it has ended,
        or raises a `ConflictError` with `stored_events_only`.
        """
        ...

    async def list_stored_updates(self, caller: Caller, run_id: str) -> Sequence[Any]:
        """List the stored updates of a run. They are the first ones that `follow` yields.

        Only runs with `background` and `stream` store their updates. Any other run has none.
        """
        ...

    async def follow_chain(
        self, caller: Caller, run_id: str, *, waits: bool = False
    ) -> AsyncGenerator[HostedStreamResult[Any], None]:
        """Return the streams of a run and of the runs that continue it, one after the other.

        Read each stream to its end before the next one. The last one is that of a run which nothing continues. With
        `waits`, an open question does not end the sequence.
        """
        ...

    async def watch(self, caller: Caller, run_id: str, watcher: RunWatcher, *, includes_ended: bool = False) -> str:
        """Notify a URL when a run of the chain ends or requests input. Return the id of the watcher.

        Not about a run that has ended before, except the newest one with `includes_ended`. Headers need a `seal_key`.
        A watcher expires after 30 days.
        """
        ...

    async def watchers(self, caller: Caller, run_id: str) -> Sequence[RunWatcher]:
        """List the watchers of a run's chain, oldest first, without their headers."""
        ...

    async def unwatch(self, caller: Caller, run_id: str, watcher_id: str) -> None:
        """Remove a watcher. Notifications that have not been sent are dropped."""
        ...

    async def cancel_background(self, caller: Caller, *, conversation_id: str | None = None) -> Sequence[RunRecord]:
        """Cancel the background runs of the caller on all channels and return them.

        With the id of a group, only those that the caller requested in it. A message that is being answered is not
        included: `events.cancel_turns` cancels it.
        """
        ...


class ApprovalsContext(Protocol):
    """The approvals that the caller requested or may decide."""

    async def pending(self, caller: Caller) -> Sequence[PendingApproval]:
        """List the open approvals of the caller, and those whose answer may be repeated.

        No hook is called. Where a `run_hook` changes the identity, use the `settle` argument of `run` instead.
        """
        ...

    async def waiting(self, caller: Caller, *, after: str | None = None, limit: int = 100) -> WaitingPage:
        """List the caller's own open approvals and those of others that the caller may decide.

        The oldest is first. `after` is the cursor of the previous page.
        """
        ...

    async def get(self, caller: Caller, approval_id: str) -> PendingApproval:
        """Return an approval, open or decided."""
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
        """Decide an approval and resume its run in the background, as the requester.

        The decision, the resumed run and the audit entry are one transaction. `digest` is that of the approval as it
        was shown. An approval that the `run_hook` of the channel assigned to another person returns `not_yours`.
        """
        ...

    async def may_decide(self, caller: Caller, approval_id: str) -> bool:
        """Return True if an answer of the caller counts."""
        ...

    async def vote(self, caller: Caller, approval_id: str, approved: bool) -> Decision | None:
        """Decide an approval that has approvers besides the requester. Return None for any other approval."""
        ...

    async def build_request(self, caller: Caller, answers: Sequence[ApprovalAnswer]) -> ChannelRequest:
        """Return the request that carries the answers and resumes the run, for `run` or `stream`.

        The approvals are not looked up here. They must belong to the identity that is admitted after the hook.
        """
        ...


class LinksContext(Protocol):
    """The links between the identities of one person. Callers who must link first may use these calls."""

    async def begin(self, caller: Caller, *, return_to: str | None = None) -> LinkChallenge:
        """Start linking and return the challenge. Show it to the person in a direct chat only.

        `return_to` is the path of a page of the channel to which the browser returns after a sign-in.
        """
        ...

    async def complete(self, caller: Caller, proof: str) -> LinkRecord | LinkChallenge | None:
        """Check a proof. Return the link, the next challenge, or None if the person gave up."""
        ...

    async def unlink(self, caller: Caller) -> bool:
        """Remove the caller's identity from its link. Return False if it was not linked."""
        ...

    async def whoami(self, caller: Caller) -> Whoami:
        """Return the caller's identity and the identities linked with it."""
        ...

    async def status(self, caller: Caller) -> LinkStatus | None:
        """Return the caller's account and its open linking question. Return None on a host without a linker."""
        ...

    async def home(self, caller: Caller, *, fresh: bool = False) -> ChannelIdentity:
        """Return the first linked identity of the caller on this channel, or the caller's own.

        Without `fresh`, a link made by another process may be visible only after a moment.
        """
        ...

    def principal_channel(self, channel: str) -> str:
        """Return the channel that owns the principals of a channel.

        That is the channel itself, or one that shares its auth. The result may change while the host runs, when an
        operator joins principals.
        """
        ...


class SessionsContext(Protocol):
    """The tracked sessions of the caller: of the direct chat, or of a group with its `conversation_id`."""

    async def reset(self, caller: Caller, *, conversation_id: str | None = None) -> str:
        """Start a new session, keep the old one in the list, and return the new id."""
        ...

    async def list(
        self, caller: Caller, *, conversation_id: str | None = None, limit: int = 20
    ) -> Sequence[SessionSummary]:
        """List the sessions, the last used first."""
        ...

    async def resume(self, caller: Caller, session_id: str, *, conversation_id: str | None = None) -> None:
        """Continue a listed session with the next message."""
        ...

    async def rename(
        self, caller: Caller, session_id: str, title: str | None, *, conversation_id: str | None = None
    ) -> None:
        """Set the title of a listed session, at most 100 characters. None removes it."""
        ...

    async def track(self, caller: Caller, key: str) -> None:
        """Continue the session under a key in the caller's direct chats on all channels.

        An unknown key raises a `NotFoundError`. The previous session stays in the list.
        """
        ...

    async def transcript(
        self, caller: Caller, *, key: str | None = None, before: int | None = None, limit: int = 50
    ) -> TranscriptPage:
        """Return the last turns of the caller's direct chat on all channels.

        With a key, return those of the session under it. `before` is the cursor of the previous page. `limit` is a
        number of turns, at most 100. A caller without a session gets an empty page.
        """
        ...


class EventsContext(Protocol):
    """The events of the platform: accepting and answering them, and what the platform reports about deliveries."""

    async def authorize(self, caller: Caller) -> None:
        """Check the access of a caller, for an event that is not stored.

        Raise a `ForbiddenError`, a `LinkRequiredError`, or a `TooManyRequestsError` above the channel's `event_limits`.
        """
        ...

    async def accept(self, item: InboxItem) -> bool:
        """Store an event, to be processed in order. Acknowledge it only afterwards.

        Return False if the event exceeds the channel's `event_limits`. The sender is then notified at intervals.
        """
        ...

    def accept_and_wait(self, item: InboxItem, seconds: float) -> AbstractAsyncContextManager[AwaitedReply]:
        """Store an event and wait for its answer, for the HTTP response.

        The answer counts as sent when the block is left. If the block raises, the answer is pushed at once. If the
        client has disconnected, the answer is treated as a push with unknown status. An answer that is not ready
        after `seconds`, at most 120, is pushed. A repeated event gets the same parts under the same keys.
        """
        ...

    async def reply(self, item: InboxItem, reply: Reply | str, *, number: int = 0) -> None:
        """Send a reply of the channel itself to an event, after the conversation's pending deliveries.

        While the event is processed, the reply is written in the transaction that finishes it. Before a run it is
        written before the target is called. For a finished event it is written at once. Replies with the same number
        for the same event are one reply, also across retries.
        """
        ...

    async def cancel_turns(
        self, item: InboxItem, *, rotate: bool = False, reply: Callable[[Cancelled], Reply | str] | None = None
    ) -> Cancelled:
        """Cancel the sender's earlier turns in a conversation, and finish the event.

        One transaction drops waiting turns, ends running ones as cancelled, starts a new tracked session with
        `rotate`, and stores the reply that `reply` makes of the numbers. Turns of others are cancelled only where the
        channel's `cancel_by` allows it. If there is no turn to cancel, the session abandons the open questions of its
        workflow.
        """
        ...

    async def is_finished(self, item: InboxItem) -> bool:
        """Return True if an event is finished."""
        ...

    def seal_reply_token(self, item: InboxItem, token: str, *, expires_at: float) -> InboxItem:
        """Return the event with its encrypted token.

        Every part sent back to it carries the token as `PushPart.reply_token`. For channels with `needs_seal_key`.
        A host without a `seal_key` raises a `SealError`. Never put a token into `details`, `attributes` or
        `reference`.
        """
        ...

    def open_reply_token(self, token: SealedToken | None) -> str | None:
        """Return the token of a part. Return None if there is none or it has expired."""
        ...

    async def add_feedback(
        self,
        caller: Caller,
        *,
        receipt: str,
        value: Literal["up", "down"],
        reason: str = "",
        conversation_id: str | None = None,
        at: float | None = None,
    ) -> Feedback | None:
        """Record a caller's opinion of an answer.

        The answer is named by the receipt of one of its messages. `conversation_id` is the group that shows it. Return
        None for an unknown or foreign message, and for feedback that was recorded before.
        """
        ...

    async def settle_delivery(
        self,
        *,
        receipt: str | None = None,
        key: str | None = None,
        status: Literal["delivered", "failed"],
        reason: str | None = None,
        at: float | None = None,
    ) -> bool:
        """Store a later status of a part.

        The part is named by its receipt or its idempotency key. A failure makes it a dead letter. False means that the
        channel has no such delivery or is still sending it: let the platform report again. `at` is the platform's time.
        The report with the latest time counts, in whichever order they arrive.
        """
        ...

    async def end_deliveries(
        self, place: str, *, reason: str, before: float | None = None, also: Callable[[str], bool] | None = None
    ) -> int:
        """End the waiting deliveries to a conversation or person that is closed to the bot.

        They become dead letters with the reason, a code like that of a `PushRefusedError`. Return their number.
        Deliveries queued at or after `before` and those being sent are left. `also` selects further conversations by
        name, such as the threads of a chat.
        """
        ...

    async def alias_conversation(self, old: str, new: str) -> None:
        """Rename a conversation that has moved. Events of both names share one session and queue.

        Deliveries to any of the names go to the newest. Repeating the call changes nothing. An earlier name of the
        conversation, or a second new name for the same old one, raises a `ValueError`.
        """
        ...


class StorageContext(Protocol):
    """What a channel stores: values, files and references to people, and leases between replicas."""

    def values(self, name: str, *, holds_tokens: bool = True) -> ChannelStorage:
        """Return a storage for values of this channel. Call it in `contribute`, so that warnings name the channel.

        The values are encrypted if the host has a `seal_key`. A host without one warns of a storage that holds tokens
        of other services. Values as confidential as the conversations in the host's own store need no key.
        """
        ...

    def leadership(self, name: str) -> AbstractAsyncContextManager[Leadership]:
        """Wait until this process alone runs the block, over all replicas, for a poller for example.

        Names are per channel. If the lease cannot be renewed, the block is cancelled and raises a
        `LeadershipLostError`. Call again to continue. Another process takes over when the lease of a dead one ends.
        """
        ...

    async def put_file(self, caller: Caller, data: bytes, *, media_type: str, name: str = "") -> StoredFile:
        """Store a file of the caller for all replicas, until one day after its last use. The same file is stored once.

        Large data in requests and answers is stored as a file automatically. Raise a `FileTooLargeError` for one that
        is too large, a `FilesFullError` when the caller's quota is used up, and a `VisitorFilesFullError` when that
        shared by visitors without an account is used up.
        """
        ...

    async def get_file(self, caller: Caller, file_id: str) -> tuple[StoredFile, bytes]:
        """Return a file of the caller with its bytes."""
        ...

    async def put_reference(self, caller: Caller, reference: Mapping[str, Any]) -> None:
        """Replace the reference with which the platform reaches the caller's direct chat.

        For events that are not messages. A message carries it as `ChannelRequest.reference`. A reference that is not
        JSON or has more than 4,096 bytes raises a `ValueError`. An empty one deletes it, also for a caller without
        access.
        """
        ...

    async def get_reference(self, identity: ChannelIdentity) -> Mapping[str, Any]:
        """Return the reference of a person on this channel, empty if there is none."""
        ...


class ConversationsContext(Protocol):
    """The conversations of the OpenAI APIs that belong to the caller."""

    async def save(
        self,
        caller: Caller,
        conversation_id: str | None,
        metadata: Mapping[str, Any],
        items: Sequence[Mapping[str, Any]] = (),
        *,
        protocol_request: Any = None,
    ) -> Conversation:
        """Create a conversation with its first items, or replace the metadata of an existing one."""
        ...

    async def get(self, caller: Caller, conversation_id: str) -> Conversation: ...

    async def delete(self, caller: Caller, conversation_id: str) -> None: ...

    async def add_items(
        self,
        caller: Caller,
        conversation_id: str,
        items: Sequence[Mapping[str, Any]],
        *,
        protocol_request: Any = None,
    ) -> Sequence[Mapping[str, Any]]:
        """Add items, each with its own id, when no turn of the conversation runs. Return the added items."""
        ...

    async def list_items(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        after: str | None = None,
        limit: int = 20,
        descending: bool = False,
        max_bytes: int | None = None,
    ) -> Sequence[ConversationItem]:
        """List a page of items. It has fewer than `limit` if they exceed `max_bytes` together."""
        ...

    async def get_item(self, caller: Caller, conversation_id: str, item_id: str) -> ConversationItem: ...

    async def delete_item(self, caller: Caller, conversation_id: str, item_id: str) -> Conversation:
        """Delete an item when no turn of the conversation runs, and return the conversation."""
        ...

    async def compact(
        self, request: ChannelRequest, caller: Caller, *, by: Any = None, protocol_request: Any = None
    ) -> RunRecord:
        """Store a summary of the request's input and the history before it. `by` is an agent or a function."""
        ...


Group = TypeVar("Group")
Params = ParamSpec("Params")
Result = TypeVar("Result")


class DeprecatedCall(Generic[Params, Result]):
    """A call under its old name. Looking it up on a context warns and returns the call of the group."""

    def __init__(self, group: str, call: Callable[Concatenate[Group, Params], Result]) -> None:
        self.group = group
        self.new_name = call.__name__
        self.old_name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.old_name = name

    @overload
    def __get__(self, context: None, owner: type) -> Self: ...

    @overload
    def __get__(self, context: object, owner: type) -> Callable[Params, Result]: ...

    def __get__(self, context: object, owner: type) -> Self | Callable[Params, Result]:
        if context is None:
            return self
        warnings.warn(
            f"context.{self.old_name} is deprecated. Use context.{self.group}.{self.new_name}.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(getattr(context, self.group), self.new_name)


class DeprecatedCalls:
    """The names of 0.1, each with its group and its new call. Version 0.3 removes them."""

    get_run = DeprecatedCall("runs", RunsContext.get)
    cancel_run = DeprecatedCall("runs", RunsContext.cancel)
    delete_run = DeprecatedCall("runs", RunsContext.delete)
    follow = DeprecatedCall("runs", RunsContext.follow)
    cancel_background_runs = DeprecatedCall("runs", RunsContext.cancel_background)
    pending_approvals = DeprecatedCall("approvals", ApprovalsContext.pending)
    waiting_approvals = DeprecatedCall("approvals", ApprovalsContext.waiting)
    get_approval = DeprecatedCall("approvals", ApprovalsContext.get)
    decide = DeprecatedCall("approvals", ApprovalsContext.decide)
    may_decide = DeprecatedCall("approvals", ApprovalsContext.may_decide)
    vote = DeprecatedCall("approvals", ApprovalsContext.vote)
    approval_request = DeprecatedCall("approvals", ApprovalsContext.build_request)
    begin_link = DeprecatedCall("links", LinksContext.begin)
    complete_link = DeprecatedCall("links", LinksContext.complete)
    unlink = DeprecatedCall("links", LinksContext.unlink)
    whoami = DeprecatedCall("links", LinksContext.whoami)
    link_status = DeprecatedCall("links", LinksContext.status)
    home_of = DeprecatedCall("links", LinksContext.home)
    principal_channel = DeprecatedCall("links", LinksContext.principal_channel)
    reset_session = DeprecatedCall("sessions", SessionsContext.reset)
    list_sessions = DeprecatedCall("sessions", SessionsContext.list)
    resume_session = DeprecatedCall("sessions", SessionsContext.resume)
    name_session = DeprecatedCall("sessions", SessionsContext.rename)
    track_session = DeprecatedCall("sessions", SessionsContext.track)
    transcript = DeprecatedCall("sessions", SessionsContext.transcript)
    accept = DeprecatedCall("events", EventsContext.accept)
    accept_and_wait = DeprecatedCall("events", EventsContext.accept_and_wait)
    reply = DeprecatedCall("events", EventsContext.reply)
    cancel_turns = DeprecatedCall("events", EventsContext.cancel_turns)
    is_finished = DeprecatedCall("events", EventsContext.is_finished)
    seal_reply_token = DeprecatedCall("events", EventsContext.seal_reply_token)
    open_reply_token = DeprecatedCall("events", EventsContext.open_reply_token)
    settle_delivery = DeprecatedCall("events", EventsContext.settle_delivery)
    end_deliveries = DeprecatedCall("events", EventsContext.end_deliveries)
    alias_conversation = DeprecatedCall("events", EventsContext.alias_conversation)
    channel_storage = DeprecatedCall("storage", StorageContext.values)
    leadership = DeprecatedCall("storage", StorageContext.leadership)
    put_file = DeprecatedCall("storage", StorageContext.put_file)
    get_file = DeprecatedCall("storage", StorageContext.get_file)
    keep_reference = DeprecatedCall("storage", StorageContext.put_reference)
    get_reference = DeprecatedCall("storage", StorageContext.get_reference)
