"""What we promised ourselves, as questions to the rows of one contestant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.figures import Row, growth

JSON_RATIO = 0.45
DURABLE_JSON_RATIO = {"sqlite": 0.25, "postgres": 0.20}
STREAM_RATIO = 0.40
MEMORY_GROWTH_MIB = 3.0
MEMORY_GROWTH_PART = 0.03
TURN_GROWTH = 1.3
REAL_TURN_GROWTH = 1.5
FILLED_CHANGE = 0.2
GUARD_COST = 0.08
IMPORT_SECONDS = 0.6
IDLE_KIB = 45
NO_RACE = ("import", "start", "memory-0")
"""Rows in which nobody is ahead of anybody: they are about the packages, not about serving."""


@dataclass(frozen=True, slots=True)
class Verdict:
    met: bool
    text: str


def judge(rows: list[Row], label: str, peers: Sequence[str] = (), *, quick: bool) -> Iterator[Verdict]:
    """Only what was measured is judged; and a store that is still filling up to its bound says nothing about a leak."""
    by_key = {row.key: row for row in rows if label in row.figures}
    for key, least in (("json64", DURABLE_JSON_RATIO.get(label, JSON_RATIO)), ("stream32", STREAM_RATIO)):
        if row := by_key.get(key):
            ratio = row.ratio(label)
            yield Verdict(ratio >= least, f"{row.name}: {ratio:.2f} of bare, at least {least:.2f} wanted")
    if "memory-2" in by_key and not quick:
        yield judge_memory(by_key, label)
    if row := by_key.get("idle"):
        size = row.figures[label].middle
        yield Verdict(size <= IDLE_KIB, f"{row.name}: {size:.1f} KiB, at most {IDLE_KIB} wanted")
    if "turn200" in by_key:
        grown = by_key["turn200"].figures[label].middle / by_key["turn10"].figures[label].middle
        yield Verdict(grown <= TURN_GROWTH, f"turn 200: {grown:.2f} x turn 10, at most {TURN_GROWTH} wanted")
    yield from judge_growth(by_key, label)
    yield from judge_guards(by_key, label)
    if row := by_key.get("import_package"):
        seconds = row.figures[label].middle
        yield Verdict(seconds < IMPORT_SECONDS, f"{row.name}: {seconds:.2f} s, under {IMPORT_SECONDS} wanted")
    for peer in peers:
        yield judge_race(rows, label, peer)


def judge_growth(by_key: dict[str, Row], label: str) -> Iterator[Verdict]:
    """Of long conversations, and of full stores."""
    for key, most in (("long", TURN_GROWTH), ("agent", REAL_TURN_GROWTH)):
        if late := by_key.get(f"{key}-late"):
            grown = growth(by_key[f"{key}-early"], late, label)
            told = f"{late.name}: {grown:.2f} x turn 10, at most {most} wanted"
            if "bare" in late.figures:
                told += f" (without a host {growth(by_key[f'{key}-early'], late, 'bare'):.2f})"
            yield Verdict(grown <= most, told)
    for key in ("json64", "turn10"):
        if row := by_key.get(f"filled-{key}"):
            change = growth(by_key[f"empty-{key}"], row, label) - 1
            worse = -change if row.unit.endswith("/s") else change
            limit = f"at most {FILLED_CHANGE:.0%} worse wanted"
            yield Verdict(worse <= FILLED_CHANGE, f"{row.name}: {change:+.0%}, {limit}")


def judge_guards(by_key: dict[str, Row], label: str) -> Iterator[Verdict]:
    """By processor time: it says the same where other processes use the core too."""
    if row := by_key.get("guarded-cpu"):
        cost = growth(by_key["open-cpu"], row, label) - 1
        yield Verdict(
            cost < GUARD_COST, f"the gate and an API key: {cost:+.1%} of a request, under {GUARD_COST:.0%} wanted"
        )


def judge_race(rows: list[Row], label: str, peer: str) -> Verdict:
    run = [row for row in rows if {label, peer} <= set(row.figures) and not row.key.startswith(NO_RACE)]
    lost = [f"{row.key} ({row.lead(label, peer):.2f})" for row in run if row.lead(label, peer) < 1]
    behind = f"; behind in {', '.join(lost)}" if lost else ""
    return Verdict(not lost, f"ahead of {peer} in {len(run) - len(lost)} of {len(run)} rows, in all wanted{behind}")


def judge_memory(by_key: dict[str, Row], label: str) -> Verdict:
    before, after = (by_key[key].figures[label].middle for key in ("memory-1", "memory-2"))
    growth = after - before
    met = growth < MEMORY_GROWTH_MIB or growth < before * MEMORY_GROWTH_PART
    limits = f"under {MEMORY_GROWTH_MIB:.0f} MiB or {MEMORY_GROWTH_PART:.0%} wanted"
    return Verdict(met, f"{by_key['memory-2'].name}: {growth:+.1f} MiB since half of them, {limits}")
