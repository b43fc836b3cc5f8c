"""The settings of the channel."""

from dataclasses import dataclass, fields
from typing import Literal

from frontdesk.kit.auth.verifier import origin_findings
from frontdesk.kit.http.bodies import MAX_VALUES
from frontdesk.kit.http.limits import DEFAULT_LIMITS, Limits, limit_findings
from frontdesk.kit.http.run_ids import RunIdFactory
from frontdesk.kit.http.server_limits import SEND_SECONDS
from frontdesk.kit.http.sse import DEFAULT_TIMES, StreamTimes
from frontdesk.kit.outbound.fetching import NO_FETCHING, Fetching

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
    """The limits of WebSockets."""

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
        """List what is wrong, a line each."""
        names = (field.name for field in fields(self))
        return [f"sockets: {name} must be positive" for name in names if getattr(self, name) <= 0]


@dataclass(frozen=True)
class Bodies:
    """The limits of a body: its size, and the time it may take."""

    max_bytes: int = 32 * 1024 * 1024
    max_values: int = MAX_VALUES
    timeout: float = 60.0
    max_items: int = 2_000

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        values = {
            "max_body_bytes": self.max_bytes,
            "max_body_values": self.max_values,
            "body_timeout": self.timeout,
            "max_items": self.max_items,
        }
        return [f"{name} must be positive" for name, value in values.items() if value <= 0]


@dataclass(frozen=True)
class HostRules:
    """The rules for the host's own tools and instructions: how much callers see of them, and may change."""

    shown: HostTools = "hide"
    forced: bool = False
    instructions: Instructions = "append"


@dataclass(frozen=True)
class Runs:
    """The way of runs: whether they are stored, whether they end with their readers, and how they are named."""

    store_policy: StorePolicy = "as_asked"
    finish_abandoned: bool = False
    ids: RunIdFactory | None = None


@dataclass(frozen=True, kw_only=True)
class ResponsesConfig:
    """The settings of the channel; they check themselves."""

    bodies: Bodies = Bodies()
    streams: StreamTimes = DEFAULT_TIMES
    allowed_origins: tuple[str, ...] = ()
    limits: Limits | None = DEFAULT_LIMITS
    own: HostRules = HostRules()
    runs: Runs = Runs()
    forward: frozenset[str] = FORWARDED
    fetching: Fetching = NO_FETCHING
    sockets: SocketLimits = SocketLimits()

    @property
    def host_tools(self) -> HostTools:
        """Return how the calls of the host's own tools appear."""
        return self.own.shown

    @property
    def instructions(self) -> Instructions:
        """Return what becomes of the instructions of a request."""
        return self.own.instructions

    @property
    def store_policy(self) -> StorePolicy:
        """Return which responses are stored."""
        return self.runs.store_policy

    @property
    def finish_abandoned(self) -> bool:
        """Return whether runs go on when their readers have left."""
        return self.runs.finish_abandoned

    @property
    def response_ids(self) -> RunIdFactory | None:
        """Return the factory of the ids of responses; without one the host makes them."""
        return self.runs.ids

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        wrong: list[str] = []
        if self.response_ids is not None and not callable(self.response_ids):
            wrong.append("response_id_factory must be a function of the id of the response that is continued, or None")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                wrong.append(f"{name} must be one of {', '.join(map(repr, allowed))}, not {getattr(self, name)!r}")
        for name in sorted(self.forward - FORWARDABLE):
            wrong.append(f"forward: {name!r} is not one of {', '.join(sorted(FORWARDABLE))}")
        wrong += self.bodies.findings() + self.streams.findings() + self.fetching.findings() + self.sockets.findings()
        return wrong + origin_findings(self.allowed_origins) + limit_findings(self.limits)


_CHOICES: dict[str, tuple[str, ...]] = {
    "host_tools": ("hide", "summary", "full"),
    "instructions": ("append", "ignore", "refuse"),
    "store_policy": ("as_asked", "always"),
}
