"""Ids in the form of Foundry's service."""

import re

import pytest

from frontdesk.foundry.conventions import ITEM_PREFIXES, foundry_response_id, get_partition, is_response_id, item_id

_OLDER = "resp_" + "a" * 32 + "0123456789abcdef"


def test_a_response_id_has_a_partition_and_an_entropy() -> None:
    made = foundry_response_id()
    assert re.fullmatch(r"caresp_[0-9a-f]{16}00[0-9A-Za-z]{32}", made)
    assert made != foundry_response_id()
    assert is_response_id(made)


def test_a_chain_and_its_items_stay_in_one_partition() -> None:
    first = foundry_response_id()
    later = foundry_response_id(first)
    assert get_partition(later) == get_partition(first) is not None
    for kind in ITEM_PREFIXES:
        assert get_partition(item_id(kind, later)) == get_partition(first)


def test_the_id_of_an_item_can_be_the_same_each_time() -> None:
    beside = foundry_response_id()
    assert item_id("message", beside, "one") == item_id("message", beside, "one")
    assert item_id("message", beside, "one") != item_id("message", beside, "two")
    assert item_id("message", beside) != item_id("message", beside)


def test_older_ids_have_their_partition_at_the_end() -> None:
    assert get_partition(_OLDER) == "0123456789abcdef00"
    assert foundry_response_id(_OLDER).startswith("caresp_0123456789abcdef00")


@pytest.mark.parametrize(
    "value", [None, "", "caresp", "resp_1", "ses_" + "a" * 50, "caresp_" + "a" * 49, "caresp_" + "ä" * 50]
)
def test_other_texts_are_no_response_ids(value: str | None) -> None:
    assert not is_response_id(value)
    assert re.fullmatch(r"caresp_[0-9A-Za-z]{50}", foundry_response_id(value))
