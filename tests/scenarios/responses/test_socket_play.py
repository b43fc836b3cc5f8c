"""Whatever a client does on a connection, in whatever order, every response ends once and nothing is left behind."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.models.run import FINAL
from tests.examples import examples
from tests.scenarios.desk import until
from tests.scenarios.responses.cast import build_answering
from tests.scenarios.responses.desk import open_client
from tests.scenarios.responses.sockets import LAST, Line, dial
from tests.scenarios.stores import choose

# It draws examples until it has enough, and other processes may use the same cores.
pytestmark = pytest.mark.timeout(300)

LANES = [None, "a", "b"]

MOVES = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(LANES), st.booleans(), st.sampled_from(["new", "last", "unknown"])),
    st.tuples(st.just("cancel"), st.sampled_from(LANES)),
    st.tuples(st.just("nonsense")),
    st.tuples(st.just("read")),
)


def _fail(messages: Any) -> Any:
    return [RuntimeError("no")] if messages[-1].text.endswith("7") else ["one ", "two ", "three"]


@examples(30)
@given(st.lists(MOVES, max_size=12), st.booleans())
def test_every_response_ends_once(tmp_path: Path, moves: list[tuple[Any, ...]], leaves: bool) -> None:
    choose("memory", tmp_path)
    asyncio.run(_play(moves, leaves))


async def _play(moves: list[tuple[Any, ...]], leaves: bool) -> None:
    async with open_client(build_answering(_fail)) as desk:
        before = len(asyncio.all_tasks())
        async with dial(desk) as line:
            told: list[Any] = []
            asked = wrong = 0
            for number, move in enumerate(moves):
                if move[0] == "read":
                    if asked + wrong > len(_ends(told)):
                        told.append(await line.receive())
                    continue
                asked += move[0] == "create"
                wrong += move[0] == "nonsense"
                await _make(line, move, number, told)
            if not leaves:
                while len(_ends(told)) < asked + wrong:
                    told.append(await line.receive())
                counts = Counter(event["response"]["id"] for event in told if event["type"] in LAST[:3])
                assert set(counts.values()) <= {1}
                begun = [event["response"]["id"] for event in told if event["type"] == "response.created"]
                assert set(begun) == set(counts)
        await until(lambda: not desk.active)
        await until(lambda: len(asyncio.all_tasks()) <= before)
        assert all(run.status in FINAL for run in desk.runs())


def _ends(told: list[Any]) -> list[Any]:
    return [event for event in told if event["type"] in LAST]


async def _make(line: Line, move: tuple[Any, ...], number: int, told: list[Any]) -> None:
    if move[0] == "nonsense":
        return await line.send({"type": "nonsense"})
    lane = {} if move[1] is None else {"stream_id": move[1]}
    if move[0] == "cancel":
        return await line.send({"type": "response.cancel", **lane})
    ended = [event["response"]["id"] for event in _ends(told) if event["type"] != "error"]
    previous = {"new": None, "unknown": "resp_unknown", "last": ended[-1] if ended else None}[move[3]]
    await line.create(f"turn {number}", store=move[2], previous_response_id=previous, **lane)
