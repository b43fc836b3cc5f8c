"""`HostedHistory`: loaded from the store, staged during a run, and committed with its result."""

import inspect
from collections.abc import Sequence
from typing import Any, Literal

from agent_framework import HistoryProvider, InMemoryHistoryProvider, Message, RawAgent, WorkflowAgent

from frontdesk.concurrency.current import current_turn
from frontdesk.errors import ChannelConfigurationError
from frontdesk.interfaces.target import ChoosesLoading, HistoryKeeper, TargetTurn

HistoryChoice = Literal["host", "agent"]
"""The operator's choice of the keeper of an agent's history."""

_FRAMEWORK_PACKAGES = "agent_framework_"
"""The prefix of the framework's packages beside its core: A2A, Claude, Copilot Studio and others."""
_TWO_KEEPERS = (
    'history="host": the agent has a history provider, and would get each message twice; leave one of them out'
)
_NO_SESSION = "history=\"agent\": the agent's run takes no session, so that it can't tell conversations apart"
_NOT_IN_WORKFLOWS = 'history="agent": a workflow that is run as an agent keeps no history; leave it out'
_MARK = "_attribution"
"""The property by which the framework tells history from new messages."""
_CONTROLS = frozenset({"function_approval_request", "function_approval_response"})


class HostedHistory(InMemoryHistoryProvider):
    """Provides the host's history inside a hosted turn, and elsewhere the framework's default in-memory history."""

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        turn = _find_turn(session_id)
        if turn is None:
            return await super().get_messages(session_id, state=state, **kwargs)
        return list(await turn.history())

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        turn = _find_turn(context.session_id)
        history = () if turn is None else await turn.history()
        if turn is None or not _mark_as_history(history):
            await super().before_run(agent=agent, session=session, context=context, state=state)
        else:
            # Not copied: the framework's copy of every message made turn 200 several times as slow as turn 10.
            context.context_messages.setdefault(self.source_id, []).extend(history)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        turn = _find_turn(session_id)
        if turn is None:
            await super().save_messages(session_id, messages, state=state, **kwargs)
        else:
            turn.staged = [*(turn.staged or ()), *messages]


def _mark_as_history(history: Sequence[Message]) -> bool:
    """Mark messages as history like the framework does. Return False if some need more than that."""
    for message in history:
        properties = message.additional_properties
        if _MARK not in properties:
            properties[_MARK] = _OURS
        for content in message.contents:
            if content.type in _CONTROLS:
                # The framework leaves out the questions that were answered.
                return False
    return True


def _find_turn(session_id: str | None) -> TargetTurn | None:
    turn = current_turn.get()
    return turn if turn is not None and turn.session is not None and turn.session.session_id == session_id else None


_OURS = {"source_id": InMemoryHistoryProvider.DEFAULT_SOURCE_ID, "source_type": HostedHistory.__name__}


def install_history(agent: Any, chosen: HistoryChoice | None = None, *, is_shared: bool = False) -> HistoryKeeper:
    """Decide who stores an agent's history so that no message is given twice, and install the provider if needed.

    `is_shared` is True if every process of the host reaches its store.
    """
    if not isinstance(agent, (RawAgent, WorkflowAgent)):
        return _keeper_without_providers(agent, chosen)
    providers: list[Any] = agent.context_providers
    for provider in providers:
        if isinstance(provider, ChoosesLoading):
            provider.choose_loading(kept_elsewhere=chosen == "host" or (chosen is None and is_shared))
    if any(_is_own(provider) for provider in providers):
        if chosen == "host":
            raise ChannelConfigurationError(_TWO_KEEPERS)
        return "own"
    if chosen == "agent":
        if isinstance(agent, WorkflowAgent):
            raise ChannelConfigurationError(_NOT_IN_WORKFLOWS)
        providers[:] = [provider for provider in providers if not isinstance(provider, HostedHistory)]
        return "agent"
    # The framework's in-memory provider keeps the whole history inside the session's snapshot and drops a turn that
    # equals an earlier one, so it counts as none.
    providers[:] = [provider for provider in providers if type(provider) is not InMemoryHistoryProvider]
    if not any(isinstance(provider, HostedHistory) for provider in providers):
        providers.append(HostedHistory())
    return "provider"


def _is_own(provider: Any) -> bool:
    """Return True if the operator has chosen a provider that loads its own history."""
    ours = isinstance(provider, HostedHistory) or type(provider) is InMemoryHistoryProvider
    return isinstance(provider, HistoryProvider) and provider.load_messages and not ours


def _keeper_without_providers(agent: Any, chosen: HistoryChoice | None) -> HistoryKeeper:
    """Decide for an agent without providers. Those of the framework keep a session with their service."""
    parameters = inspect.signature(agent.run).parameters.values()
    takes_session = any(
        parameter.name == "session" or parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters
    )
    if chosen == "agent" and not takes_session:
        raise ChannelConfigurationError(_NO_SESSION)
    modules = (kind.__module__ for kind in type(agent).__mro__)
    own_session = takes_session and any(module.startswith(_FRAMEWORK_PACKAGES) for module in modules)
    return chosen or ("agent" if own_session else "host")
