"""Validates numeric settings. NaN is rejected explicitly, because checks such as `value < 1` miss it."""

from math import isfinite
from typing import Any


def count_finding(name: str, value: Any) -> str | None:
    """Return the finding for an invalid count setting, or None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{name} must be a whole number, got {_format_value(value)}"
    return f"{name} must be at least 1" if value < 1 else None


def seconds_finding(name: str, value: Any) -> str | None:
    """Return the finding for an invalid duration, or None."""
    if not is_finite_number(value):
        return f"{name} must be a finite number, got {_format_value(value)}"
    return f"{name} must be positive" if value <= 0 else None


def check_settings(kind: str, *findings: str | None) -> None:
    wrong = next((finding for finding in findings if finding is not None), None)
    if wrong is not None:
        raise ValueError(f"{kind}: {wrong}")


def is_finite_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _format_value(value: Any) -> str:
    # Anything else may be a secret.
    return repr(value) if isinstance(value, float) else type(value).__name__
