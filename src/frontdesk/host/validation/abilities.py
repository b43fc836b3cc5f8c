"""Reports abilities without effect: methods without their base class, and misspelt method names."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from frontdesk.auth.any_auth import AnyAuth
from frontdesk.interfaces.abilities import auth_ability
from frontdesk.interfaces.auth import HttpAuth, RequestAuth
from frontdesk.interfaces.channel import Channel

MIN_SIMILARITY = 0.8
"""The similarity from which on a name counts as a misspelt one.

One of five letters that is missing, added or changed is found, and so are two neighbors that are swapped.
"""
_PACKAGE = "frontdesk"
_AUTHS = (HttpAuth, RequestAuth)
_METHODS = (property, cached_property, classmethod, staticmethod)


def channel_ability_findings(channel: Channel) -> list[str]:
    """Find abilities that a channel or its credentials would lose, and methods that can't be called."""
    abilities = [ability for declared in channel.abilities for ability in declared]
    wrong = ability_findings(channel, abilities)
    for auth in _iter_auths(channel.auth):
        wrong += [f"auth: {finding}" for finding in auth_ability_findings(auth)]
    return wrong


def auth_ability_findings(auth: object) -> list[str]:
    """Find abilities that credentials would lose. Their two required interfaces are protocols, so both are compared."""
    return ability_findings(auth, [*_AUTHS, *auth_ability])


def ability_findings(component: object, abilities: Iterable[type]) -> list[str]:
    """Find abilities that a component would lose, and methods that can't be called as declared, one line each."""
    kind, members = type(component).__name__, _list_members(component)
    declared: dict[str, type] = {}
    wrong: list[str] = []
    for ability in abilities:
        names = _list_declared_names(ability)
        for name in names:
            declared.setdefault(name, ability)
        if isinstance(component, ability):
            wrong += _find_missing_attributes(component, ability)
            wrong += _signature_findings(component, ability, members)
            continue
        found = [name for name in names if declared[name] is ability and _defines(component, name, ability, members)]
        if found:
            wrong.append(f"{kind} defines {' and '.join(found)} but {_lacks(component, ability)}")
    return wrong + list(_list_spelling_findings(component, declared))


def _lacks(component: object, ability: type) -> str:
    if ability in _AUTHS:
        missing = " and ".join(
            name for name in ("name", *_list_declared_names(ability)) if not hasattr(component, name)
        )
        return f"is not a {ability.__name__}: add {missing}, or rename it"
    return (
        f"does not derive from {ability.__name__}: add {ability.__module__}.{ability.__name__} as a base class, "
        "or rename it"
    )


def _list_declared_names(ability: type) -> list[str]:
    """Return the abstract methods of an ability, or its attributes if it has no methods."""
    own = vars(ability).items()
    if ability in _AUTHS:
        return [name for name, value in own if inspect.isfunction(value) and not name.startswith("_")]
    methods = [name for name, value in own if getattr(value, "__isabstractmethod__", False)]
    return methods or list(inspect.get_annotations(ability))


def _list_members(component: object) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for kind in reversed(type(component).__mro__):
        members |= vars(kind)
    return members | getattr(component, "__dict__", {})


def _defines(component: object, name: str, ability: type, members: Mapping[str, Any]) -> bool:
    if name not in members:
        # An object that stands for another one has the methods of that one.
        return "__getattr__" in members and callable(getattr(component, name, None))
    return _is_method(members[name]) or not inspect.isfunction(vars(ability).get(name))


def _is_method(value: object) -> bool:
    return callable(value) or isinstance(value, _METHODS)


def _find_missing_attributes(component: object, ability: type) -> list[str]:
    kind = type(component).__name__
    return [
        f"{kind} derives from {ability.__name__} but sets no {name}: set it in the class or in __init__"
        for name in inspect.get_annotations(ability)
        if not hasattr(component, name)
    ]


def _signature_findings(component: object, ability: type, members: Mapping[str, Any]) -> list[str]:
    """Find methods that can't be called with the arguments that their ability declares."""
    wrong: list[str] = []
    for name in _list_declared_names(ability):
        declared: Any = vars(ability).get(name)
        given = members.get(name)
        if not inspect.isfunction(declared) or getattr(given, "__module__", _PACKAGE).split(".")[0] == _PACKAGE:
            continue
        method: Any = getattr(component, name)
        parameters = list(inspect.signature(declared).parameters.values())[1:]
        if not _takes(method, parameters):
            prefix = "async " if inspect.iscoroutinefunction(declared) else ""
            written = ", ".join(["self", *_list_written(parameters)])
            wrong.append(f"{name} must take {_describe_parameters(parameters)}: `{prefix}def {name}({written})`")
        elif inspect.iscoroutinefunction(method) and not inspect.iscoroutinefunction(declared):
            wrong.append(f"{name} must not be async: {ability.__name__} declares `def {name}`")
    return wrong


def _takes(method: Any, parameters: list[inspect.Parameter]) -> bool:
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return True
    named = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    try:
        signature.bind(*[None] * (len(parameters) - len(named)), **dict.fromkeys(named))
    except TypeError:
        return False
    return True


def _describe_parameters(parameters: list[inspect.Parameter]) -> str:
    names = [f"the {one.name.replace('_', ' ')}" for one in parameters]
    return " and ".join([*([", ".join(names[:-1])] if names[:-1] else []), *names[-1:]]) or "no arguments"


def _list_written(parameters: list[inspect.Parameter]) -> Iterator[str]:
    star = next((one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY), None)
    for one in parameters:
        if one.name == star:
            yield "*"
        yield one.name


def _list_spelling_findings(component: object, declared: Mapping[str, type]) -> Iterator[str]:
    """Find method names of third-party classes that are similar to those of abilities."""
    kinds = type(component).__mro__
    own = {
        name
        for kind in kinds
        if not _is_ours(kind)
        for name, value in vars(kind).items()
        if not name.startswith("_") and _is_method(value)
    }
    known = {name for kind in kinds if _is_ours(kind) for name in vars(kind)} | declared.keys()
    # What a class defines by its right name, it does not misspell too.
    meant = [name for name in declared if name not in own]
    for name in sorted(own - known):
        if close := get_close_matches(name, meant, 1, MIN_SIMILARITY):
            yield (
                f"{type(component).__name__} defines {name}: did you mean {close[0]} of {declared[close[0]].__name__}? "
                "Correct the name, or begin it with an underscore"
            )


def _is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] in (_PACKAGE, "builtins")


def _iter_auths(auth: Any) -> Iterator[object]:
    if isinstance(auth, AnyAuth):
        for one in auth.auths:
            yield from _iter_auths(one)
    elif auth is not None:
        yield auth
