"""Settings of the Responses channel."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from frontdesk.http.channel import StreamingConfig, StreamingSettings
from frontdesk.http.run_ids import RunIdFactory
from frontdesk.http.server_limits import SEND_SECONDS
from frontdesk.models.request import SessionMode
from frontdesk.outbound.media import FetchingConfig, FetchingSettings

HostTools = Literal["hide", "summary", "full"]
Instructions = Literal["append", "ignore", "refuse"]
StorePolicy = Literal["as_asked", "always"]

FORWARDED = frozenset(
    {
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "max_output_tokens",
        "parallel_tool_calls",
        "tool_choice",
        "text",
        "reasoning",
    }
)
FORWARDABLE = FORWARDED | {
    "model",
    "store",
    "metadata",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "truncation",
    "top_logprobs",
}


@dataclass(frozen=True, kw_only=True)
class SocketLimits:
    max_open: int = 1_000
    """The most of them at once."""
    max_open_per_caller: int = 100
    max_message_bytes: int = 16 * 1024 * 1024
    messages_per_minute: int = 600
    """The most messages that one connection may send."""
    idle_seconds: float = 3_600.0
    """The seconds that a connection stays open on which nothing runs and nothing comes."""
    send_seconds: float = SEND_SECONDS
    """The seconds that a client may take to make room for the next event before it counts as gone."""
    max_kept_bytes: int = 256 * 1024 * 1024
    """The most bytes that all connections may remember together of responses that are not stored."""

    def findings(self) -> list[str]:
        names = (field.name for field in fields(self))
        return [f"sockets: {name} must be positive" for name in names if getattr(self, name) <= 0]


class ResponsesSettings(StreamingSettings, FetchingSettings, total=False):
    session_mode: SessionMode
    host_tools: HostTools
    force_host_tools: bool
    instructions: Instructions
    store_policy: StorePolicy
    forward: Collection[str]
    finish_abandoned: bool
    max_items: int
    compactor: Any
    sockets: SocketLimits
    response_id_factory: RunIdFactory | None


@dataclass(frozen=True, kw_only=True)
class ResponsesConfig(StreamingConfig, FetchingConfig):
    session_mode: SessionMode = "auto"
    host_tools: HostTools = "hide"
    force_host_tools: bool = False
    instructions: Instructions = "append"
    store_policy: StorePolicy = "as_asked"
    forward: Collection[str] = FORWARDED
    finish_abandoned: bool = False
    """Whether runs continue after their readers have disconnected."""
    max_items: int = 2_000
    compactor: Any = None
    sockets: SocketLimits = SocketLimits()
    response_id_factory: RunIdFactory | None = None

    positive = ("max_body_bytes", "max_body_values", "body_timeout", "max_items")

    @cached_property
    def forwarded(self) -> frozenset[str]:
        return frozenset(self.forward)

    def own_findings(self) -> list[str]:
        wrong: list[str] = []
        if self.response_id_factory is not None and not callable(self.response_id_factory):
            wrong.append("response_id_factory must be a function of the id of the response that is continued, or None")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                wrong.append(f"{name} must be one of {', '.join(map(repr, allowed))}, not {getattr(self, name)!r}")
        for name in sorted(self.forwarded - FORWARDABLE):
            wrong.append(f"forward: {name!r} is not one of {', '.join(sorted(FORWARDABLE))}")
        return wrong + super().own_findings() + self.list_fetching_findings() + self.sockets.findings()


_CHOICES: dict[str, tuple[str, ...]] = {
    "host_tools": ("hide", "summary", "full"),
    "instructions": ("append", "ignore", "refuse"),
    "store_policy": ("as_asked", "always"),
}
