"""Names of tools: short enough for any model, and different for different tools."""

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.openai.tools import ToolRef, function_name, merge, tool_refs

names = st.from_regex(r"\A[a-zA-Z0-9_-]{1,64}\Z")


@given(names, names)
def test_a_name_fits_and_says_what_it_can(name: str, namespace: str) -> None:
    assert function_name(name, None) == name
    made = function_name(name, namespace)
    assert 1 <= len(made) <= 64
    assert made.startswith(namespace[:50])


def test_two_long_names_that_begin_alike_stay_two() -> None:
    assert function_name("a" * 63 + "b", "n" * 20) != function_name("a" * 63 + "c", "n" * 20)


def test_tools_are_found_by_the_names_that_a_target_uses() -> None:
    inner = [{"type": "custom", "name": "patch"}]
    tools = [{"type": "function", "name": "look"}, {"type": "namespace", "name": "crm", "tools": inner}]
    assert tool_refs(tools) == {"look": ToolRef("function", "look"), "crm__patch": ToolRef("custom", "patch", "crm")}


def test_of_a_name_the_last_counts() -> None:
    old, new = {"type": "function", "name": "f", "description": "old"}, {"type": "function", "name": "f"}
    assert merge([old], [new, {"type": "custom", "name": "f"}]) == [new, {"type": "custom", "name": "f"}]
