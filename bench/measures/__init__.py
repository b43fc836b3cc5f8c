"""What is measured, by the name that `--only` takes, in the order of the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bench.arena import Arena
from bench.figures import Row
from bench.measures.filled import measure_filled
from bench.measures.first_event import measure_first_event
from bench.measures.guarded import measure_guarded
from bench.measures.memory import measure_idle_streams, measure_memory
from bench.measures.startup import measure_imports, measure_starts
from bench.measures.throughput import measure_fresh, measure_json, measure_paced, measure_stream
from bench.measures.turns import measure_long_turns, measure_real_turns, measure_turns

Measure = Callable[[Arena], Awaitable[list[Row]]]

MEASURES: dict[str, Measure] = {
    "json": measure_json,
    "stream": measure_stream,
    "fresh": measure_fresh,
    "paced": measure_paced,
    "first": measure_first_event,
    "turns": measure_turns,
    "long": measure_long_turns,
    "agent": measure_real_turns,
    "filled": measure_filled,
    "guarded": measure_guarded,
    "memory": measure_memory,
    "idle": measure_idle_streams,
    "import": measure_imports,
    "start": measure_starts,
}
