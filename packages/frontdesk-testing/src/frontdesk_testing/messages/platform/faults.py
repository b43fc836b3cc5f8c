"""The faults of the platform, selected by rules. Pure, except for the counts."""

import hashlib
from typing import Literal

import msgspec

FaultKind = Literal[
    "blocked",
    "not_found",
    "bad_request",
    "flood",
    "error",
    "unavailable",
    "timeout_before",
    "timeout_after",
    "cut_before",
    "cut_after",
    "slow",
    "reorder",
]

STATUS: dict[FaultKind, int] = {
    "blocked": 403,
    "not_found": 404,
    "bad_request": 400,
    "flood": 429,
    "error": 500,
    "unavailable": 503,
}
"""The status of the faults that are refusals."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A rule. Without a method or a chat it applies to all."""

    kind: FaultKind
    method: str = ""
    chat_id: str = ""
    user_id: str = ""
    """Another way to name a chat: the direct one of a user."""
    skip: int = 0
    """The number of calls that pass before the rule begins."""
    times: int | None = None
    """The number of times that it strikes; `None` for ever."""
    probability: float = 1.0
    seed: int = 0
    retry_after: float | None = None
    scope: Literal["chat", "bot"] = "chat"
    seconds: float = 30.0
    """The longest time for which a call is held."""
    behind: str = ""
    """The text of the edit behind which a `reorder` of an edit comes."""


class Faults:
    """The rules in order. The first match decides."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(self, fault: Fault) -> None:
        """Append a rule."""
        self._rules.append(_Rule(fault))

    def clear(self) -> None:
        """Remove all rules."""
        self._rules.clear()

    def counts(self) -> list[int]:
        """Return the number of matches of each rule."""
        return [rule.struck for rule in self._rules]

    def strike(self, method: str, chat_id: str) -> Fault | None:
        """Return the fault of a call, if there is one."""
        return next((rule.fault for rule in self._rules if rule.strikes(method, chat_id)), None)


class _Rule:
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.seen = 0
        self.struck = 0

    def strikes(self, method: str, chat_id: str) -> bool:
        fault = self.fault
        if (fault.method and fault.method != method) or (fault.chat_id and fault.chat_id != chat_id):
            return False
        if fault.times is not None and self.struck >= fault.times:
            return False
        self.seen += 1
        if self.seen <= fault.skip or not drawn(fault.seed, self.seen, fault.probability):
            return False
        self.struck += 1
        return True


def drawn(seed: int, number: int, probability: float) -> bool:
    """Return True with this probability, determined by the seed and the number."""
    if probability >= 1:
        return True
    digest = hashlib.blake2b(f"{seed}:{number}".encode(), digest_size=7).digest()
    return int.from_bytes(digest) < probability * 2**56
