"""Imports the host named on the command line."""

import inspect
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import frontdesk
from frontdesk.cli.options import Reference
from frontdesk.cli.terminal import CommandError
from frontdesk.errors import ChannelConfigurationError
from frontdesk.host import AgentFrameworkHost
from frontdesk.host.app import HostApp

T = TypeVar("T")

_OS = (os.__file__, "<frozen os>")
_UNEXPECTED = re.compile(r"(?P<called>\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(?P<name>\w+)'")

_FOREIGN = {str(Path(sysconfig.get_path(name))) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_FOREIGN.add(str(Path(frontdesk.__file__).parent))


def load_host(reference: Reference, state_dir: str | None = None) -> AgentFrameworkHost:
    """Load a host. Raises `ChannelConfigurationError` for findings, `CommandError` for any other mistake."""
    sys.path.insert(0, os.getcwd())
    module = _from_file(reference) if reference.is_file else _by_name(reference)
    if not hasattr(module, reference.name):
        raise CommandError(_describe_missing(reference, module))
    value: Any = getattr(module, reference.name)
    if isinstance(value, AgentFrameworkHost):
        if state_dir is not None:
            raise CommandError(
                f"--state-dir: {reference} is an already configured host. Pass state_dir= to it, "
                "or reference a function that takes state_dir and returns a host"
            )
        return value
    if not (inspect.isroutine(value) or type(value) is partial):
        advice = "" if value is None else _advice(value)
        raise CommandError(f"{reference} is {_kind(value)}, not a host or a function that returns one{advice}")
    return _call(reference, cast(Callable[..., Any], value), {} if state_dir is None else {"state_dir": state_dir})


def _by_name(reference: Reference) -> ModuleType:
    try:
        return _guard(reference, lambda: import_module(reference.module))
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{reference}: module {error.name!r} not found, neither in {os.getcwd()} nor installed"
        ) from None


def _from_file(reference: Reference) -> ModuleType:
    path = Path(reference.module)
    if not path.is_file():
        raise CommandError(f"{reference}: file {reference.module!r} not found")
    sys.path.insert(0, str(path.resolve().parent))
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "frontdesk_host"
    spec = spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise CommandError(f"{reference}: {reference.module!r} is not a Python file")
    module = sys.modules[name] = module_from_spec(spec)
    loader = spec.loader
    _guard(reference, lambda: loader.exec_module(module))
    return module


def _call(reference: Reference, make: Callable[..., Any], settings: dict[str, Any]) -> AgentFrameworkHost:
    if inspect.iscoroutinefunction(make):
        raise CommandError(
            f"{reference} is an async function. It must be a host or a sync function that returns one. "
            "Move awaits at startup to on_startup= of the host"
        )
    try:
        inspect.signature(make).bind(**settings)
    except (TypeError, ValueError) as error:
        how = "with nothing but state_dir, for --state-dir" if settings else "without arguments"
        raise CommandError(f"cannot call {reference}() {how}: {error}. Give its other parameters defaults") from None
    host = _guard(reference, lambda: make(**settings))
    if not isinstance(host, AgentFrameworkHost):
        raise CommandError(f"{reference}() returned {_kind(host)}, not a host{_advice(host)}")
    return host


def _guard(reference: Reference, work: Callable[[], T]) -> T:
    try:
        return work()
    except ChannelConfigurationError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and _leads_to(error.name or "", reference):
            raise
        raise CommandError(f"{reference}: {_place(error)}: {_describe_error(error)}") from None


def _describe_error(error: BaseException) -> str:
    """Return an error in one line. For a missing environment variable, explain how to set it."""
    if isinstance(error, KeyError) and traceback.extract_tb(error.__traceback__)[-1].filename in _OS:
        return f"the environment variable {error.args[0]} is not set: export {error.args[0]}=..."
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{_similar(error)}"


def _similar(error: BaseException) -> str:
    """Return the parameter that was probably meant, after an error about an unknown one."""
    wrong = _UNEXPECTED.match(str(error)) if isinstance(error, TypeError) else None
    if wrong is None:
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if not _is_foreign(frame.f_code.co_filename)]
    named = {**frames[-1].f_globals, **frames[-1].f_locals} if frames else {}
    try:
        known = inspect.signature(named[wrong["called"]]).parameters
    except (KeyError, TypeError, ValueError):
        return ""
    return "".join(f"; did you mean {name!r}?" for name in get_close_matches(wrong["name"], known, n=1))


def _leads_to(name: str, reference: Reference) -> bool:
    return not reference.is_file and f"{reference.module}.".startswith(f"{name}.")


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return f"{_shorten_path(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_foreign(frame.filename)]
    frame = (own or frames)[-1]
    return f"{_shorten_path(frame.filename)}:{frame.lineno}"


def _is_foreign(filename: str) -> bool:
    return filename.startswith("<") or not _FOREIGN.isdisjoint(map(str, Path(filename).parents))


def _shorten_path(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(os.getcwd())) if path.is_relative_to(os.getcwd()) else filename


def _describe_missing(reference: Reference, module: ModuleType) -> str:
    hosts = [name for name, value in vars(module).items() if _is_host(value, module)]
    hint = f"; it has {', '.join(hosts)}" if hosts else ""
    return f"{reference}: {reference.module} has no {reference.name!r}{hint}"


def _is_host(value: Any, module: ModuleType) -> bool:
    """Return True for a host, or for a function of the module that is annotated to return one."""
    if isinstance(value, AgentFrameworkHost):
        return True
    returned: Any = getattr(value, "__annotations__", {}).get("return") if inspect.isfunction(value) else None
    own = getattr(value, "__module__", None) == module.__name__
    return own and returned in (AgentFrameworkHost, AgentFrameworkHost.__name__)


def _advice(value: Any) -> str:
    """Return a hint about the probable intent of a value that is not a host."""
    if inspect.iscoroutine(value):
        value.close()
        return "; an async function was called without await: let a plain function build the host"
    if isinstance(value, HostApp):
        return "; it is the app of one: name the host itself"
    return "; is a return missing?" if value is None else ""


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"an object of type {type(value).__name__}"
