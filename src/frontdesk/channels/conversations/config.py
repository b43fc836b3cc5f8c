"""What an operator can set."""

from dataclasses import dataclass

from frontdesk.kit.limits import Limits, limit_findings
from frontdesk.kit.verifier import origin_findings


@dataclass(frozen=True, kw_only=True)
class ConversationsConfig:
    """The settings of the channel; they check themselves."""

    callers_of: str = "responses"
    max_body_bytes: int = 32 * 1024 * 1024
    body_timeout: float = 60.0
    allowed_origins: tuple[str, ...] = ()
    limits: Limits | None = None

    def findings(self) -> list[str]:
        """What is wrong, a line each."""
        wrong = [f"{name} must be positive" for name in ("max_body_bytes", "body_timeout") if getattr(self, name) <= 0]
        if not self.callers_of:
            wrong.append("callers_of must be the name of a channel")
        return wrong + origin_findings(self.allowed_origins) + limit_findings(self.limits)
