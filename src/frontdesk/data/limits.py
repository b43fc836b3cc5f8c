"""Limits that an operator sets on callers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RateLimit:
    """So many requests in so many seconds; `burst` of them may come at once, which is all of them if not given."""

    requests: int
    per_seconds: float = 60.0
    burst: int | None = None

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        wrong: list[str] = []
        if self.requests < 1:
            wrong.append("requests must be at least 1")
        if self.per_seconds <= 0:
            wrong.append("per_seconds must be positive")
        if self.burst is not None and self.burst < 1:
            wrong.append("burst must be at least 1")
        return wrong


@dataclass(frozen=True, kw_only=True)
class EventLimits:
    """Limits for what one person sends to a chat channel. `None` means no limit."""

    per_caller: RateLimit | None = None
    """The rate of one person's messages, and apart from them of their control events; counted by each process."""
    max_waiting_per_caller: int | None = None
    """The number of one person's messages that may wait on the channel, those that are being answered included."""
    max_callers: int = 10_000
    """The number of people whose rates are counted separately. When there are more at once, the others share one."""

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        wrong = [] if self.per_caller is None else [f"per_caller: {finding}" for finding in self.per_caller.findings()]
        for name in ("max_waiting_per_caller", "max_callers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                wrong.append(f"{name} must be at least 1")
        return wrong
