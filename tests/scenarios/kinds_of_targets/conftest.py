"""What is asked here is about targets: one store is enough, and what must outlast a restart is asked on a disk."""

from pathlib import Path

import pytest

from tests.scenarios.stores import choose


@pytest.fixture(autouse=True)
def kind_of_store(tmp_path: Path) -> str:
    choose("memory", tmp_path)
    return "memory"
