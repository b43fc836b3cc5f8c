"""Whatever ids people put together, nobody reads or changes what is another's, nor learns that it is there."""

import asyncio
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.scenarios.ledger import Ledger
from tests.scenarios.ownership.calls import KINDS
from tests.scenarios.ownership.town import PEOPLE, Owner, Step, Town, make_up, open_town
from tests.scenarios.stores import new_store

picks = st.tuples(st.integers(0, 40), st.sampled_from([False, False, False, True]))
steps = st.builds(
    Step,
    person=st.sampled_from(sorted(PEOPLE)),
    kind=st.sampled_from(sorted(KINDS)),
    picks=st.tuples(picks, picks),
)
BEGINNINGS = ("ask", "ask for money", "ask later", "begin", "invoke", "invoke for money", "invoke later", "compact")


async def _play(story: list[Step]) -> None:
    async with open_town() as town:
        for step in story:
            await town.step(step)


@pytest.mark.timeout(300)
# A story is made of dozens of requests, and takes minutes to shrink; the step that fails says enough.
@examples(20, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(story=st.lists(steps, max_size=12), order=st.permutations(BEGINNINGS))
def test_no_ids_open_what_is_anothers(story: list[Step], order: list[str]) -> None:
    first = [Step(person, kind, ((0, False),)) for kind in order for person in PEOPLE]
    asyncio.run(_play([*first, *story]))


@pytest.mark.parametrize("kind", ["look at a run", "follow a run", "cancel a run"])
async def test_a_name_that_two_have_given_is_each_one_s_own(kind: str) -> None:
    async with open_town() as town:
        for person, step in (("alice", "invoke"), ("bob", "invoke"), ("bob", "invoke under a name"), ("bob", kind)):
            await town.step(Step(person, step, ((0, False),)))


async def _with_each_id(town: Town, kind: str) -> None:
    for number in range(len(town.owners)):
        await town.step(Step("bob", kind, ((number, True), (number, True))))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.wants])
async def test_each_request_with_each_id_of_anothers(kind: str) -> None:
    async with open_town() as town:
        for beginning in BEGINNINGS:
            await town.step(Step("alice", beginning, ((0, False),)))
        for known in (False, True):
            if known:
                await town.step(Step("bob", "ask", ()))
                await town.step(Step("bob", "invoke", ()))
            await _with_each_id(town, kind)


async def test_the_story_has_everything_to_steal() -> None:
    async with open_town() as town:
        for beginning in BEGINNINGS:
            await town.step(Step("alice", beginning, ((0, False),)))
        prefixes = {one for kind in KINDS.values() for one in kind.wants}
        assert {one for one in prefixes if any(owned.startswith(one) for owned in town.owners)} == prefixes
        assert set(town.owners.values()) == {Owner("alice", "openai"), Owner("alice", "invocations")}


class Leaky(Ledger):
    """A store in which one look-up forgets to ask whose it is."""

    def __init__(self, drawer: str) -> None:
        super().__init__(new_store())
        self._drawer = drawer
        self._owners: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        return _LeakyDrawer(found, self._owners) if name == self.__dict__["_drawer"] else found


class _LeakyDrawer:
    def __init__(self, drawer: Any, owners: set[str]) -> None:
        self._found = drawer
        self._owners = owners

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)

    async def get(self, owner: str, one: str) -> Any:
        self._owners.add(owner)
        found = [await self._found.get(some, one) for some in sorted(self._owners)]
        return next((record for record in found if record is not None), None)


@pytest.mark.parametrize(("drawer", "kind"), [("runs", "read"), ("conversations", "look"), ("approvals", "say yes")])
async def test_a_store_that_forgets_to_ask_whose_it_is_is_found_out(drawer: str, kind: str) -> None:
    async with open_town(Leaky(drawer)) as town:
        for beginning in BEGINNINGS:
            await town.step(Step("alice", beginning, ((0, False),)))
        with pytest.raises(AssertionError):
            await _steal(town, kind)


async def _steal(town: Town, kind: str) -> None:
    # Whoever owns something has been seen by the store.
    for path in ("read", "look", "say yes"):
        await town.step(Step("alice", path, ((0, False), (0, False))))
    for beginning in ("ask", "invoke"):
        await town.step(Step("bob", beginning, ()))
    await _with_each_id(town, kind)


def test_a_made_up_id_has_the_same_form() -> None:
    made = make_up("resp_0192f0c1a2b3ffff")
    assert made.startswith("resp_")
    assert (len(made), made != "resp_0192f0c1a2b3ffff") == (21, True)
