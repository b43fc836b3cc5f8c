"""Channel requests: unverified, and as admitted by the gate."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

import msgspec
from msgspec import structs

from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.base import StoredRecord
from frontdesk.models.identity import Caller, ChannelIdentity, IsolationKeys
from frontdesk.models.reply import ResponseTarget

SessionMode = Literal["auto", "required", "disabled"]
ConversationScope = Literal["per_user", "per_user_per_conversation", "per_conversation"]
AcceptInGroup = Literal["mention_only", "command_only", "mention_or_command", "all"]
CancelBy = Literal["sender", "anyone"]
OnBusy = Literal["queue", "interrupt"]
Operation = Literal["message", "message.create", "command", "approval"]
OnInterrupt = Literal["fail", "restart", "resume"]
_OLD_NAME = "openai_conversation_id"


class _SessionNames(msgspec.StructMeta):
    def __call__(cls, *args: Any, **fields: Any) -> Any:
        if _OLD_NAME in fields:
            fields["conversation_id"] = fields.pop(_OLD_NAME)
        return super().__call__(*args, **fields)


class ChannelSession(StoredRecord, frozen=True, kw_only=True, metaclass=_SessionNames):
    """The session of a request, named by the caller's own key or by its conversation."""

    key: str | None = None
    conversation_id: str | None = None
    """A conversation that the caller has made through the OpenAI APIs; a chat is `ChannelRequest.conversation_id`."""
    session_id: str | None = None
    """The host's own id of a session that exists."""
    isolation_key: str | None = None
    """The owner of the session. Only a hook may set it: the wire never chooses whose memory it reads."""
    attributes: Mapping[str, Any] = {}
    """Data about the session from the channel or a hook, for context providers; it is not kept with the session."""

    @property
    def openai_conversation_id(self) -> str | None:
        """Former name of `conversation_id`."""
        return self.conversation_id


class ClientTool(StoredRecord, frozen=True, kw_only=True):
    """A function that the client offers and executes itself."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}
    strict: bool | None = None


class ClientOutput(StoredRecord, frozen=True, kw_only=True):
    """The output of a client function."""

    call_id: str
    output: Any
    after: int = 0
    """The number of messages of the input that come before it."""


class ChannelRequest(StoredRecord, frozen=True, kw_only=True):
    """A request as received. It has no effect until the gate has admitted it."""

    channel: str
    operation: Operation = "message"
    """`message.create` is an alias of `message`."""
    input: Any = None
    """A text, a framework `Message`, a list of them, or (for a workflow) whatever its start executor takes."""
    session: ChannelSession | None = None
    options: Mapping[str, Any] = {}
    session_mode: SessionMode = "auto"
    identity: ChannelIdentity | None = None
    conversation_id: str | None = None
    group: bool = False
    """Whether other people take part in the conversation."""
    reference: Mapping[str, Any] = {}
    """The platform's data for reaching this conversation later: a conversation reference, a service URL, a thread. It
    comes back with every push; the host keeps the newest for each person."""
    stream: bool = False
    background: bool = False
    on_interrupt: OnInterrupt | None = None
    """The way a background run continues if its process ends; by default that of the host. Hooks set it."""
    response_target: ResponseTarget = ResponseTarget()
    metadata: Mapping[str, Any] = {}
    attributes: Mapping[str, Any] = {}
    approvals: tuple[ApprovalAnswer, ...] = ()
    """Answers to questions that the session has asked."""
    client_state: Any = None
    client_tools: tuple[ClientTool, ...] = ()
    client_outputs: tuple[ClientOutput, ...] = ()
    """Results of calls that the session has handed out to the client."""
    forwarded_props: Mapping[str, Any] = {}
    store: bool = True
    """Whether the turn is stored; if not, it can read a session but writes nothing to it."""
    details: Mapping[str, Any] = {}
    """Data in the channel's own format, by which it can show the run again; stored with the run."""
    run_id: str | None = None
    """The id that the wire chose for this run; the host makes one when there is none."""
    idempotency_key: str | None = None
    """The key with which the caller repeats a request whose answer was lost; it runs once."""
    request_hash: str | None = None
    """A hash of the request, to tell it from another one with the same key."""
    previous_run_id: str | None = None
    """The run that this one continues; it must belong to the caller. With the key of a session, this session begins as
    a branch of the run, unless it has had a turn before."""
    continues: str | None = None
    """The run whose chain this one joins; it must belong to the caller. Answers join the chain of their question."""
    checkpoint_id: str | None = None
    """The checkpoint from which a workflow goes on instead of the last one; it must be the session's own."""
    isolation: IsolationKeys | None = None
    """The platform's keys for code inside the target. Only a hook may set them; else they are the caller's."""

    @property
    def granted_key(self) -> str | None:
        """Return the isolation key of the session that a hook has granted."""
        return None if self.session is None else self.session.isolation_key


_BEHIND_THE_GATE = frozenset(
    ("approvals", "session", "background", "stream", "input", "client_outputs", "checkpoint_id")
)
"""Fields of an admitted request that steps behind the gate may change."""


class AdmittedRequest(StoredRecord, frozen=True, kw_only=True):
    """A request that may run, created by `access/gate.py` only. Sessions, targets and delivery require it."""

    request: ChannelRequest
    caller: Caller
    identity: ChannelIdentity
    owner: str
    """The isolation key: whose sessions, runs and approvals this request may see."""
    run_id: str
    admitted_at: float
    pushes: bool = False
    """Whether its answer is sent as a delivery to where it came from, because no caller waits on a wire."""

    trace: str | None = None
    """The trace that it belongs to, as the telemetry has given it."""
    root_run_id: str | None = None
    """The first run of the chain that it joins. None if it begins a chain."""

    if TYPE_CHECKING:

        def replace(self, **changes: Any) -> NoReturn:
            """Raise a `TypeError`: only the gate decides whom a request is for, and what it may do."""
            ...

    else:
        # A method of its own, because `replace` of other nouns is that of msgspec.
        def replace(self, **changes):
            raise TypeError("an AdmittedRequest can't be replaced, use with_request() or pushing()")

    def with_request(self, **changes: Any) -> Self:
        """Return a copy with changes to request fields that do not affect admission."""
        if not changes.keys() <= _BEHIND_THE_GATE:
            raise TypeError(f"only the gate can set {sorted(changes.keys() - _BEHIND_THE_GATE)}")
        return structs.replace(self, request=self.request.replace(**changes))

    def with_push(self) -> Self:
        """Return a copy whose answer is sent as a delivery, because no caller waits for a response."""
        return structs.replace(self, pushes=True)

    def without_content(self) -> Self:
        """Return a copy with only the data for opening its session and recording its end, none for the target."""
        request = self.request
        session = None if request.session is None else request.session.replace(attributes={})
        return structs.replace(
            self,
            request=request.replace(
                input=None,
                session=session,
                options={},
                metadata={},
                attributes={},
                client_state=None,
                client_tools=(),
                client_outputs=(),
                forwarded_props={},
                details={},
            ),
        )

    def with_root_run(self, root_run_id: str | None) -> Self:
        """Return a copy that joins a chain of runs. Without a chain, return self."""
        return self if root_run_id is None else structs.replace(self, root_run_id=root_run_id)

    def with_trace(self, trace: str | None) -> Self:
        """Return a copy that belongs to a trace. Without a trace, return self."""
        return self if trace is None else structs.replace(self, trace=trace)

    @property
    def isolation(self) -> IsolationKeys | None:
        """Return the keys set by a hook, or those of a trusted platform."""
        return self.request.isolation or self.caller.isolation

    def is_delivered(self) -> bool:
        """Return True if any of its answer may be sent as a delivery instead of in the response."""
        return self.pushes or self.request.response_target.kind != "originating"

    def targets_elsewhere(self) -> bool:
        """Return True if its answer goes to a destination other than its origin, or to none."""
        return self.request.response_target.kind != "originating"
