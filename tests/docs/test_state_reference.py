"""What is said about state is so: every parameter, every option of a move, and every figure."""

from frontdesk import InMemoryStateStore, PostgresStateStore, SqliteStateStore, errors
from frontdesk.cli.options import build_parser
from frontdesk.concurrency.timeouts import LEFT_ALONE_SECONDS
from frontdesk.interfaces.store import HostStateStore
from frontdesk.stores.sql import store as schema_watch
from frontdesk.stores.sql import sweeper
from frontdesk.stores.sql.migrations import steps
from frontdesk.stores.sql.migrations.schema import NewerStoreError
from frontdesk.stores.sql.move.endpoints import MoveError
from frontdesk.stores.sql.sessions import BYTES_KEPT
from tests.docs.pages import ROOT, prose_of, tables
from tests.docs.test_reference import spans

PAGE = ROOT / "docs/reference/state.md"
MOVE = ROOT / "docs/guides/move.md"
UPDATE = ROOT / "docs/guides/update.md"


def test_every_store_offers_what_the_page_says() -> None:
    named = {name for row in tables(PAGE)["What a store offers"] for name in spans(row[0])}
    offered = {name for name in [*vars(HostStateStore), "durable"] if not name.startswith("_")}
    assert named <= offered
    for store in (InMemoryStateStore(), SqliteStateStore("unopened.db"), PostgresStateStore("dbname=unopened")):
        assert all(hasattr(store, name) for name in offered)


def test_every_error_is_one() -> None:
    ours = {one.__name__ for one in (NewerStoreError, MoveError)} | set(vars(errors))
    assert {spans(name)[0] for name, _ in tables(PAGE)["Errors"]} <= ours
    assert errors.StoreUnavailableError().retry_after == 1.0


def test_the_figures_are_those_of_the_code() -> None:
    assert f"at most {sweeper.BATCH_ROWS} records" in prose_of(PAGE)
    assert f"reads the next {sweeper.PAGE:,}" in prose_of(PAGE)
    assert sweeper.SWEEP_INTERVAL_SECONDS == 60.0
    for page in ("sqlite", "postgres"):
        assert f"p to {BYTES_KEPT // 2**20} MiB of what" in prose_of(ROOT / f"docs/guides/{page}.md")


def test_the_figures_of_an_update_are_those_of_the_code() -> None:
    told = prose_of(UPDATE)
    assert f"{steps.BATCH_ROWS} in a transaction" in told
    assert ("within ten seconds" in told, schema_watch.SCHEMA_CHECK_SECONDS) == (True, 10.0)
    assert f"again after {LEFT_ALONE_SECONDS:.0f} seconds" in told
    error = errors.UnreadableRecordError()
    assert f"`{error.status}`, `{error.code}`, and `Retry-After: {error.retry_after:.0f}`" in told


def test_every_option_of_a_move_is_documented() -> None:
    commands = next(one for one in vars(build_parser())["_actions"] if isinstance(one.choices, dict))
    options = {name for one in vars(commands.choices["move-state"])["_actions"] for name in one.option_strings}
    rows = tables(MOVE)["Move from SQLite to Postgres, or back"]
    assert {spans(name)[0] for name, _ in rows} == options - {"-h", "--help"}
