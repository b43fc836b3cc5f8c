"""The tree of errors in the package's docstring has every error, below its parents and with its status."""

import re
from types import ModuleType

from frontdesk import errors
from frontdesk.errors import FrontdeskError, RequestError, base, requests, service
from frontdesk.errors import base as phrase
from frontdesk.errors import service as push
from frontdesk.errors import service as store

_LINE = re.compile(r"^    ([│├└─ ]*)(\w+Error)(?: +(\d{3})$|$| )", re.MULTILINE)
MODULES: tuple[ModuleType, ...] = (base, phrase, push, requests, service, store)


def _classes() -> list[type[FrontdeskError]]:
    return [
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, FrontdeskError) and value.__module__ == module.__name__
    ]


def _read_tree() -> list[tuple[str, str, int | None]]:
    """Return each line of the tree: the parent, the error, and the status if there is one."""
    path: list[str] = []
    lines: list[tuple[str, str, int | None]] = []
    for branch, name, status in _LINE.findall(errors.__doc__ or ""):
        path = [*path[: len(branch) // 4], name]
        lines.append((path[-2] if len(path) > 1 else "", name, int(status) if status else None))
    return lines


def test_the_tree_has_every_error_below_each_of_its_parents() -> None:
    parents = {
        (parent.__name__, error.__name__)
        for error in _classes()
        for parent in error.__bases__
        if issubclass(parent, FrontdeskError)
    }
    drawn = [(parent, error) for parent, error, _ in _read_tree()]
    assert sorted(drawn) == sorted({("", "FrontdeskError"), *parents})


def test_the_tree_has_the_status_of_every_kind_of_request_error_and_those_below_share_it() -> None:
    statuses = {error.__name__: error.status for error in _classes() if issubclass(error, RequestError)}
    for parent, error, status in _read_tree():
        assert status == (statuses[error] if parent == "RequestError" else None), error
        if parent in statuses and parent != "RequestError":
            assert statuses[error] == statuses[parent], error


def test_the_package_has_every_name_of_its_modules() -> None:
    names = {
        name
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    assert set(errors.__all__) == names
