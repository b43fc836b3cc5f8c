"""Settings of the AG-UI channel."""

from dataclasses import dataclass

from frontdesk.http.channel import StreamingConfig, StreamingSettings

MAX_STATE_BYTES = 262_144
"""The limit of the host for the state that a session shares with its client."""


class AGUISettings(StreamingSettings, total=False):
    detached: bool
    max_state_bytes: int


@dataclass(frozen=True, kw_only=True)
class AGUIConfig(StreamingConfig):
    detached: bool = False
    max_state_bytes: int = MAX_STATE_BYTES

    def own_findings(self) -> list[str]:
        wrong: list[str] = []
        if not 0 < self.max_state_bytes <= MAX_STATE_BYTES:
            wrong.append(f"max_state_bytes must be from 1 to {MAX_STATE_BYTES}, not {self.max_state_bytes}")
        return wrong + super().own_findings()
