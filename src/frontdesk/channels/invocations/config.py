"""The settings of the channel."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from frontdesk.kit.auth.verifier import origin_findings
from frontdesk.kit.http.bodies import MAX_VALUES
from frontdesk.kit.http.limits import DEFAULT_LIMITS, Limits, limit_findings
from frontdesk.kit.http.sse import DEFAULT_TIMES, StreamTimes

ToolCalls = Literal["hide", "show"]
ExtraFields = Literal["refuse", "attributes"]


@dataclass(frozen=True, kw_only=True)
class InvocationsConfig:
    """The settings of the channel; they check themselves."""

    max_body_bytes: int = 4 * 1024 * 1024
    max_body_values: int = MAX_VALUES
    body_timeout: float = 30.0
    streams: StreamTimes = DEFAULT_TIMES
    allowed_origins: tuple[str, ...] = ()
    limits: Limits | None = DEFAULT_LIMITS
    tool_calls: ToolCalls = "hide"
    extra_fields: ExtraFields = "refuse"
    openapi_spec: Mapping[str, Any] | None = None

    def findings(self) -> list[str]:
        """List what is wrong, a line each."""
        wrong: list[str] = []
        if self.max_body_bytes < 1:
            wrong.append("max_body_bytes must be positive")
        if self.max_body_values < 1:
            wrong.append("max_body_values must be positive")
        if self.body_timeout <= 0:
            wrong.append("body_timeout must be positive")
        if self.tool_calls not in ("hide", "show"):
            wrong.append(f"tool_calls must be 'hide' or 'show', not {self.tool_calls!r}")
        if self.extra_fields not in ("refuse", "attributes"):
            wrong.append(f"extra_fields must be 'refuse' or 'attributes', not {self.extra_fields!r}")
        wrong += self._spec_findings()
        wrong += self.streams.findings()
        return wrong + origin_findings(self.allowed_origins) + limit_findings(self.limits)

    def _spec_findings(self) -> list[str]:
        spec: Any = self.openapi_spec
        if spec is None:
            return []
        if not isinstance(spec, Mapping):
            return [f"openapi_spec must be a mapping, not {type(spec).__name__}"]
        try:
            msgspec.json.encode(spec)
        except (TypeError, ValueError, RecursionError) as error:
            return [f"openapi_spec can't be written as JSON: {error}"]
        return []
