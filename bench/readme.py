"""`python -m bench.readme`: writes the table of the README from `bench/results.json`, which `bench.table` writes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.report import number_text
from bench.table import BARE, RESULTS, ROOT

README = ROOT / "README.md"
MARK = "<!-- bench -->\n"
SHOWN = (
    ("json-memory-cpu", "JSON, 64 connections: processor time of a request", "us"),
    ("sse-ready-cpu", "streams, 32 connections: processor time of an event", "us"),
    ("idle-stub", "1,000 idle streams: memory of each", "KiB"),
)
"""The rows of the table by their keys, with their names and units."""


def readme_table(results: Mapping[str, Any]) -> str:
    """Return the table of some results: our version, the peers and the bare app."""
    rows: dict[str, Any] = {row["key"]: row for row in results["rows"]}
    ours = results["facts"]["commits"].split(", ")[0]
    peers: dict[str, str] = results["peers"]
    labels = [ours, *peers, BARE]
    heads = ["Frontdesk", *peers.values(), "a bare Starlette app that sends the same bytes"]
    lines = [["the same stub agent behind the Responses API, one core", *heads], ["---"] * (len(labels) + 1)]
    for key, name, unit in SHOWN:
        medians: dict[str, float] = rows[key]["median"]
        lines.append([name, *(f"{number_text(medians[label])} {unit}" for label in labels)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_table(readme: str, table: str) -> str:
    """Return the README with another table behind its mark."""
    before, mark, behind = readme.partition(MARK)
    if not mark:
        raise ValueError(f"The README has no line {MARK.strip()!r}; write one where the table belongs.")
    _, _, rest = behind.partition("\n\n")
    return f"{before}{mark}{table}\n{rest}"


def write(results: Path = RESULTS, readme: Path = README) -> None:
    """Write the table of results into the README."""
    table = readme_table(json.loads(results.read_text("utf-8")))
    readme.write_text(with_table(readme.read_text("utf-8"), table), "utf-8")


if __name__ == "__main__":
    write()
    sys.exit()
