"""What is said about the commands for operators is so."""

from typing import Any

from frontdesk.admin import http_api, queries, socket_file
from frontdesk.admin.queries import IDS
from frontdesk.cli.operator_options import KINDS, LIMIT
from frontdesk.cli.options import build_parser
from frontdesk.stores.sql.migrations.chat import FEWER_INDEXES, OPERATOR_LISTS
from tests.docs.pages import ROOT, prose_of, tables
from tests.docs.test_reference import spans

PAGE = ROOT / "docs/reference/cli.md"


def test_every_kind_is_documented_with_its_filters_and_actions() -> None:
    rows = {spans(name)[0]: row for name, *row in tables(PAGE)["Kinds"]}
    assert rows.keys() == KINDS.keys()
    for name, (_, named, filters, actions) in rows.items():
        assert spans(named)[-1] == IDS[queries.check_kind(name)]
        assert [option.removeprefix("--") for option in spans(filters)] == list(KINDS[name].filters)
        assert spans(actions) == list(KINDS[name].actions)
    statuses = {spans(name)[0]: tuple(spans(row)) for name, row in tables(PAGE)["Statuses"]}
    assert statuses == {name: kind.statuses for name, kind in KINDS.items() if kind.statuses}


def _options(parser: Any) -> set[str]:
    found = {name for action in parser._actions for name in action.option_strings}
    choices = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    return found.union(*(_options(child) for children in choices for child in children.values()))


def test_every_option_is_documented() -> None:
    commands = next(one for one in vars(build_parser())["_actions"] if isinstance(one.choices, dict))
    options = set[str]().union(*(_options(commands.choices[name]) for name in KINDS)) - {"-h", "--help"}
    filters = {f"--{name}" for kind in KINDS.values() for name in kind.filters}
    documented = {spans(name)[0] for name, _ in tables(PAGE)["Options"]}
    assert documented == (options - filters) | {"--since", "--by"}


def test_the_indexes_to_build_before_an_update_are_those_of_the_steps() -> None:
    how = (ROOT / "docs/internals/migrations.md").read_text("utf-8")
    shown = [line.replace(" CONCURRENTLY", "").rstrip(";") for line in how.splitlines() if line.startswith("CREATE")]
    assert len(shown) == 7
    assert set(shown) <= {*OPERATOR_LISTS, *FEWER_INDEXES}
    dropped = {line.removeprefix("DROP INDEX IF EXISTS ") for line in FEWER_INDEXES if line.startswith("DROP")}
    assert not dropped & {line.split()[5] for line in shown}


def test_the_figures_are_those_of_the_code() -> None:
    told = prose_of(PAGE)
    assert f"{LIMIT} if not given" in told
    assert f"by pages of {queries.MAX_PAGE_ROWS}" in told
    assert f"looks at {queries.MAX_SCANNED:,} rows" in told
    assert f"at most {socket_file.MAX_BODY_BYTES // 1024} KiB" in told
    assert f"for {http_api.IDLE_SECONDS:.0f} seconds. There are {http_api.MAX_CONNECTIONS} at most" in told
    how = prose_of(ROOT / "docs/guides/operate.md")
    assert "at most 107 bytes, 103 on macOS" in how
    assert f"{queries.MAX_SCANNED:,} rows at most" in how
