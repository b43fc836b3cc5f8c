"""Whoever says whatever in whatever order, at once or not: each is told only of their own, and of all of it once."""

import asyncio
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.scenarios.desk import open_client
from tests.scenarios.kinds_of_targets.kinds import KINDS, Mind

CALLERS = ("anna", "ben", "cleo")
TURNS = st.lists(
    st.tuples(st.sampled_from(CALLERS), st.sampled_from(["say", "pay", "stream"])), min_size=4, max_size=10
)


class Talk:
    """What one caller has said and heard, in order."""

    def __init__(self, name: str, desk: Any) -> None:
        self.name = name
        self.desk = desk
        self.said: list[str] = []
        self.number = 0

    async def go(self, ways: list[str], asks: bool) -> None:
        for way in ways:
            self.number += 1
            await (self._pay() if way == "pay" and asks else self._say(way == "stream"))

    async def _say(self, stream: bool) -> None:
        words = f"{self.name} {self.number}"
        if stream:
            answer = (await self.desk.events(words, session_id=self.name))[-1].data
        else:
            answer = (await self.desk.ask(words, session_id=self.name)).json()
        assert answer["text"] == f"you said {words}", answer
        self.said += [words, f"you said {words}"]

    async def _pay(self) -> None:
        amount = 100 * CALLERS.index(self.name) + self.number
        run = (await self.desk.ask(f"pay {amount}", session_id=self.name)).json()
        (question,) = run["approvals"]
        answer = await self.desk.post({"approval": {"id": question["id"], "approved": True}})
        assert answer.json()["text"] == "it is paid", answer.text
        self.said += [f"pay {amount}", "it is paid"]


@pytest.mark.parametrize("kind", ["workflow as agent", "duck that remembers in its state", "duck that delegates"])
@given(turns=TURNS)
# A host is started for each example: to look for a shorter one would take minutes.
@examples(8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_each_caller_has_one_conversation(kind: str, turns: list[tuple[str, str]]) -> None:
    mind = Mind()

    async def play() -> dict[str, list[str]]:
        async with open_client(KINDS[kind].make(mind), **KINDS[kind].options()) as desk:
            talks = {name: Talk(name, desk) for name in CALLERS}
            ways = {name: [way for caller, way in turns if caller == name] for name in CALLERS}
            await asyncio.gather(*(talks[name].go(ways[name], KINDS[kind].asks) for name in CALLERS))
            for talk in talks.values():
                await talk.go(["say"], asks=False)
            return {name: talk.said for name, talk in talks.items()}

    said = asyncio.run(play())
    for name, heard in zip(CALLERS, mind.heard[-len(CALLERS) :], strict=True):
        # The answer to the last question was not heard any more.
        assert heard == said[name][:-1]
    paid = [int(one.removeprefix("pay ")) for texts in said.values() for one in texts if one.startswith("pay ")]
    assert sorted(mind.paid) == sorted(paid)
