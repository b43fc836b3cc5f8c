"""A host is killed while it answers a message: what the next one does for it belongs to the same trace."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.forked import ForkedProcess, fork
from tests.testing.messages.starting import new_platform


class Told(NamedTuple):
    """A line of the output of a traced host."""

    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    what: str


async def _until(process: ForkedProcess, kind: str, what: str) -> list[Told]:
    """Return what is told until a span of a kind begins, or ends so."""
    told: list[Told] = []
    while not told or (told[-1].kind, told[-1].what) != (kind, what):
        line: Any = await process.stdout.readline()
        assert line
        if line.startswith(b"["):
            told.append(Told(*json.loads(line)))
    return told


async def test_a_message_its_run_and_its_delivery_are_one_trace_over_a_kill(tmp_path: Path) -> None:
    async with new_platform() as platform:
        ada = await platform.user("Ada")
        event = await platform.say(ada, "are you there?")
        where = (platform.url, platform.token, str(tmp_path))
        first = await fork("tests.faults.traced_host:main", *where, "wait")
        told = await _until(first, "run", "begun")
        await platform.wait_for_acknowledged(event)
        first.kill()
        await first.wait()
        second = await fork("tests.faults.traced_host:main", *where, "go")
        again = await _until(second, "delivery", "accepted")
        await platform.wait_for_answers(ada.chat_id, 1)
        second.kill()
        await second.wait()
    everything = [*told, *again]
    assert len({line.trace_id for line in everything}) == 1
    begun = [line for line in everything if line.what == "begun"]
    kinds = ["event", "request", "authorize", "run"]
    assert [line.kind for line in begun] == ["accept", *kinds, *kinds, "delivery"]
    spans = {line.span_id: line for line in begun}
    parents = {line.kind: spans[line.parent_id].kind for line in begun if line.parent_id}
    assert parents == {
        "event": "accept",
        "request": "event",
        "authorize": "request",
        "run": "request",
        "delivery": "run",
    }
