"""Runs the code of the documents."""

import importlib.util
import sys
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from frontdesk import AgentFrameworkHost


def module_of(name: str, code: CodeType) -> dict[str, Any]:
    """What is in the module that some code makes; a real one, because type annotations are looked up there."""
    module = ModuleType(f"documents.{name}")
    sys.modules[module.__name__] = module
    try:
        exec(code, module.__dict__)  # noqa: S102
    finally:
        del sys.modules[module.__name__]
    return module.__dict__


def example(path: Path) -> AgentFrameworkHost:
    """A new host, as an example builds it."""
    return example_module(path).host


def example_module(path: Path) -> ModuleType:
    """Return an example as a new module."""
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
