"""Tells context providers about the request that they work for."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from typing import Any, NamedTuple

from frontdesk.abc.target import BindsRequestContext, TargetTurn
from frontdesk.data.isolation import IsolationKeys
from frontdesk.targets.blueprint import agents_in

Manager = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

_TOLD = ("response_id", "previous_response_id", "isolation", "attributes")


class Binding(NamedTuple):
    """A context provider that wants to know, and which of the arguments it takes."""

    provider: BindsRequestContext
    names: tuple[str, ...]


def binding(*agents: Any) -> list[Binding]:
    """Find the context providers of agents that want to know, each once."""
    found = {id(one): one for agent in agents for one in _providers(agent) if isinstance(one, BindsRequestContext)}
    return [Binding(one, _names(one)) for one in found.values()]


def binding_in(workflow: Any) -> list[Binding]:
    """Find those of the agents inside a workflow."""
    return binding(*agents_in(workflow))


def asks_for_attributes(bindings: Sequence[Binding]) -> bool:
    """Whether any of them takes the attributes of a request."""
    return any("attributes" in one.names for one in bindings)


def binding_findings(bindings: Sequence[Binding]) -> Iterator[str]:
    """Name those that can't be called with what there is to tell."""
    for one in bindings:
        call = inspect.signature(one.provider.bind_request_context)
        try:
            call.bind(**dict.fromkeys(one.names))
        except TypeError as error:
            yield (
                f"target: bind_request_context{call} of {type(one.provider).__name__} can't be called: {error}; it may "
                f"take {', '.join(_TOLD)}, each by its name"
            )


async def bind(bindings: Sequence[Binding], turn: TargetTurn, scope: AsyncExitStack) -> None:
    """Bind them to the request of a turn, until the scope is left."""
    admitted = turn.admitted
    chat = None if turn.session is None else turn.session.session_id
    if turn.home is not None:
        # A branch is part of the same chat.
        chat = turn.home.session_id
    told: Mapping[str, Any] = {
        "response_id": admitted.run_id,
        "previous_response_id": admitted.request.previous_run_id,
        "isolation": admitted.isolation or IsolationKeys(user_key=admitted.owner, chat_key=chat),
        "attributes": admitted.request.attributes,
    }
    for provider, names in bindings:
        call: Callable[..., Manager] = provider.bind_request_context
        manager = call(**{name: told[name] for name in names})
        if isinstance(manager, AbstractAsyncContextManager):
            await scope.enter_async_context(manager)
        else:
            scope.enter_context(manager)


def _providers(agent: Any) -> Sequence[Any]:
    return getattr(agent, "context_providers", None) or ()


def _names(provider: BindsRequestContext) -> tuple[str, ...]:
    parameters = inspect.signature(provider.bind_request_context).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return _TOLD
    taken = {one.name for one in parameters}
    return tuple(name for name in _TOLD if name in taken)
