"""What all tests share."""

import gc
import logging
from collections.abc import Iterator

import certifi
import pytest

# Before anything imports one of its modules: a part of a contract that is there already could not explain failures.
pytest.register_assert_rewrite("frontdesk_testing")

from tests.databases import (  # noqa: E402
    BEFORE_TRANSACTION_TIMEOUT,
    NEWEST,
    PostgresServer,
    postgres_server,
    require_postgres,
)
from tests.examples import load_profile  # noqa: E402
from tests.scenarios.stores import KINDS  # noqa: E402

load_profile()

# The directories with the longest tests: what begins late would keep one process busy while the others have ended.
LONG = tuple(
    f"tests/{part}/"
    for part in ["channels", "stores", "faults", "judge", "linkers", "runners", "access_matrix", "cli", "deploy"]
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make thorough` play every scenario on each of the stores, and all tests run on an older Postgres."""
    parser.addoption("--store", choices=KINDS, help="the store that every scenario is played on")
    parser.addoption("--postgres", type=int, default=NEWEST, help="the version of Postgres that tests run on")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long tests first."""
    items.sort(
        key=lambda item: next((place for place, part in enumerate(LONG) if item.nodeid.startswith(part)), len(LONG))
    )


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests themselves: there are thousands, and it would look at them every time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _log_levels() -> Iterator[None]:
    """Restore the levels of loggers: a command that a test runs in this process sets them for the whole process."""
    loggers = [logging.getLogger(name) for name in ("", "frontdesk", "frontdesk.audit", "uvicorn")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let clients trust a single authority: to read all of them takes 25 ms for each client, and no test calls one."""
    first, end, _ = certifi.contents().partition("-----END CERTIFICATE-----\n")
    bundle = tmp_path_factory.mktemp("certificates") / "one.pem"
    bundle.write_text(first + end, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certifi, "where", lambda: str(bundle))
        yield


@pytest.fixture(scope="session")
def postgres_of_this_process(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """One server for all tests of a process."""
    with postgres_server(require_postgres(int(request.config.getoption("--postgres") or 0))) as server:
        yield server


@pytest.fixture(scope="session")
def old_postgres_of_this_process() -> Iterator[PostgresServer]:
    """One server of a version that does not end transactions by itself, for all tests of a process."""
    with postgres_server(require_postgres(BEFORE_TRANSACTION_TIMEOUT)) as server:
        yield server


@pytest.fixture
def postgres(postgres_of_this_process: PostgresServer) -> Iterator[str]:
    """An empty database: what it takes to connect to it."""
    with postgres_of_this_process.database() as conninfo:
        yield conninfo


@pytest.fixture
def postgres_tables(postgres_of_this_process: PostgresServer) -> Iterator[str]:
    """A database with the tables of a store and no rows: it takes a tenth of the time of an empty one."""
    with postgres_of_this_process.tables() as conninfo:
        yield conninfo
