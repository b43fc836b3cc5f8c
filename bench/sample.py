"""The bytes that a host under test really sends, for the bare app to send as well."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sample:
    """One JSON answer, and the events of one stream. Text, since both wires are UTF-8."""

    answer: str
    events: list[str]
    idle_count: int = 2

    @property
    def idle_events(self) -> list[str]:
        """What an idle stream has sent before it waits: the start and one delta."""
        return self.events[: self.idle_count]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> Sample:
        return cls(**json.loads(path.read_text()))


def split_events(body: bytes, end: bytes) -> list[str]:
    """The events of a whole stream, each with its end."""
    parts = body.split(end)
    if parts.pop().strip():
        raise ValueError("the stream ends in the middle of an event")
    return [(part + end).decode() for part in parts]


def make_up_sample(deltas: int) -> Sample:
    """For a run of the bare app alone: about what a host sends."""
    ids = {"id": "run_" + "0" * 28, "session_id": "ses_" + "0" * 28}
    answer = json.dumps({**ids, "status": "completed", "text": "Hello, this is the answer."})
    update = 'event: update\ndata: {"text":"word "}\n\n'
    start = f"event: started\ndata: {json.dumps(ids)}\n\n"
    end = f"event: completed\ndata: {answer}\n\n"
    return Sample(answer=answer, events=[start, *[update] * deltas, end])
