"""Binds context providers to the request of a run."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from typing import Any, NamedTuple

from frontdesk.abc.target import BindsRequestContext, TargetTurn
from frontdesk.data.isolation import IsolationKeys
from frontdesk.data.request import ChannelRequest
from frontdesk.kit.foundry.ids import is_response_id
from frontdesk.targets.blueprint import agents_in

Manager = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

_ARGUMENTS = ("response_id", "previous_response_id", "isolation", "attributes", "session_attributes")


class Binding(NamedTuple):
    """A context provider with `bind_request_context`, and the arguments that it takes."""

    provider: BindsRequestContext
    names: tuple[str, ...]


def binding(*agents: Any) -> list[Binding]:
    """Find the context providers of agents that can be bound, each once."""
    providers = {id(provider): provider for agent in agents for provider in providers_of(agent)}
    return [Binding(bound, _names(bound)) for bound in providers.values() if isinstance(bound, BindsRequestContext)]


def binding_in(workflow: Any) -> list[Binding]:
    """Find the context providers of the agents inside a workflow."""
    return binding(*agents_in(workflow))


def asks_for_attributes(bindings: Sequence[Binding]) -> bool:
    """Tell whether any of them takes the attributes of a request."""
    return any("attributes" in bound.names for bound in bindings)


def binding_findings(bindings: Sequence[Binding]) -> Iterator[str]:
    """Yield a finding for each that can't be called with the arguments that there are."""
    for bound in bindings:
        call = inspect.signature(bound.provider.bind_request_context)
        try:
            call.bind(**dict.fromkeys(bound.names))
        except TypeError as error:
            yield (
                f"target: bind_request_context{call} of {type(bound.provider).__name__} can't be called: {error}; it "
                f"may take {', '.join(_ARGUMENTS)}, each by its name"
            )


async def bind(bindings: Sequence[Binding], turn: TargetTurn, scope: AsyncExitStack) -> None:
    """Bind context providers to the request of a turn, until the scope is left."""
    admitted = turn.admitted
    chat = None if turn.session is None else turn.session.session_id
    if turn.home is not None:
        # A branch is part of the same chat.
        chat = turn.home.session_id
    arguments: Mapping[str, Any] = {
        "response_id": admitted.run_id,
        "previous_response_id": admitted.request.previous_run_id or _adopted(admitted.request),
        "isolation": admitted.isolation or IsolationKeys(user_key=admitted.owner, chat_key=chat),
        "attributes": admitted.request.attributes,
        "session_attributes": {} if admitted.request.session is None else admitted.request.session.attributes,
    }
    for provider, names in bindings:
        call: Callable[..., Manager] = provider.bind_request_context
        manager = call(**{name: arguments[name] for name in names})
        if isinstance(manager, AbstractAsyncContextManager):
            await scope.enter_async_context(manager)
        else:
            scope.enter_context(manager)


def _adopted(request: ChannelRequest) -> str | None:
    """Return the response that a session is named after, because only the platform has kept it."""
    key = None if request.session is None else request.session.key
    return key if is_response_id(key) else None


def providers_of(agent: Any) -> Sequence[Any]:
    """Return the context providers of an agent; nothing for anything else."""
    return getattr(agent, "context_providers", None) or ()


def _names(provider: BindsRequestContext) -> tuple[str, ...]:
    parameters = inspect.signature(provider.bind_request_context).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return _ARGUMENTS
    taken = {parameter.name for parameter in parameters}
    return tuple(name for name in _ARGUMENTS if name in taken)
