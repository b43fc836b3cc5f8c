"""What clients know, and what is wrong with what a host remembers. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Literal, Self

Said = Sequence[tuple[str, str]]
"""A history: roles and texts."""


@dataclass
class Tally:
    """The counts of one part of a marathon."""

    kills: int = 0
    acknowledged: int = 0
    unknown: int = 0
    lost: int = 0
    doubled: int = 0
    disordered: int = 0
    busy: int = 0
    refused: int = 0
    questions: int = 0
    questions_lost: int = 0
    payments: int = 0
    payments_lost: int = 0
    payments_doubled: int = 0

    WRONG = ("lost", "doubled", "disordered", "busy", "refused", "questions_lost", "payments_lost", "payments_doubled")

    @property
    def wrong(self) -> int:
        """How much went wrong."""
        return sum(getattr(self, name) for name in self.WRONG)

    def add(self, other: Self) -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass
class Question:
    """A payment that waits for a word, and what its client knows of it."""

    approval_id: str
    item: str
    state: Literal["pending", "unknown", "answered", "used"] = "pending"


@dataclass
class Book:
    """One client's account of its session."""

    name: str
    last: int = 0
    acknowledged: list[str] = field(default_factory=list[str])
    """The texts that were answered, in order."""
    unknown: list[str] = field(default_factory=list[str])
    """Those whose answer never came: they may have happened, once."""
    questions: list[Question] = field(default_factory=list[Question])

    def next(self, word: str = "") -> str:
        """The text of the next turn."""
        self.last += 1
        return f"{word}{self.name}:{self.last}"

    def judge(self, said: Said, tally: Tally, *, exactly: bool = False) -> None:
        """Holds a history against the account; `exactly` if nothing but what was acknowledged may be in it."""
        asked = [text for role, text in said if role == "user"]
        counts = Counter(asked)
        tally.lost += sum(1 for text in self.acknowledged if counts[text] == 0)
        tally.doubled += sum(count - 1 for count in counts.values() if count > 1)
        numbers = [int(text.rpartition(":")[2]) for text in asked]
        tally.disordered += sum(1 for one, other in pairwise(numbers) if other < one)
        tally.lost += _count_unanswered(said, self.acknowledged)
        if exactly:
            tally.doubled += sum(1 for text in asked if text not in self.acknowledged)


def _count_unanswered(said: Said, texts: Iterable[str]) -> int:
    """How many of some plain questions have no answer right behind them."""
    answered = {one[1] for one, other in pairwise(said) if other == ("assistant", f"heard {one[1]}")}
    kept = {text for _, text in said}
    return sum(1 for text in texts if " " not in text and text in kept and text not in answered)


def judge_payments(books: Iterable[Book], payments: Sequence[str], tally: Tally) -> None:
    """Holds the ledger against what was allowed, over all sessions."""
    made = Counter(payments)
    tally.payments += len(payments)
    tally.payments_doubled += sum(count - 1 for count in made.values() if count > 1)
    for question in (one for book in books for one in book.questions):
        if question.state == "answered" and not made[question.item]:
            tally.payments_lost += 1
        if question.state == "pending" and made[question.item]:
            tally.payments_doubled += 1
