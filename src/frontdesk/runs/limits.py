"""Limits of background runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunLimits:
    """Limits of background runs: active, per caller, and waiting."""

    max_background_runs: int = 100
    max_background_runs_per_caller: int = 20
    max_waiting_background_runs: int = 1_000
