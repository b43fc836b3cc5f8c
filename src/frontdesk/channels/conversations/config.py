"""The settings of the channel."""

from dataclasses import dataclass

from frontdesk.kit.auth.verifier import origin_findings
from frontdesk.kit.http.bodies import MAX_VALUES
from frontdesk.kit.http.limits import DEFAULT_LIMITS, Limits, limit_findings


@dataclass(frozen=True, kw_only=True)
class ConversationsConfig:
    """The settings of the channel; they check themselves."""

    callers_of: str = "responses"
    max_body_bytes: int = 32 * 1024 * 1024
    max_body_values: int = MAX_VALUES
    body_timeout: float = 60.0
    allowed_origins: tuple[str, ...] = ()
    limits: Limits | None = DEFAULT_LIMITS

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        names = ("max_body_bytes", "max_body_values", "body_timeout")
        wrong = [f"{name} must be positive" for name in names if getattr(self, name) <= 0]
        if not self.callers_of:
            wrong.append("callers_of must be the name of a channel")
        return wrong + origin_findings(self.allowed_origins) + limit_findings(self.limits)
