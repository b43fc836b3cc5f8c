"""What the tests of both databases share."""

from pathlib import Path

import pytest

from tests.stores.sql.bases import Base


@pytest.fixture(params=["sqlite", "postgres"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    """A place for a store, with nothing in it."""
    if request.param == "sqlite":
        return Base("sqlite", str(tmp_path / "frontdesk.db"))
    return Base("postgres", request.getfixturevalue("postgres"))


@pytest.fixture(params=["sqlite", "postgres"])
def base_with_tables(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    """A place for a store, with its tables; on SQLite they are made as soon as it is opened."""
    if request.param == "sqlite":
        return Base("sqlite", str(tmp_path / "frontdesk.db"))
    return Base("postgres", request.getfixturevalue("postgres_tables"))
