"""The table, the verdicts, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.figures import Row
from bench.subjects.base import Subject
from bench.targets import Verdict

NAME_WIDTH = 50
UNIT_WIDTH = 11
VALUE_WIDTH = 17
RATIO_WIDTH = 8


def facts_text(facts: dict[str, str]) -> str:
    return "\n".join(f"{name:22}{value}" for name, value in facts.items())


def table_text(rows: list[Row], labels: list[str]) -> str:
    """A value and its spread between rounds for each contestant, and the ratio to the first one."""
    first, *others = labels
    head = f"{'':{NAME_WIDTH + UNIT_WIDTH}}{first:>{VALUE_WIDTH}}"
    head += "".join(f"{label:>{VALUE_WIDTH}}{'ratio':>{RATIO_WIDTH}}" for label in others)
    return "\n".join([head, *(line_text(row, labels) for row in rows)])


def contestants_text(subjects: list[Subject]) -> str:
    """How each of them was run, where that is not said by its name."""
    return "\n".join(
        f"{subject.name}: {'under uvicorn as it is' if subject.plain else subject.served}"
        for subject in subjects
        if subject.served
    )


def line_text(row: Row, labels: list[str]) -> str:
    line = f"{row.name:{NAME_WIDTH}}{row.unit:{UNIT_WIDTH}}"
    for place, label in enumerate(labels):
        figure = row.figures.get(label)
        value = ""
        if figure:
            spread = f"±{figure.spread / 2:.0%}" if len(figure.rounds) > 1 else ""
            value = f"{number_text(figure.middle)} {spread:>5}"
        line += f"{value:>{VALUE_WIDTH}}"
        if place:
            ratio = f"{row.ratio(label):.2f}" if figure and labels[0] in row.figures else ""
            line += f"{ratio:>{RATIO_WIDTH}}"
    return f"{line}  {row.note}".rstrip()


def number_text(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def verdicts_text(verdicts: list[Verdict]) -> str:
    return "\n".join(f"{'PASS' if verdict.met else 'MISS'}  {verdict.text}" for verdict in verdicts)


def rows_as_json(rows: list[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {
            "key": row.key,
            "name": row.name,
            "unit": row.unit,
            "note": row.note,
            "median": {label: figure.middle for label, figure in row.figures.items()},
            "rounds": {label: figure.rounds for label, figure in row.figures.items()},
            "ratio": {label: row.ratio(label) for label in list(row.figures)[1:]},
        }
