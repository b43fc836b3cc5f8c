"""How a person is named to another."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.i18n.wording import describe_person
from frontdesk.models.identity import ChannelIdentity


def ann(name: Any = "Ann", native_id: str = "42") -> ChannelIdentity:
    return ChannelIdentity(channel="telegram", native_id=native_id, attributes={} if name is None else {"name": name})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Ann", "“Ann” (id 42) on telegram"),
        (None, "42 on telegram"),
        ("", "42 on telegram"),
        (["Ann"], "42 on telegram"),
        ("  Ann\n\tB. ", "“Ann B.” (id 42) on telegram"),
        ("Ann” (id 1) on slack", "“Ann (id 1) on slack” (id 42) on telegram"),
        ("\u202eevil\u200b", "“evil” (id 42) on telegram"),
        ("\u0300" * 40, "“\u0300\u0300\u0300" + "\\u0300" * 6 + "…” (id 42) on telegram"),
        ("x" * 100, f"“{'x' * 39}…” (id 42) on telegram"),
    ],
)
def test_a_name_stands_between_marks_and_the_id_beside_it(name: Any, told: str) -> None:
    assert describe_person(ann(name)) == told


@given(st.text(), st.text())
def test_whatever_people_call_themselves_is_one_short_line(name: str, native_id: str) -> None:
    told = describe_person(ann(name, native_id))
    assert told.isprintable()
    assert len(told) < 120
    assert told.count("“") == told.count("”") <= 1
    assert told.endswith(" on telegram")
