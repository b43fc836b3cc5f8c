"""Wraps an agent's own history providers for one turn.

The messages of such a provider belong to the operator, and the host accesses them only by the common provider
interface. So each turn runs with wrapped providers: an answer gets its hosting metadata, an unstored turn leaves no
messages, and a branch begins with the earlier messages.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import AgentResponse, AgentSession, HistoryProvider, Message

from frontdesk.errors import InvalidRequestError
from frontdesk.framework.contents import stamp
from frontdesk.interfaces.target import FollowsResponses, TargetTurn

_NO_BRANCH = (
    "This can't be continued from an earlier place: the agent's own history provider does not tell what was said up to "
    "there. Continue from the last response, or begin anew."
)


async def find_fork(providers: Sequence[Any], turn: TargetTurn) -> None:
    """Read the messages that a branch inherits. Reject the branch if a provider does not return them."""
    record = turn.record
    if record is None or record.parent is None or record.turns or turn.session is None:
        return
    history = await turn.history()
    # The provider has no messages of a turn that did not complete.
    completed = (message for message in history if "status" not in message.additional_properties.get("hosting", {}))
    answered = [message.message_id for message in completed]
    if not answered:
        return
    forks: dict[str, Sequence[Message]] = {}
    for provider in _list_loading(providers):
        if isinstance(provider, FollowsResponses) and provider.follows_responses:
            continue
        state = turn.session.state.setdefault(provider.source_id, {})
        if await provider.get_messages(turn.session.session_id, state=state):
            # It keeps them in the session, and the branch has a copy of that.
            continue
        messages = await provider.get_messages(record.parent.session_id, state=state)
        forks[provider.source_id] = _up_to(messages, answered[-1], {message.message_id for message in history})
    turn.fork = forks


def _up_to(messages: Sequence[Message], last: str | None, earlier: set[str | None]) -> Sequence[Message]:
    """Return the messages up to the end of the turn of message `last`. `earlier` has the ids up to that turn."""
    place = next((place for place, message in enumerate(messages) if message.message_id == last), None)
    if last is None or place is None:
        raise InvalidRequestError(_NO_BRANCH, param="previous_run_id", code="branch_not_possible")
    end = place + 1
    while end < len(messages) and (messages[end].role != "user" or messages[end].message_id in earlier):
        end += 1
    return messages[:end]


async def wrap(providers: Sequence[Any], turn: TargetTurn) -> list[Any]:
    """Return the providers for one turn. A stored branch begins with a copy of the preceding messages."""
    session: AgentSession | None = turn.session
    forks: Mapping[str, Sequence[Message]] = turn.fork or {}
    wrapped_providers: list[Any] = []
    for provider in providers:
        if not _loads(provider):
            wrapped_providers.append(provider)
            continue
        fork = forks.get(provider.source_id, ())
        stores = session is not None and turn.admitted.request.store
        if fork and stores and session is not None:
            state = session.state.setdefault(provider.source_id, {})
            await provider.save_messages(session.session_id, fork, state=state)
            fork = ()
        wrapped_providers.append(_OfTurn(provider, turn, fork, stores=stores))
    return wrapped_providers


async def of_turn(agent: Any, turn: TargetTurn) -> Any:
    """Return a copy of the agent with the providers of one turn. All else is shared with the original."""
    own = copy.copy(agent)
    own.context_providers = await wrap(agent.context_providers, turn)
    return own


def _loads(provider: Any) -> bool:
    return isinstance(provider, HistoryProvider) and provider.load_messages


def _list_loading(providers: Sequence[Any]) -> list[HistoryProvider]:
    return [provider for provider in providers if _loads(provider)]


class _OfTurn(HistoryProvider):
    """A provider bound to one turn."""

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
            await self._provider.after_run(context=await self._mark(context), **arguments)

    async def get_messages(self, session_id: str | None, **arguments: Any) -> list[Message]:
        return [*await self._provider.get_messages(session_id, **arguments), *self._fork]

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], **arguments: Any) -> None:
        if self._stores:
            await self._provider.save_messages(session_id, await self._stamp(messages), **arguments)

    async def _mark(self, context: Any) -> Any:
        response: AgentResponse[Any] | None = context.response
        if response is None:
            return context
        marked = copy.copy(response)
        marked.messages = await self._stamp(response.messages)
        return _Context(context, marked)

    async def _stamp(self, messages: Sequence[Message]) -> list[Message]:
        """Return copies with hosting metadata. The result itself is passed on unchanged."""
        answer_hosting = self._turn.answer_hosting
        hosting: Mapping[str, Any] = {} if answer_hosting is None else await answer_hosting()
        return [
            message if "hosting" in message.additional_properties else stamp(message, hosting) for message in messages
        ]


class _Context:
    def __init__(self, context: Any, response: AgentResponse[Any]) -> None:
        self._context = context
        self.response = response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
