"""Figures: one value for each round, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """What one contestant did in each round."""

    rounds: list[float]

    @property
    def middle(self) -> float:
        return median(self.rounds)

    @property
    def spread(self) -> float:
        """From the least to the most, as a part of the middle."""
        return (max(self.rounds) - min(self.rounds)) / self.middle if self.middle else 0.0


@dataclass(slots=True)
class Row:
    """One line of the table. `figures` go by contestant, in their order."""

    key: str
    name: str
    unit: str
    figures: dict[str, Figure] = field(default_factory=dict[str, Figure])
    note: str = ""

    def add(self, label: str, *values: float) -> None:
        known = self.figures[label].rounds if label in self.figures else []
        self.figures[label] = Figure([*known, *values])

    def ratio(self, label: str, to: str = "") -> float:
        """To the first contestant or another: the middle of the rounds' ratios, where a slow moment hits both sides."""
        base, own = self.figures[to or next(iter(self.figures))], self.figures[label]
        if len(base.rounds) == len(own.rounds) and all(base.rounds):
            return median(mine / theirs for mine, theirs in zip(own.rounds, base.rounds, strict=True))
        return own.middle / base.middle if base.middle else 0.0

    def lead(self, label: str, over: str) -> float:
        """How much better than another contestant; below 1 it is worse."""
        ratio = self.ratio(label, over)
        return ratio if self.unit.endswith("/s") or not ratio else 1 / ratio


def growth(before: Row, after: Row, label: str) -> float:
    """What one contestant's figure became, as a part of what it was: the middle of the rounds' ratios."""
    pairs = zip(before.figures[label].rounds, after.figures[label].rounds, strict=True)
    return median(later / earlier for earlier, later in pairs)


def percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


@dataclass(frozen=True, slots=True)
class Line:
    """One figure with its name, and whether it met its target if it has one."""

    name: str
    text: str
    met: bool | None = None

    def __str__(self) -> str:
        return f"{self.name:<70} {self.text:>16}  {'' if self.met is None else 'met' if self.met else 'MISSED'}"
