"""How much of everything one run does."""

from __future__ import annotations

from dataclasses import dataclass

STREAM_DELTAS = 200
LONG_TURNS = 2_000
AGENT_TURNS = 200
FILLED_TURNS = 50
"""In each session of a filled store; a turn is two messages."""


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: int
    round_seconds: float
    warm_seconds: float
    first_event_streams: int
    memory_requests: int
    idle_streams: int
    imports: int
    starts: int
    conversations: int
    long_conversations: int
    agent_conversations: int
    filled_rounds: int
    filled_sessions: int


FULL = Plan(
    rounds=7,
    round_seconds=1.2,
    warm_seconds=0.5,
    first_event_streams=300,
    memory_requests=20_000,
    idle_streams=1_000,
    imports=7,
    starts=5,
    conversations=25,
    long_conversations=3,
    agent_conversations=8,
    filled_rounds=5,
    filled_sessions=10_000,
)

QUICK = Plan(
    rounds=3,
    round_seconds=0.4,
    warm_seconds=0.2,
    first_event_streams=100,
    memory_requests=3_000,
    idle_streams=200,
    imports=3,
    starts=2,
    conversations=3,
    long_conversations=1,
    agent_conversations=3,
    filled_rounds=2,
    filled_sessions=1_000,
)
