"""Settings of the Chat Completions channel."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from frontdesk.http.channel import StreamingConfig, StreamingSettings
from frontdesk.outbound.media import FetchingConfig, FetchingSettings

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


class ChatCompletionsSettings(StreamingSettings, FetchingSettings, total=False):
    instructions: Instructions
    force_host_tools: bool
    forward: Collection[str]
    max_messages: int


@dataclass(frozen=True, kw_only=True)
class ChatCompletionsConfig(StreamingConfig, FetchingConfig):
    instructions: Instructions = "append"
    force_host_tools: bool = False
    forward: Collection[str] = FORWARDED
    max_messages: int = 2_000

    positive = ("max_body_bytes", "max_body_values", "max_messages", "body_timeout")

    @cached_property
    def forwarded(self) -> frozenset[str]:
        return frozenset(self.forward)

    def own_findings(self) -> list[str]:
        wrong: list[str] = []
        if self.instructions not in ("append", "ignore", "refuse"):
            wrong.append(f"instructions must be 'append', 'ignore' or 'refuse', not {self.instructions!r}")
        for name in sorted(self.forwarded - FORWARDABLE):
            wrong.append(f"forward: {name!r} is not one of {', '.join(sorted(FORWARDABLE))}")
        return wrong + super().own_findings() + self.list_fetching_findings()
