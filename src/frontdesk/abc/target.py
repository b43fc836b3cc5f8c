"""The contract between a target and the host."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Literal, Protocol, runtime_checkable

from frontdesk.data.approval import PendingApproval
from frontdesk.data.isolation import IsolationKeys
from frontdesk.data.noun import Value
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.session import CheckpointRef, SessionRecord

HistoryKeeper = Literal["provider", "own", "host", "agent"]
"""The keeper of an agent's history: our provider inside it, one of the operator's own, the host around it, or the
agent itself in its session."""


class TargetInfo(Value, frozen=True, kw_only=True):
    """A target as channels and callers may know it."""

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
    outputs: tuple[Any, ...] = ()
    """The types of what it puts out, as far as they are known before it runs; none for an agent."""


class TargetTurn(Protocol):
    """A turn as the target that runs in it sees it."""

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
    home: SessionRecord | None
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
    def earlier(self) -> Sequence[Any]:
        """List what an interrupted workflow has put out before it goes on."""
        ...

    def is_guarded(self) -> bool:
        """Tell whether `begin` has to be awaited before something is done that can't be done twice."""
        ...

    async def begin(self) -> None:
        """Note that from here on the run can't be begun again."""
        ...

    async def reached(self, checkpoint: CheckpointRef) -> None:
        """Note a checkpoint that was saved, before an earlier one is given up."""
        ...

    def has_history(self) -> bool:
        """Tell whether there may be any; a session that has none need not be asked."""
        ...

    async def history(self) -> Sequence[Any]:
        """Return the session's messages before this turn, oldest first; nobody may change them."""
        ...

    async def question(self, approval_id: str) -> PendingApproval | None:
        """Return a question that was asked of the turn's owner, decided or not."""
        ...

    async def question_asked_as(self, target_request_id: str) -> PendingApproval | None:
        """Return the last question that the session has asked the turn's owner under an id of the target's."""
        ...


class Target(Protocol):
    """An agent, a workflow or a function, all run the same way."""

    info: TargetInfo
    native: Any
    """The operator's own object."""

    def check(self, request: ChannelRequest) -> None:
        """Refuse what the target can't take, by name, before anything is used up for it."""
        ...

    async def prepare(self, turn: TargetTurn) -> Sequence[Any]:
        """Return what the client's answers add to the input; refuse what does not fit, and use nothing up."""
        ...

    async def run(self, turn: TargetTurn) -> Any:
        """Run to the end and return the full output."""
        ...

    async def stream(self, turn: TargetTurn) -> "TargetStream":
        """Start a run whose updates are read one by one."""
        ...

    @property
    def findings(self) -> list[str]:
        """List what is wrong with the target, for the host's configuration error."""
        ...

    @property
    def warnings(self) -> list[str]:
        """List what works, but not as well as it could."""
        ...


@runtime_checkable
class ShowsToolSchemas(Protocol):
    """A target whose tools can be seen before it runs."""

    def tool_schema(self, name: str) -> str | None:
        """Return a hash of the parameters of a tool as it is now; `None` if there is no such tool."""
        ...


class GivenUp(Value, frozen=True, kw_only=True):
    """A session without the questions that it has waited with."""

    questions: int
    checkpoint: CheckpointRef | None
    messages: Sequence[Any]
    """The messages for the history: the results of the calls that nobody answers any more."""


@runtime_checkable
class GivesUpQuestions(Protocol):
    """A target that can wait for answers, and can stop waiting."""

    async def give_up(self, record: SessionRecord) -> GivenUp | None:
        """Return what a session becomes without its open questions; `None` if it has none. Approvals stay."""
        ...


class TargetStream(Protocol):
    """The updates of a run, and its full output at the end."""

    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def final(self) -> Any:
        """Return the full output, once the updates have ended."""
        ...

    async def close(self) -> None:
        """End the run early."""
        ...


@runtime_checkable
class BindsRequestContext(Protocol):
    """A context provider that wants to know the request it works for, for the time of the run.

    It may leave out any of the arguments, and may take `attributes` and `session_attributes` too: those of the request
    and of its `ChannelSession`, as the channel or a hook has set them.
    """

    def bind_request_context(
        self, *, response_id: str, previous_response_id: str | None, isolation: IsolationKeys
    ) -> AbstractContextManager[Any] | AbstractAsyncContextManager[Any]:
        """Return what is entered before the run and left when it ends in any way."""
        ...


@runtime_checkable
class FollowsResponses(Protocol):
    """A history provider that may find a history by the response it ends with, so that a branch needs no copy of it."""

    @property
    def follows_responses(self) -> bool:
        """Tell whether it does."""
        ...


@runtime_checkable
class ChoosesLoading(Protocol):
    """A history provider that loads the history only where the host does not keep it for every process."""

    def choose_loading(self, *, kept_elsewhere: bool) -> None:
        """Take whether the host keeps the history; called when the host is built."""
        ...
