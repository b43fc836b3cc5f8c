"""Output of commands: tables of records, and the audit log."""

import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.cli.terminal import visible
from frontdesk.loggers import audit


def print_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the columns of records, below their names."""
    lines = [columns, *([visible(cell(row[name])) for name in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def cell(value: Any) -> str:
    """Return a value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def show_audit() -> None:
    """Show the audit log on stderr, beside the output of the command."""
    audit.addHandler(logging.StreamHandler(sys.stderr))
    audit.setLevel(logging.INFO)
