"""What it takes to reach Postgres: the library, and an address."""

import subprocess
import sys

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from frontdesk import ChannelConfigurationError, PostgresStateStore, Secret
from frontdesk.errors.base import install_hint


@pytest.mark.parametrize("missing", ["psycopg", "psycopg_pool"])
def test_without_the_library_it_says_what_to_install(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom frontdesk import PostgresStateStore"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    told = f"ImportError: PostgresStateStore needs psycopg: {install_hint('postgres')}"
    assert ended.stderr.splitlines()[-1] == told


@pytest.mark.parametrize(
    "conninfo", ["host=localhost password=hunter2 hunter3", "postgresql://ada:hunt%zzer2@localhost/state"]
)
def test_an_address_that_is_wrong_once_put_its_password_into_the_log(conninfo: str) -> None:
    with pytest.raises(ChannelConfigurationError) as told:
        PostgresStateStore(conninfo)
    assert "hunt" not in str(told.value)


async def test_an_address_can_be_a_secret(postgres: str) -> None:
    store = PostgresStateStore(Secret(postgres))
    await store.open()
    await store.close()
    with pytest.raises(ChannelConfigurationError) as told:
        PostgresStateStore(Secret("postgresql://ada:hunter2%zz@localhost/state"))
    assert "hunter2" not in str(told.value)


async def test_options_of_the_address_once_had_no_effect(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA desk")
    store = PostgresStateStore(make_conninfo(postgres, options="-c search_path=desk"))
    await store.open()
    await store.close()
    with psycopg.connect(postgres) as connection:
        found = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'sessions'").fetchall()
    assert found == [("desk",)]
