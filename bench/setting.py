"""What a server is started with, beside its subject."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Target = Literal["stub", "agent", "tools"]
"""stub: costs nothing. agent: the framework's own `Agent`. tools: the same with a tool, and so with the client's loop
around function calls."""

Door = Literal["open", "guarded"]
"""open: everyone on this machine comes in. guarded: an API key is needed, and an allowlist is asked."""


@dataclass(frozen=True, slots=True)
class Setting:
    sample: Path | None = None
    """What the bare app sends."""
    state: str = ""
    """A directory, or what it takes to connect to a database; empty for a host that keeps its state in memory."""
    target: Target = "stub"
    door: Door = "open"

    def arguments(self) -> list[str]:
        """The same on a command line."""
        given = ["--sample", str(self.sample)] if self.sample else []
        given += ["--state", self.state] if self.state else []
        return [*given, "--target", self.target, "--door", self.door]
