"""What comes in: what the wire claims, and what the gate let through."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

import msgspec
from msgspec import structs

from frontdesk.data.approval import ApprovalAnswer
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.isolation import IsolationKeys
from frontdesk.data.noun import Noun
from frontdesk.data.response_target import ResponseTarget

SessionMode = Literal["auto", "required", "disabled"]
ConversationScope = Literal["per_user", "per_user_per_conversation", "per_conversation"]
AcceptInGroup = Literal["mention_only", "command_only", "mention_or_command", "all"]
Operation = Literal["message", "message.create", "command", "approval"]
OnInterrupt = Literal["fail", "restart", "resume"]


class ChannelSession(Noun, frozen=True, kw_only=True):
    """The session that a request names: by the caller's own key, or by the conversation it belongs to."""

    key: str | None = None
    openai_conversation_id: str | None = msgspec.field(default=None, name="conversation_id")
    """A conversation that the caller has made through the OpenAI APIs; a chat is `ChannelRequest.conversation_id`."""
    session_id: str | None = None
    """The host's own id of a session that exists."""
    isolation_key: str | None = None
    """Whose session it is. Only a hook may set it: the wire never chooses whose memory it reads."""


class ClientTool(Noun, frozen=True, kw_only=True):
    """A function that the client offers and runs itself."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}
    strict: bool | None = None


class ClientOutput(Noun, frozen=True, kw_only=True):
    """What a client's own function has returned."""

    call_id: str
    output: Any


class ChannelRequest(Noun, frozen=True, kw_only=True):
    """What the wire claims. It gets nothing done until the gate has admitted it."""

    channel: str
    operation: Operation = "message"
    """`message.create` is the design's word for `message`."""
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
    """What the platform has to be told to reach this conversation later: a conversation reference, a service URL, a
    thread. It comes back with every push; the host keeps the newest for each person."""
    stream: bool = False
    background: bool = False
    on_interrupt: OnInterrupt | None = None
    """What becomes of it in the background if its process ends; as the host says when there is none. Hooks set it."""
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
    """Whether anything of the turn is kept; without, it can read a session but leaves none behind."""
    details: Mapping[str, Any] = {}
    """What the channel needs to show the run again, in its own words; kept with the run."""
    run_id: str | None = None
    """The id that the wire chose for this run; the host makes one when there is none."""
    idempotency_key: str | None = None
    """Under which the caller sends the same request again if its answer was lost; it runs once."""
    request_hash: str | None = None
    """What the request says, in short, to tell it from another one with the same key."""
    previous_run_id: str | None = None
    """The run that this one continues; it must belong to the caller."""
    checkpoint_id: str | None = None
    """The checkpoint from which a workflow goes on instead of the last one; it must be the session's own."""
    isolation: IsolationKeys | None = None
    """What code inside the target sees as the platform's keys. Only a hook may set it; else they are the caller's."""

    @property
    def granted_key(self) -> str | None:
        """Return the isolation key whose session a hook has granted."""
        return None if self.session is None else self.session.isolation_key


_BEHIND_THE_GATE = frozenset(
    ("approvals", "session", "background", "stream", "input", "client_outputs", "checkpoint_id")
)
"""Fields of an admitted request that steps behind the gate may change."""


class AdmittedRequest(Noun, frozen=True, kw_only=True):
    """A request that may run. Only `access/gate.py` makes one; sessions, targets and delivery accept nothing else."""

    request: ChannelRequest
    caller: Caller
    identity: ChannelIdentity
    owner: str
    """The isolation key: whose sessions, runs and approvals this request may see."""
    run_id: str
    admitted_at: float
    pushes: bool = False
    """Whether its answer goes out as a delivery to where it came from, because nobody waits for it on a wire."""

    if TYPE_CHECKING:

        def replace(self, **changes: Any) -> NoReturn:
            """Not to be had: only the gate decides whom a request is for, and what it may do."""
            ...

    else:
        # A method of its own, because `replace` of other nouns is that of msgspec.
        def replace(self, **changes):
            raise TypeError("what the gate has admitted is not changed: use with_request() or pushing()")

    def with_request(self, **changes: Any) -> Self:
        """Return a copy with fields of its request changed of which the gate decides nothing."""
        if not changes.keys() <= _BEHIND_THE_GATE:
            raise TypeError(f"only the gate decides about {sorted(changes.keys() - _BEHIND_THE_GATE)}")
        return structs.replace(self, request=self.request.replace(**changes))

    def pushing(self) -> Self:
        """Return a copy whose answer goes out as a delivery, because nobody waits for it on a wire."""
        return structs.replace(self, pushes=True)

    @property
    def isolation(self) -> IsolationKeys | None:
        """Return the keys that a hook has set, or those of a trusted platform."""
        return self.request.isolation or self.caller.isolation

    @property
    def targets_elsewhere(self) -> bool:
        """Tell whether its answer is meant for another place than where it came from, or for nobody."""
        return self.request.response_target.kind != "originating"
