"""The state that a client and tools share: what changes it, what does not fit, and the patches of RFC 6902."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import SharedState, get_current_client_state, get_current_forwarded_props
from frontdesk.framework.state_updates import apply_patch, diff, state_in
from frontdesk.sessions.shared_state import MAX_STATE_BYTES, MAX_STATE_DEPTH

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 0.5])
    | st.sampled_from(["", "a", "~/"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["", "a", "b/c", "d~e"]), inner),
    max_leaves=12,
)


@given(values, values)
def test_a_diff_turns_one_value_into_the_other(old: Any, new: Any) -> None:
    patched = apply_patch(copy.deepcopy(old), diff(old, new))
    # Compared as JSON: Python takes `True`, `1` and `1.0` for equal.
    assert json.dumps(patched, sort_keys=True) == json.dumps(new, sort_keys=True)


@given(values)
def test_what_is_the_same_has_no_diff(value: Any) -> None:
    assert diff(value, copy.deepcopy(value)) == []


# Examples of RFC 6902, appendix A.
@pytest.mark.parametrize(
    ("value", "operation", "expected"),
    [
        ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": "qux"}, {"foo": "bar", "baz": "qux"}),
        ({"foo": ["bar", "baz"]}, {"op": "add", "path": "/foo/1", "value": "qux"}, {"foo": ["bar", "qux", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, {"op": "remove", "path": "/baz"}, {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, {"op": "remove", "path": "/foo/1"}, {"foo": ["bar", "baz"]}),
        ({"baz": "qux"}, {"op": "replace", "path": "/baz", "value": "boo"}, {"baz": "boo"}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            {"op": "move", "from": "/foo/waldo", "path": "/qux/thud"},
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        ({"foo": ["a", "b", "c"]}, {"op": "move", "from": "/foo/0", "path": "/foo/2"}, {"foo": ["b", "c", "a"]}),
        ({"foo": ["bar"]}, {"op": "add", "path": "/foo/-", "value": ["abc", "def"]}, {"foo": ["bar", ["abc", "def"]]}),
        ({"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": 10}, {"/": 9, "~1": 10}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": 1}, {"op": "replace", "path": "", "value": [2]}, [2]),
    ],
)
def test_operations_of_a_patch(value: Any, operation: dict[str, Any], expected: Any) -> None:
    assert apply_patch(value, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/a/b/c", "value": 1},
        {"op": "add", "path": "/list/9", "value": 1},
        {"op": "add", "path": "/list/01", "value": 1},
        {"op": "remove", "path": "/none"},
        {"op": "remove", "path": "/list/-"},
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "test", "path": "/a", "value": True},
        {"op": "move", "from": "/deep", "path": "/deep/er"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "shout", "path": "/a", "value": 1},
        {"op": "add", "path": "/a"},
        {},
        1,
    ],
)
def test_a_patch_that_can_not_be_applied_changes_nothing(operation: Any) -> None:
    state = SharedState({"a": 1, "list": [1], "deep": {}})
    with pytest.raises(ValueError, match="Operation 1 of the patch"):
        state.patch([{"op": "add", "path": "/b", "value": 2}, operation])
    assert state.value == {"a": 1, "list": [1], "deep": {}}


def test_a_stream_has_a_snapshot_and_then_changes() -> None:
    state = SharedState({"steps": ["one"], "text": "x" * 200})
    assert _change(state) == ({"steps": ["one"], "text": "x" * 200}, ())
    assert state.take_update() is None
    with state.edit() as draft:
        draft["steps"].append("two")
    state.patch([{"op": "add", "path": "/done", "value": True}])
    assert _change(state)[1] == [
        {"op": "add", "path": "/steps/1", "value": "two"},
        {"op": "add", "path": "/done", "value": True},
    ]
    state.replace({"new": 1})
    assert _change(state)[0] == {"new": 1}
    state.replace({"new": 1})
    assert state.take_update() is None


def _change(state: SharedState) -> tuple[Any, Any]:
    update = state.take_update()
    assert update is not None
    assert not update.contents
    changed = state_in(update)
    assert changed is not None
    return changed


def test_a_state_that_nobody_has_set_is_not_sent() -> None:
    state = SharedState()
    assert state.take_update() is None
    assert not state.is_set
    with state.edit() as draft:
        draft["a"] = 1
    assert _change(state) == ({"a": 1}, ())


def test_edits_at_the_same_time_are_both_kept() -> None:
    state = SharedState({"a": 1, "b": 1})
    with state.edit() as first, state.edit() as second:
        first["a"], second["b"] = 2, 2
    assert state.value == {"a": 2, "b": 2}


def test_an_edit_that_fails_changes_nothing() -> None:
    state = SharedState({"a": 1})

    def fail() -> None:
        with state.edit() as draft:
            draft["a"] = 2
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert state.value == {"a": 1}


def test_a_value_is_a_copy() -> None:
    state = SharedState({"a": [1]})
    state.value["a"].append(2)
    assert state.value == {"a": [1]}


def _nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    ["x" * MAX_STATE_BYTES, _nest(MAX_STATE_DEPTH + 1), _nest(100_000), CYCLE, object(), "\ud83d"],
    ids=["large", "deep", "very deep", "cycle", "object", "half a character"],
)
def test_what_is_too_large_or_no_json_is_refused(value: Any) -> None:
    state = SharedState({"a": 1})
    with pytest.raises(ValueError, match="shared state"):
        state.replace(value)
    assert state.value == {"a": 1}


def test_the_largest_states_fit() -> None:
    state = SharedState("x" * (MAX_STATE_BYTES - 2))
    state.replace(_nest(MAX_STATE_DEPTH))
    assert state.value == _nest(MAX_STATE_DEPTH)


def test_outside_of_a_run_there_is_none() -> None:
    with pytest.raises(RuntimeError, match="outside of a run"):
        SharedState.current()
    assert get_current_client_state() is None
    assert get_current_forwarded_props() == {}
