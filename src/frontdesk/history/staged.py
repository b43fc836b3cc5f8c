"""The history of a hosted agent: loaded from the host's store, staged while the run lasts, committed by `record`."""

from collections.abc import Sequence
from typing import Any, Literal

from agent_framework import HistoryProvider, InMemoryHistoryProvider, Message, RawAgent

from frontdesk.abc.target import TargetTurn
from frontdesk.kit.current import current_turn

HistoryKeeper = Literal["provider", "own", "host"]
"""Who keeps an agent's history: our provider inside it, a provider of the operator's own, or the host around it."""

_MARK = "_attribution"
"""By this the framework tells what was said before from what is said now."""
_CONTROLS = frozenset({"function_approval_request", "function_approval_response"})


class HostedHistory(InMemoryHistoryProvider):
    """Inside a hosted turn the host's history; elsewhere what the framework would have used anyway."""

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        turn = _turn_of(session_id)
        if turn is None:
            return await super().get_messages(session_id, state=state, **kwargs)
        return list(await turn.history())

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        turn = _turn_of(context.session_id)
        history = () if turn is None else await turn.history()
        if turn is None or not _handed_over(history):
            await super().before_run(agent=agent, session=session, context=context, state=state)
        else:
            # As they are: the framework's copy of every message made turn 200 cost several times what turn 10 does.
            context.context_messages.setdefault(self.source_id, []).extend(history)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        turn = _turn_of(session_id)
        if turn is None:
            await super().save_messages(session_id, messages, state=state, **kwargs)
        else:
            turn.staged = [*(turn.staged or ()), *messages]


def _handed_over(history: Sequence[Message]) -> bool:
    """Marks messages as the framework marks history; false if some need more than that."""
    for message in history:
        properties = message.additional_properties
        if _MARK not in properties:
            properties[_MARK] = _OURS
        for content in message.contents:
            if content.type in _CONTROLS:
                # Questions that were answered are left out, and the framework knows which.
                return False
    return True


def _turn_of(session_id: str | None) -> TargetTurn | None:
    turn = current_turn.get()
    return turn if turn is not None and turn.session is not None and turn.session.session_id == session_id else None


_OURS = {"source_id": InMemoryHistoryProvider.DEFAULT_SOURCE_ID, "source_type": HostedHistory.__name__}


def install_history(agent: Any) -> HistoryKeeper:
    """Gives an agent the host's history, unless it brings its own; says who keeps it."""
    if not isinstance(agent, RawAgent):
        return "host"
    providers: list[Any] = agent.context_providers
    # The framework's in-memory provider keeps the whole history inside the session's snapshot and drops a turn that
    # equals an earlier one, so it counts as none.
    providers[:] = [one for one in providers if type(one) is not InMemoryHistoryProvider]
    if any(isinstance(one, HostedHistory) for one in providers):
        return "provider"
    if any(isinstance(one, HistoryProvider) and one.load_messages for one in providers):
        return "own"
    providers.append(HostedHistory())
    return "provider"
