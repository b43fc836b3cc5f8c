"""What the pages about servers say is what the program and the files in deploy/ have."""

import inspect
import logging
import re
import shlex

from frontdesk import loggers
from frontdesk.cli.options import LOG_LEVELS, build_parser
from frontdesk.foundry.conventions import HOSTED
from frontdesk.host import config
from tests.docs.pages import ROOT, blocks, prose_of, tables
from tests.docs.test_reference import spans

PAGE = ROOT / "docs/guides/deploy.md"
PROXY_PAGE = ROOT / "docs/guides/reverse-proxy.md"
SYSTEMD_PAGE = ROOT / "docs/guides/systemd.md"


def test_every_option_of_serve_is_told() -> None:
    commands = next(one for one in vars(build_parser())["_actions"] if isinstance(one.choices, dict))
    serve = commands.choices["serve"]
    options = {name for action in serve._actions for name in action.option_strings} - {"-h", "--help"}
    assert {name for row in tables(PAGE)["frontdesk serve"] for name in spans(row[0])} == options


def test_every_variable_that_is_read_is_told() -> None:
    read = {*re.findall(r'"([A-Z][A-Z_]{5,})"', inspect.getsource(config)), HOSTED}
    assert {name for row in tables(PAGE)["Environment variables"] for name in spans(row[0])} == read


def test_the_levels_and_the_loggers_are_those_of_the_program() -> None:
    assert {spans(row[0])[0] for row in tables(PAGE)["Logs"]} == set(LOG_LEVELS) - {"critical"}
    names = {value.name for value in vars(loggers).values() if isinstance(value, logging.Logger)}
    told = prose_of(PAGE).partition("below the one called")[2].partition("## TLS")[0]
    assert {f"frontdesk.{name}" for name in spans(told)} == names


def test_the_page_shows_the_lines_of_the_file_for_nginx() -> None:
    (shown,) = [block.text for block in blocks("nginx") if block.page == PROXY_PAGE]
    lines = [line.strip() for line in (ROOT / "deploy/nginx.conf").read_text("utf-8").splitlines()]
    ours = [line for line in lines[lines.index("location / {") :] if line and not line.startswith("#")]
    assert [line.strip() for line in shown.splitlines()] == ours[: ours.index("}") + 1]
    for row in tables(PROXY_PAGE)["nginx"]:
        for name in spans(row[0]):
            assert name in shown


def test_the_unit_is_told_with_the_seconds_that_it_has() -> None:
    unit = (ROOT / "deploy/frontdesk.service").read_text("utf-8")
    told = prose_of(SYSTEMD_PAGE)
    assert "TimeoutStopSec=30" in unit
    assert "waits for 30 seconds" in told
    assert "RestartSec=2" in unit
    assert "after two seconds" in told


def test_the_commands_of_containers_and_users_can_be_given() -> None:
    pages = [ROOT / f"docs/guides/{name}.md" for name in ("docker", "systemd")]
    typed = [
        line for page in pages for line in re.findall(r"\bfrontdesk (?:runs|keys) [^`\n]+", page.read_text("utf-8"))
    ]
    assert len(typed) == 3
    for line in typed:
        build_parser().parse_args(shlex.split(line)[1:])
