"""Settings of the Invocations channel."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from frontdesk.http.channel import StreamingConfig, StreamingSettings
from frontdesk.models.request import SessionMode

ToolCalls = Literal["hide", "show"]
ExtraFields = Literal["refuse", "attributes"]


class InvocationsSettings(StreamingSettings, total=False):
    session_mode: SessionMode
    tool_calls: ToolCalls
    extra_fields: ExtraFields
    openapi_spec: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class InvocationsConfig(StreamingConfig):
    max_body_bytes: int = 4 * 1024 * 1024
    body_timeout: float = 30.0
    session_mode: SessionMode = "auto"
    tool_calls: ToolCalls = "hide"
    extra_fields: ExtraFields = "refuse"
    openapi_spec: Mapping[str, Any] | None = None

    def own_findings(self) -> list[str]:
        wrong: list[str] = []
        if self.tool_calls not in ("hide", "show"):
            wrong.append(f"tool_calls must be 'hide' or 'show', not {self.tool_calls!r}")
        if self.extra_fields not in ("refuse", "attributes"):
            wrong.append(f"extra_fields must be 'refuse' or 'attributes', not {self.extra_fields!r}")
        return wrong + self._spec_findings() + super().own_findings()

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
