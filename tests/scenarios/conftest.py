"""A scenario is played on a store that needs no server, memory or SQLite; `--store` plays all of them on one."""

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from tests.scenarios.stores import KINDS, choose


@pytest.fixture(autouse=True)
def kind_of_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Choose the store: what a parameter or the option says, or else the one that falls to the test by its name.

    That the stores do the same is for the contract of stores to ask; each has half of the scenarios beside that.
    """
    drawn = KINDS[crc32(request.node.name.encode()) % len(KINDS)]
    kind: str = getattr(request, "param", None) or request.config.getoption("store") or drawn
    choose(kind, tmp_path)
    yield kind
    choose("memory", tmp_path)
