"""A part of the benchmarks with a command of its own: its options, and its report."""

from __future__ import annotations

import argparse
from collections.abc import Coroutine
from typing import Any, Protocol

import uvloop

from bench.figures import Line


class Measure(Protocol):
    """Measures, and returns the lines of the report."""

    def __call__(self, *, quick: bool) -> Coroutine[Any, Any, list[Line]]: ...


def options_of(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return the options that all parts have."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--quick", action="store_true", help="a smoke run; its figures are rough")
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    return parser


def report(lines: list[Line], *, strict: bool) -> int:
    """Print the lines; return the exit code."""
    print("\n".join(map(str, lines)))
    return int(strict and any(line.met is False for line in lines))


def run(module: str, description: str | None, measure: Measure) -> int:
    """Run a part as its options say."""
    args = options_of(module, description).parse_args()
    return report(uvloop.run(measure(quick=args.quick)), strict=args.strict)
