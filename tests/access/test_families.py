"""Any sequence of links and their ends gives what a simple model says."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.stores.memory.store import InMemoryStateStore
from tests.access.linking import NAMES, Model, Step, desk, home, introduce, keys, play, play_for_real, who

names = st.sampled_from(NAMES)
links = st.tuples(st.just("link"), names, names)
ends = st.tuples(st.just("unlink"), names, st.just(""))


async def play_steps(steps: list[Step]) -> None:
    store, model = InMemoryStateStore(), Model()
    linker = desk(store)
    await introduce(store)
    for step in steps:
        await play_for_real(linker, step)
        play(model, step)
        assert await keys(store) == model.key
        for name in NAMES:
            await assert_sound(store, model, name)


async def assert_sound(store: InMemoryStateStore, model: Model, name: str) -> None:
    """Somebody's records agree with each other, and nothing of anybody else can be read."""
    record, link = await store.identities.find(who(name)), await store.identities.link(who(name))
    assert record is not None
    family = model.list_connected(name)
    assert record.isolation_key in {home(one) for one in family}
    # What can still be read is one's own, or of those with whom one is linked.
    assert set(record.archived) <= {home(one) for one in family} - {record.isolation_key}
    assert (record.isolation_key == home(name)) or home(name) in record.archived
    assert (link is not None) or family == {name}
    if link is not None:
        assert link.isolation_key == record.isolation_key
        assert link.previous_key == (None if record.isolation_key == home(name) else home(name))
        assert {one.identity.native_id for one in await store.identities.links(link.isolation_key)} == family


@given(st.lists(links | ends, max_size=12))
def test_any_sequence_of_links_and_their_ends_gives_what_the_model_says(steps: list[Step]) -> None:
    asyncio.run(play_steps(steps))


def test_a_chain_comes_apart_in_the_middle() -> None:
    steps: list[Step] = [("link", "b", "a"), ("link", "c", "b"), ("link", "d", "c"), ("unlink", "c", "")]
    asyncio.run(play_steps(steps))


def test_a_family_that_was_hung_on_another_by_a_leaf_comes_apart() -> None:
    steps: list[Step] = [("link", "b", "a"), ("link", "b", "c"), ("link", "d", "a"), ("unlink", "a", "")]
    asyncio.run(play_steps(steps))


def test_linking_somebody_with_themselves_leaves_them_alone() -> None:
    asyncio.run(play_steps([("link", "a", "a"), ("link", "b", "a"), ("unlink", "b", "")]))
