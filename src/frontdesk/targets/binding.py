"""Tells context providers about the request that they work for."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from frontdesk.abc.target import BindsRequestContext, TargetTurn
from frontdesk.data.isolation import IsolationKeys


def binding(agent: Any) -> list[BindsRequestContext]:
    """Find the context providers of an agent that want to know."""
    providers: Sequence[Any] = getattr(agent, "context_providers", None) or ()
    return [one for one in providers if isinstance(one, BindsRequestContext)]


async def bind(providers: Sequence[BindsRequestContext], turn: TargetTurn, scope: AsyncExitStack) -> None:
    """Bind them to the request of a turn, until the scope is left."""
    admitted = turn.admitted
    chat = None if turn.session is None else turn.session.session_id
    for provider in providers:
        manager = provider.bind_request_context(
            response_id=admitted.run_id,
            previous_response_id=admitted.request.previous_run_id,
            isolation=admitted.isolation or IsolationKeys(user_key=admitted.owner, chat_key=chat),
        )
        if isinstance(manager, AbstractAsyncContextManager):
            await scope.enter_async_context(manager)
        else:
            scope.enter_context(manager)
