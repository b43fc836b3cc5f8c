"""The settings of the channel."""

from dataclasses import dataclass
from typing import Literal

from frontdesk.kit.auth.verifier import origin_findings
from frontdesk.kit.http.bodies import MAX_VALUES
from frontdesk.kit.http.limits import DEFAULT_LIMITS, Limits, limit_findings
from frontdesk.kit.http.sse import DEFAULT_TIMES, StreamTimes
from frontdesk.kit.outbound.fetching import NO_FETCHING, Fetching

Instructions = Literal["append", "ignore", "refuse"]

FORWARDED = frozenset(
    {
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "max_completion_tokens",
        "stop",
        "seed",
        "parallel_tool_calls",
        "tool_choice",
        "response_format",
        "reasoning_effort",
        "verbosity",
    }
)
FORWARDABLE = FORWARDED | {
    "model",
    "metadata",
    "user",
    "logit_bias",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
}


@dataclass(frozen=True, kw_only=True)
class ChatCompletionsConfig:
    """The settings of the channel; they check themselves."""

    max_body_bytes: int = 32 * 1024 * 1024
    max_body_values: int = MAX_VALUES
    max_messages: int = 2_000
    body_timeout: float = 60.0
    streams: StreamTimes = DEFAULT_TIMES
    allowed_origins: tuple[str, ...] = ()
    limits: Limits | None = DEFAULT_LIMITS
    instructions: Instructions = "append"
    force_host_tools: bool = False
    forward: frozenset[str] = FORWARDED
    fetching: Fetching = NO_FETCHING

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        positive = ("max_body_bytes", "max_body_values", "max_messages", "body_timeout")
        wrong = [f"{name} must be positive" for name in positive if getattr(self, name) <= 0]
        if self.instructions not in ("append", "ignore", "refuse"):
            wrong.append(f"instructions must be 'append', 'ignore' or 'refuse', not {self.instructions!r}")
        for name in sorted(self.forward - FORWARDABLE):
            wrong.append(f"forward: {name!r} is not one of {', '.join(sorted(FORWARDABLE))}")
        wrong += self.streams.findings() + self.fetching.findings()
        return wrong + origin_findings(self.allowed_origins) + limit_findings(self.limits)
