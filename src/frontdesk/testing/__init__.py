"""Deprecated aliases of the distribution `frontdesk-testing`. Version 0.3 removes them.

`frontdesk.testing.name` is `frontdesk_testing.name`, and `frontdesk.testing.module` is `frontdesk_testing.module`. The
exception is `ScriptedChatClient`, which is in `frontdesk.scripted`.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any, cast

from frontdesk.errors.base import install_hint

_OLD, _NEW = __name__, "frontdesk_testing"

# Names that `__getattr__` resolves.
# pyright: reportUnsupportedDunderAll=false
__all__ = [
    "CRASH_POINTS",
    "AuthContract",
    "ChannelContract",
    "ChatContract",
    "ChatFile",
    "ChatPerson",
    "CrashPlan",
    "EchoAgent",
    "FailingAgent",
    "FakeClock",
    "FakeIds",
    "FakePlatform",
    "GatedAgent",
    "HostClient",
    "MembershipPlatform",
    "RecordedSpan",
    "RecordingTelemetry",
    "RunnerContract",
    "ScriptedChatClient",
    "ServerSentEvent",
    "ShownMessage",
    "StoreContract",
    "TcpProxy",
    "crashing",
    "parse_sse",
    "serving",
    "serving_app",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {_OLD!r} has no attribute {name!r}")
    module = "frontdesk.scripted" if name == "ScriptedChatClient" else _NEW
    warnings.warn(
        f"{_OLD}.{name} is deprecated. Import {name} from {module}.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(_import(module), name)


def __dir__() -> list[str]:
    return __all__


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != _NEW:
            raise
        raise _build_missing_error(name) from None


def _build_missing_error(name: str) -> ModuleNotFoundError:
    hint = install_hint("testing")
    return ModuleNotFoundError(f"{name} is in the package frontdesk-testing, which is not installed: {hint}", name=_NEW)


class _Alias(MetaPathFinder, InspectLoader):
    """Imports `frontdesk.testing.x` as the module `frontdesk_testing.x`, also for `python -m`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{_OLD}."):
            return None
        found = self._find(fullname)
        if found is None:
            return None
        spec = ModuleSpec(fullname, self, is_package=found.submodule_search_locations is not None)
        spec.origin = found.origin
        return spec

    def exec_module(self, module: ModuleType) -> None:
        new = _new_name(module.__name__)
        warnings.warn(f"{module.__name__} is deprecated. Import {new}.", DeprecationWarning, stacklevel=2)
        # The import system takes the module from here: both names are one module, whose classes are the same.
        sys.modules[module.__name__] = _import(new)

    def get_code(self, fullname: str) -> CodeType | None:
        found = self._find(fullname)
        return None if found is None else cast("InspectLoader", found.loader).get_code(found.name)

    def get_source(self, fullname: str) -> str | None:
        found = self._find(fullname)
        return None if found is None else cast("InspectLoader", found.loader).get_source(found.name)

    def _find(self, fullname: str) -> ModuleSpec | None:
        new = _new_name(fullname)
        try:
            return find_spec(new)
        except ModuleNotFoundError as error:
            if error.name != _NEW:
                raise
            raise _build_missing_error(new) from None


def _new_name(old: str) -> str:
    return _NEW + old.removeprefix(_OLD)


# Before the finder of files: the path of an aliased package is that of the new one, which would load its modules twice.
sys.meta_path.insert(0, _Alias())
