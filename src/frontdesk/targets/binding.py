"""Binds context providers to the request of a run, and gives access to the current isolation keys."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from frontdesk.concurrency.current import current_turn
from frontdesk.foundry.conventions import is_response_id
from frontdesk.interfaces.target import BindsRequestContext, TargetTurn
from frontdesk.models.identity import IsolationKeys
from frontdesk.models.request import ChannelRequest
from frontdesk.targets.blueprint import agents_in

Manager = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

_STATE = "shared_state"
_ARGUMENTS = (
    "response_id",
    "previous_response_id",
    "isolation",
    "attributes",
    "session_attributes",
    "client_state",
    "forwarded_props",
    _STATE,
)


class Binding(NamedTuple):
    """A context provider with `bind_request_context`, and the arguments that it takes."""

    provider: BindsRequestContext
    names: tuple[str, ...]


def find_bindings(*agents: Any) -> list[Binding]:
    """Return the bindable context providers of agents, each once."""
    providers = {id(provider): provider for agent in agents for provider in list_providers(agent)}
    return [Binding(bound, _names(bound)) for bound in providers.values() if isinstance(bound, BindsRequestContext)]


def find_bindings_in(workflow: Any) -> list[Binding]:
    """Return the bindable context providers of the agents inside a workflow."""
    return find_bindings(*agents_in(workflow))


def asks_for_attributes(bindings: Sequence[Binding]) -> bool:
    return any("attributes" in bound.names for bound in bindings)


def list_binding_findings(bindings: Sequence[Binding]) -> Iterator[str]:
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
    """Bind context providers to the request of a turn, until the scope exits."""
    admitted = turn.admitted
    chat = None if turn.session is None else turn.session.session_id
    if turn.parent_session is not None:
        # A branch is part of the same chat.
        chat = turn.parent_session.session_id
    arguments: Mapping[str, Any] = {
        "response_id": admitted.run_id,
        "previous_response_id": admitted.request.previous_run_id or _find_adopted(admitted.request),
        "isolation": admitted.isolation or IsolationKeys(user_key=admitted.owner, chat_key=chat),
        "attributes": admitted.request.attributes,
        "session_attributes": {} if admitted.request.session is None else admitted.request.session.attributes,
        "client_state": admitted.request.client_state,
        "forwarded_props": admitted.request.forwarded_props,
    }
    for provider, names in bindings:
        call: Callable[..., Manager] = provider.bind_request_context
        # The shared state is created only for providers that ask for it.
        given = {name: turn.shared_state if name == _STATE else arguments[name] for name in names}
        manager = call(**given)
        if isinstance(manager, AbstractAsyncContextManager):
            await scope.enter_async_context(manager)
        else:
            scope.enter_context(manager)


def _find_adopted(request: ChannelRequest) -> str | None:
    """Return the response that a session is named after, because only the platform has its history."""
    key = None if request.session is None else request.session.key
    return key if is_response_id(key) else None


def list_providers(agent: Any) -> Sequence[Any]:
    return getattr(agent, "context_providers", None) or ()


def _names(provider: BindsRequestContext) -> tuple[str, ...]:
    parameters = inspect.signature(provider.bind_request_context).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return _ARGUMENTS
    taken = {parameter.name for parameter in parameters}
    return tuple(name for name in _ARGUMENTS if name in taken)


_set_by_hand: ContextVar[IsolationKeys | None] = ContextVar("frontdesk_isolation_keys", default=None)


def get_current_isolation_keys() -> IsolationKeys | None:
    """Return the keys of the current run. `None` outside of a run, or if no trusted platform has sent any."""
    own = _set_by_hand.get()
    if own is not None:
        return own
    turn = current_turn.get()
    return None if turn is None else turn.admitted.isolation


def get_current_client_state() -> Any:
    """Return the state that the client has sent with the request of the current run. `None` outside of a run."""
    turn = current_turn.get()
    return None if turn is None else turn.admitted.request.client_state


def get_current_forwarded_props() -> Mapping[str, Any]:
    """Return the client's properties for the current run. Empty outside of a run."""
    turn = current_turn.get()
    return {} if turn is None else turn.admitted.request.forwarded_props


def set_current_isolation_keys(keys: IsolationKeys) -> Token[IsolationKeys | None]:
    """Set keys for the current context, for the operator's own code. Reset them with the token."""
    return _set_by_hand.set(keys)


def reset_current_isolation_keys(token: Token[IsolationKeys | None]) -> None:
    """Restore the isolation keys from before `set_current_isolation_keys` returned this token."""
    _set_by_hand.reset(token)
