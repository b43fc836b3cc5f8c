"""Input and output for a terminal or a pipe."""

import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.errors import FrontdeskError
from frontdesk.loggers import audit


class Terminal:
    """Reads lines and writes text. A pipe gets no prompts, and answers are plain lines."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        self._in_line = False
        if self.interactive:
            try:
                # With it, `input` has a history and can move the cursor.
                import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]
            except ImportError:
                return

    def read(self, prompt: str) -> str | None:
        """Return the next line, or None at the end of the input."""
        if self.interactive:
            try:
                return input(prompt).strip()
            except EOFError:
                print()
                return None
        line = sys.stdin.readline()
        return line.strip() if line else None

    def write(self, text: str) -> None:
        shown = printable(text)
        print(shown, end="", flush=True)
        if shown:
            self._in_line = not shown.endswith("\n")

    def end_line(self) -> None:
        if self._in_line:
            print(flush=True)
        self._in_line = False

    def tell(self, text: str) -> None:
        """Print a line of the program itself."""
        self.end_line()
        print(printable(text), flush=True)

    def complain(self, text: str) -> None:
        """Print an error as one line."""
        self.end_line()
        print(f"error: {' '.join(printable(text).split())}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Remove the characters that could control the terminal."""
    return "".join(char for char in text if char in "\n\t" or not (char < " " or "\x7f" <= char < "\xa0"))


def visible(text: str) -> str:
    """Escape all invisible characters, in a text that a human bases a decision on."""
    # Imported here, so that `--help` imports no types of records.
    from frontdesk.display.escaping import escape_line

    return escape_line(text)


def print_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    lines = [columns, *([visible(cell(row[name])) for name in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def name_cells(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with display names: quoted, with a short id, and marked unless verified."""
    from frontdesk.display.person_names import plain_name, short_id

    if kind == "people":
        return {**row, "name": _name_cell(plain_name(row.get("shown_name", row.get("name"))), row.get("name_verified"))}
    if kind == "approvals":
        name, verified = row.get("requester_name"), row.get("requester_name_verified")
        return {**row, "requester": _name_cell(name, verified, short_id(str(row.get("requester") or "")))}
    if kind == "audit":
        return {**row, **{f"{field}_name": _audit_cell(row, field) for field in ("by", "person")}}
    return dict(row)


def _audit_cell(line: Mapping[str, Any], field: str) -> str:
    from frontdesk.display.person_names import short_id

    native_id, channel = line.get(f"{field}_id"), line.get(f"{field}_channel")
    account = f"{short_id(native_id)} on {channel}" if native_id else ""
    return _name_cell(line.get(f"{field}_name"), line.get(f"{field}_name_verified"), account)


def _name_cell(name: str | None, verified: bool | None, account: str = "") -> str:
    if not name:
        return account
    more = ", ".join(filter(None, ("" if verified else "unverified", account)))
    return f"“{name}” ({more})" if more else f"“{name}”"


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def show_audit() -> None:
    """Print the audit log to stderr, separate from the output of the command."""
    audit.addHandler(logging.StreamHandler(sys.stderr))
    audit.setLevel(logging.INFO)


class CommandError(FrontdeskError):
    """The command can't continue. The message says what to change."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def list_findings(subject: str, findings: Sequence[str]) -> str:
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    return "\n".join([f"{subject}: {count}", *(f"- {finding}" for finding in findings)])
