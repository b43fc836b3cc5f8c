"""Every scenario is played on every store that needs no server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.stores import KINDS, choose


@pytest.fixture(autouse=True, params=KINDS)
def kind_of_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    choose(request.param, tmp_path)
    yield request.param
    choose("memory", tmp_path)
