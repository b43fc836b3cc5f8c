"""Bounded dictionaries: nothing is lost before its time, and of too much the owner with the most loses."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.stores.memory.bounded_dict import FairBoundedDict

LIMIT = 6


def shelf() -> FairBoundedDict[str, str]:
    return FairBoundedDict(LIMIT, lambda key, owner: owner)


def owners(found: FairBoundedDict[str, str]) -> Counter[str]:
    return Counter(owner for _, owner in found.items())


def test_the_oldest_of_all_went_whosever_it_was() -> None:
    kept = shelf()
    for key in ("a1", "a2"):
        kept.put(key, "alice")
    kept.put("b1", "bob")
    for number in range(1_000):
        kept.put(f"m{number}", "mallory")
    assert owners(kept) == {"alice": 2, "bob": 1, "mallory": 3}
    assert "m999" in kept


def test_of_owners_with_as_many_the_one_goes_that_was_not_touched() -> None:
    kept = shelf()
    for number in range(LIMIT):
        kept.put(f"k{number}", f"owner {number}")
    kept.touch("k0")
    kept.put("new", "newcomer")
    assert "k0" in kept
    assert "k1" not in kept


def test_an_entry_whose_owner_is_known_later_counts_for_them() -> None:
    known: dict[str, str] = {}
    kept: FairBoundedDict[str, str] = FairBoundedDict(2, lambda key, _: known.get(key, key))
    for key in ("a", "m1", "m2"):
        kept.put(key, "")
    for key in ("m1", "m2"):
        known[key] = "mallory"
        kept.own(key)
    kept.put("b", "")
    assert "b" in kept
    assert len(kept) == 2


@given(st.lists(st.tuples(st.sampled_from("ptxo"), st.integers(0, 15), st.integers(0, 3))))
def test_it_keeps_its_bound_and_whoever_has_little_loses_nothing(steps: list[tuple[str, int, int]]) -> None:
    dropped: list[tuple[str, str]] = []
    kept: FairBoundedDict[str, str] = FairBoundedDict(
        LIMIT, lambda key, owner: owner, lambda key, owner: dropped.append((key, owner))
    )
    model: dict[str, str] = {}
    for step, number, owner in steps:
        key = f"{owner}-{number}"
        if step == "p":
            model[key] = str(owner)
            kept.put(key, str(owner))
        elif step == "t" and key in model:
            kept.touch(key)
        elif step == "x":
            assert kept.pop(key) == model.pop(key, None)
        elif step == "o":
            kept.own(key)
        for gone, whose in dropped:
            counts = Counter(model.values())
            assert counts[whose] == max(counts.values())
            del model[gone]
        dropped.clear()
        assert dict(kept.items()) == model
        assert len(kept) <= LIMIT
    assert all(len(share.keys) <= 2 * LIMIT + 18 for share in kept._shares.values())
    assert sum(map(len, kept._levels.values())) == len(kept._shares)
