"""An agent's own history providers, for the time of one turn.

What such a provider keeps is the operator's, and the host reaches it only by the calls that every provider has. So each
turn runs with the providers wrapped: an answer says where it was meant to go, a turn that is not stored leaves nothing,
and a branch begins with what was said before it.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import AgentResponse, AgentSession, HistoryProvider, Message

from frontdesk.abc.target import TargetTurn
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.framework.messages import stamped

_NO_BRANCH = (
    "This can't be continued from an earlier place: the agent's own history provider does not tell what was said up to "
    "there. Continue from the last response, or begin anew."
)


async def find_fork(providers: Sequence[Any], turn: TargetTurn) -> None:
    """Read what a branch takes over from its parent; refuse one whose past a provider does not tell."""
    record = turn.record
    if record is None or record.parent is None or record.turns or turn.session is None:
        return
    asked = await turn.history()
    # A turn that did not complete has left nothing with the provider.
    answered = [one.message_id for one in asked if "status" not in one.additional_properties.get("hosting", {})]
    if not answered:
        return
    forks: dict[str, Sequence[Message]] = {}
    for provider in _loading(providers):
        state = turn.session.state.setdefault(provider.source_id, {})
        if await provider.get_messages(turn.session.session_id, state=state):
            # It keeps them in the session, which the branch has as it was then.
            continue
        told = await provider.get_messages(record.parent.session_id, state=state)
        forks[provider.source_id] = _up_to(told, answered[-1], {one.message_id for one in asked})
    turn.fork = forks


def _up_to(told: Sequence[Message], last: str | None, known: set[str | None]) -> Sequence[Message]:
    """All up to the end of the turn that a message belongs to; `known` are the messages of that turn and before."""
    place = next((place for place, one in enumerate(told) if one.message_id == last), None)
    if last is None or place is None:
        raise InvalidRequestError(_NO_BRANCH, param="previous_run_id", code="branch_not_possible")
    end = place + 1
    while end < len(told) and (told[end].role != "user" or told[end].message_id in known):
        end += 1
    return told[:end]


async def wrapped(providers: Sequence[Any], turn: TargetTurn) -> list[Any]:
    """The providers of one turn; a branch that is stored begins with a copy of what it takes over."""
    session: AgentSession | None = turn.session
    forks: Mapping[str, Sequence[Message]] = turn.fork or {}
    found: list[Any] = []
    for one in providers:
        if not _loads(one):
            found.append(one)
            continue
        fork = forks.get(one.source_id, ())
        stores = session is not None and turn.admitted.request.store
        if fork and stores and session is not None:
            await one.save_messages(session.session_id, fork, state=session.state.setdefault(one.source_id, {}))
            fork = ()
        found.append(_OfTurn(one, turn, fork, stores=stores))
    return found


async def of_turn(agent: Any, turn: TargetTurn) -> Any:
    """The agent with the providers of one turn; all else is shared with the operator's."""
    own = copy.copy(agent)
    own.context_providers = await wrapped(agent.context_providers, turn)
    return own


def _loads(provider: Any) -> bool:
    return isinstance(provider, HistoryProvider) and provider.load_messages


def _loading(providers: Sequence[Any]) -> list[HistoryProvider]:
    return [one for one in providers if _loads(one)]


class _OfTurn(HistoryProvider):
    """A provider in one turn."""

    def __init__(self, provider: HistoryProvider, turn: TargetTurn, fork: Sequence[Message], *, stores: bool) -> None:
        super().__init__(provider.source_id)
        self._provider = provider
        self._turn = turn
        self._fork = fork
        self._stores = stores

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def before_run(self, *, context: Any, **arguments: Any) -> None:
        await self._provider.before_run(context=context, **arguments)
        if self._fork:
            context.extend_messages(self._provider, self._fork)

    async def after_run(self, *, context: Any, **arguments: Any) -> None:
        if self._stores:
            await self._provider.after_run(context=await self._marked(context), **arguments)

    async def get_messages(self, session_id: str | None, **arguments: Any) -> list[Message]:
        return [*await self._provider.get_messages(session_id, **arguments), *self._fork]

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], **arguments: Any) -> None:
        if self._stores:
            await self._provider.save_messages(session_id, await self._stamped(messages), **arguments)

    async def _marked(self, context: Any) -> Any:
        response: AgentResponse[Any] | None = context.response
        if response is None:
            return context
        marked = copy.copy(response)
        marked.messages = await self._stamped(response.messages)
        return _Context(context, marked)

    async def _stamped(self, messages: Sequence[Message]) -> list[Message]:
        """Copies that say where they were meant to go; the result itself comes through unchanged."""
        tell = self._turn.answer_hosting
        hosting: Mapping[str, Any] = {} if tell is None else await tell()
        return [one if "hosting" in one.additional_properties else stamped(one, hosting) for one in messages]


class _Context:
    """The context of a run, with another response."""

    def __init__(self, context: Any, response: AgentResponse[Any]) -> None:
        self._context = context
        self.response = response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
