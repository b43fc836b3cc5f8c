"""Checks the argument types of channels, so that a wrong type is reported as a finding."""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Concatenate, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from frontdesk.errors import ChannelConfigurationError

P = ParamSpec("P")
S = TypeVar("S")

_NAMES: dict[Any, str] = {str: "a string", int: "a whole number", float: "a number", bool: "True or False"}
FINDINGS = "argument_findings"
"""The attribute in which a channel keeps what is wrong with the types of its arguments."""


def checks_types(
    settings: type | None = None,
) -> Callable[[Callable[Concatenate[S, P], None]], Callable[Concatenate[S, P], None]]:
    """Check the argument types of a constructor. `settings` declares its further keyword arguments.

    An argument of a wrong type is recorded as a finding and replaced with its default, so that all findings can be
    reported together. Without a default it is an error immediately.
    """

    def decorate(make: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
        @wraps(make)
        def check_and_make(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            kinds, defaults = _read_types(make, settings)
            wrong = {name: finding for name, value in kwargs.items() if (finding := _find_mismatch(name, value, kinds))}
            if needed := [finding for name, finding in wrong.items() if name not in defaults]:
                raise ChannelConfigurationError(needed)
            for name in wrong:
                kwargs[name] = defaults[name]
            make(self, *args, **kwargs)
            # A base class may have checked settings too.
            setattr(self, FINDINGS, [*wrong.values(), *getattr(self, FINDINGS, ())])

        return check_and_make

    return decorate


def takes_settings(
    config: type,
) -> Callable[[Callable[Concatenate[S, P], None]], Callable[Concatenate[S, P], None]]:
    """Check the arguments of a constructor whose `**settings` are the fields of `config`.

    The signature shows every setting with its default. An unknown one is a `TypeError` that names the constructor.
    """

    def decorate(make: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
        check = checks_types(config)(make)
        parameters = inspect.signature(make).parameters.values()
        named = {one.name: one for one in parameters if one.kind is not one.VAR_KEYWORD}
        more = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field))
            for field in dataclasses.fields(config)
            if field.name not in named
        ]
        known = inspect.Signature([*named.values(), *more])

        @wraps(make)
        def check_and_make(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            for name in kwargs:
                if name not in known.parameters:
                    raise TypeError(f"{make.__qualname__}() got an unexpected keyword argument {name!r}")
            check(self, *args, **kwargs)

        check_and_make.__dict__["__signature__"] = known
        return check_and_make

    return decorate


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is dataclasses.MISSING else field.default_factory()


def type_finding(name: str, value: Any, kind: Any) -> str | None:
    """Return the finding for a value of a wrong type. None if it fits, or if the type is not checked.

    The value itself is not shown, because it may be a secret. A string is not accepted as a list of strings.
    """
    if _fits(value, kind):
        return None
    if isinstance(value, str) and _collection_in(kind):
        return f"{name}: got one string, put it into a list: [{value!r}]"
    if isinstance(value, float) and not isfinite(value):
        return f"{name} must be a finite number, got {value!r}"
    given = f"the class {value.__name__}" if inspect.isclass(value) else type(value).__name__
    # Settings written as a mapping.
    hint = f"; give {name}={kind_name}(...)" if isinstance(value, Mapping) and (kind_name := _settings_in(kind)) else ""
    return f"{name} must be {_words(kind)}, got {given}{hint}"


def _find_mismatch(name: str, value: Any, kinds: Mapping[str, Any]) -> str | None:
    return type_finding(name, value, kinds[name]) if name in kinds else None


@cache
def _read_types(make: Callable[..., None], settings: type | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the types of the arguments and their defaults."""
    kinds = _hints(make)
    parameters = inspect.signature(make).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
    if settings is not None:
        kinds = {**_hints(settings), **kinds}
        for field in dataclasses.fields(settings):
            if (default := _default(field)) is not inspect.Parameter.empty:
                defaults.setdefault(field.name, default)
    return kinds, defaults


def _hints(of: Any) -> dict[str, Any]:
    try:
        return get_type_hints(of)
    except NameError:
        # A name that only type checkers import.
        return {}


def _fits(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if kind is NoneType:
        return value is None
    if kind is float:
        return isinstance(value, (int, float)) and isfinite(value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    if _is_collection(kind):
        return _fits_collection(value, get_args(kind))
    return not _is_checked(kind) or isinstance(value, kind)


def _fits_collection(value: Any, parts: tuple[Any, ...]) -> bool:
    if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
        return False
    return not parts or all(_fits(part, parts[0]) for part in cast("Collection[Any]", value))


def _is_collection(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, Mapping)


def _collection_in(kind: Any) -> bool:
    return _is_collection(kind) or any(map(_is_collection, get_args(kind)))


def _is_checked(kind: Any) -> bool:
    """Return True for plain types and classes of this package. Interfaces and choices are checked elsewhere."""
    if kind in _NAMES:
        return True
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return False
    return kind.__module__.startswith("frontdesk.")


def _settings_in(kind: Any) -> str | None:
    """Return the name of the settings class that a type refers to, or None."""
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return next((one.__name__ for one in options if inspect.isclass(one) and dataclasses.is_dataclass(one)), None)


def _words(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_words(option) for option in get_args(kind))
    if kind is NoneType:
        return "None"
    if kind in _NAMES:
        return _NAMES[kind]
    if _is_collection(kind):
        parts = get_args(kind)
        if not parts:
            return "a list"
        return "a list of strings" if parts[0] is str else f"a list of {getattr(parts[0], '__name__', parts[0])}"
    return str(getattr(kind, "__name__", kind))
