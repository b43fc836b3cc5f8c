"""The interface between targets and the host."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Literal, Protocol, runtime_checkable

from frontdesk.models.approval import PendingApproval
from frontdesk.models.base import FrozenStruct
from frontdesk.models.identity import IsolationKeys
from frontdesk.models.request import AdmittedRequest, ChannelRequest
from frontdesk.models.session import CheckpointRef, SessionRecord

HistoryKeeper = Literal["provider", "own", "host", "agent"]
"""The keeper of an agent's history: our provider inside it, one of the operator's own, the host around it, or the
agent itself in its session."""


class TargetInfo(FrozenStruct, frozen=True, kw_only=True):
    """The public information about a target."""

    name: str
    kind: Literal["agent", "workflow", "function"]
    description: str = ""
    options: bool = False
    """Whether it takes options such as `temperature`."""
    tools: bool = False
    """Whether it takes tools for a single run."""
    tool_names: tuple[str, ...] = ()
    """The tools that it brings itself, as far as they are known before it runs."""
    messages: bool = True
    """Whether it hears a conversation, and not only what is said now."""
    checkpoints: bool = False
    """Whether it keeps checkpoints, as a workflow does and a workflow that is run as an agent."""
    history: HistoryKeeper | None = None
    """The keeper of what it is told of the conversation; `None` where nothing is kept."""
    reads_attributes: bool = False
    """Whether a context provider in it asks for the attributes of a request."""
    inputs: tuple[Any, ...] = ()
    """The types of the input that a workflow takes; none for other targets."""
    outputs: tuple[Any, ...] = ()
    """The types of what it puts out, as far as they are known before it runs; none for an agent."""


class TargetTurn(Protocol):
    """A turn from the point of view of its target."""

    admitted: AdmittedRequest
    session: Any
    """The framework's `AgentSession`, or `None` when the request has no session."""
    messages: Sequence[Any]
    """The framework messages that came in."""
    work: Any
    """Takes note of the threads that work for the turn."""
    staged: list[Any] | None
    """The messages that the run adds to the history, once they are known."""
    record: SessionRecord | None
    """The session at rest, as it was before the turn."""
    parent_session: SessionRecord | None
    """The session that the run goes back to at its end, if it works on a branch of it."""
    plan: Any
    """The target's own preparation for the run; nobody else looks at it."""
    checkpoint: CheckpointRef | None
    """The last checkpoint that the run has saved."""
    fork: Any
    """The state that the agent's own history providers take over from the session that this one branches off."""
    answer_hosting: Callable[[], Awaitable[Mapping[str, Any]]] | None
    """Tells, at the end of a run, where its answer is meant to go; for an agent whose own providers keep that."""

    @property
    def shared_state(self) -> Any:
        """Return the `SharedState` of the run."""
        ...

    @property
    def earlier(self) -> Sequence[Any]:
        """Return the earlier outputs of an interrupted workflow, before it continues."""
        ...

    def is_guarded(self) -> bool:
        """Return True if `begin` must be awaited before any action that can't be repeated."""
        ...

    async def begin(self) -> None:
        """Record that the run can't be restarted from here on."""
        ...

    async def reached(self, checkpoint: CheckpointRef) -> None:
        """Record a saved checkpoint, before an earlier one is discarded."""
        ...

    def has_history(self) -> bool:
        """Return True if there may be messages. If False, `history` need not be called."""
        ...

    async def history(self) -> Sequence[Any]:
        """Return the session's messages before this turn, oldest first. Callers must not modify them."""
        ...

    async def question(self, approval_id: str) -> PendingApproval | None:
        """Return an approval that was requested from the turn's owner, decided or not."""
        ...

    async def question_asked_as(self, target_request_id: str) -> PendingApproval | None:
        """Return the session's latest approval for the turn's owner with this target request id."""
        ...


class Target(Protocol):
    """An agent, a workflow or a function, behind one interface."""

    info: TargetInfo
    native: Any
    """The operator's own object."""

    def check(self, request: ChannelRequest) -> None:
        """Reject a request that the target does not support, naming the reason, before any state is consumed."""
        ...

    async def prepare(self, turn: TargetTurn) -> Sequence[Any]:
        """Return the input that the client's answers add. Reject answers that do not fit. Consume no state."""
        ...

    async def run(self, turn: TargetTurn) -> Any: ...

    async def stream(self, turn: TargetTurn) -> "TargetStream":
        """Start a run and return the stream of its updates."""
        ...

    @property
    def findings(self) -> list[str]:
        """List the errors of the target, for the host's configuration error."""
        ...

    @property
    def warnings(self) -> list[str]:
        """List configurations that work, but not optimally."""
        ...


class ShowsToolSchemas(ABC):
    """A target whose tools can be inspected before it runs."""

    @abstractmethod
    def tool_schema(self, name: str) -> str | None:
        """Return a hash of the tool's current parameters, or `None` if there is no such tool."""


class RequiresApprovals(ABC):
    """A target whose tools the host can make require approval."""

    @abstractmethod
    def approval_findings(self, ruled: Collection[str], dynamic: Collection[str]) -> list[str]:
        """List the tools with a rule that do not exist or cannot require approval, one line each. Change nothing.

        `dynamic` holds the names of tools that exist only during a run.
        """

    @abstractmethod
    def require_approvals(self, ruled: Collection[str], dynamic: Collection[str]) -> None:
        """Make every call of these tools require approval."""


class AbandonedQuestions(FrozenStruct, frozen=True, kw_only=True):
    """A session without its open questions."""

    questions: int
    checkpoint: CheckpointRef | None
    messages: Sequence[Any]
    """The messages for the history: the results of the calls that nobody answers any more."""


class GivesUpQuestions(ABC):
    """A target that can wait for answers, and can abandon its open questions."""

    @abstractmethod
    async def give_up(self, record: SessionRecord) -> AbandonedQuestions | None:
        """Return the session without its open questions, or `None` if it has none. Approvals stay."""


class TargetStream(Protocol):
    """The updates of a run, followed by its full output."""

    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def final(self) -> Any:
        """Return the full output. Valid once the updates have ended."""
        ...

    async def close(self) -> None:
        """End the run early."""
        ...


@runtime_checkable
class BindsRequestContext(Protocol):
    """A context provider that receives the current request for the duration of the run.

    It may omit any of the arguments. It may also take `attributes` and `session_attributes`: those of the request and
    of its `ChannelSession`, as set by the channel or a hook. It may take `client_state` and `forwarded_props` of the
    request, and `shared_state`, the `SharedState` of the run.
    """

    def bind_request_context(
        self, *, response_id: str, previous_response_id: str | None, isolation: IsolationKeys
    ) -> AbstractContextManager[Any] | AbstractAsyncContextManager[Any]:
        """Return a context manager, entered before the run and exited however the run ends."""
        ...


class FollowsResponses(ABC):
    """A history provider that can look up a history by its last response, so that a branch needs no copy."""

    @property
    @abstractmethod
    def follows_responses(self) -> bool: ...


class ChoosesLoading(ABC):
    """A history provider that loads the history only if the host does not keep it for every process."""

    @abstractmethod
    def choose_loading(self, *, kept_elsewhere: bool) -> None:
        """Receive whether the host keeps the history. Called when the host is built."""
