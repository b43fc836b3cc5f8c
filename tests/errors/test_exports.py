"""What our own channels and auths raise, those of other authors raise too: it is exported where they look for it."""

import ast
from pathlib import Path

import pytest

import frontdesk
from frontdesk import errors
from frontdesk_testing import messages

PACKAGE = Path(frontdesk.__file__).parent
ROOMS = [PACKAGE / "channels", PACKAGE / "auth", Path(str(messages.__file__)).parent]
FILES = sorted(path for room in ROOMS for path in room.rglob("*.py"))


def _find_raised(tree: ast.Module) -> set[str]:
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    kinds = [error.func if isinstance(error, ast.Call) else error for error in raised]
    return {kind.id for kind in kinds if isinstance(kind, ast.Name) and hasattr(errors, kind.id)}


def test_channels_and_auths_raise_errors() -> None:
    raised = set[str]().union(*(_find_raised(ast.parse(path.read_text("utf-8"))) for path in FILES))
    assert {"UnauthenticatedError", "InvalidRequestError", "NotFoundError", "PushRefusedError"} <= raised


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_what_is_raised_is_exported(path: Path) -> None:
    raised = _find_raised(ast.parse(path.read_text("utf-8")))
    assert raised <= set(frontdesk.__all__)
    assert all(getattr(frontdesk, name) is getattr(errors, name) for name in raised)
