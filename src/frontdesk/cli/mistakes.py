"""Errors of the command line, and how findings are listed."""

from collections.abc import Sequence

from frontdesk.errors import FrontdeskError


class CommandError(FrontdeskError):
    """The command can't go on; the text says what to change."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def list_findings(subject: str, findings: Sequence[str]) -> str:
    """Return all findings about a subject, a line each."""
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    return "\n".join([f"{subject}: {count}", *(f"- {finding}" for finding in findings)])
