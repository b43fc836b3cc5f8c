"""Which ids from outside are taken."""

import ast
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import InvalidRequestError
from frontdesk.identifiers import MAX_ID_LENGTH, is_named, is_plain_id, plain_id
from tests.architecture import sources

ROOT = Path(__file__).parents[1]
SAFE = string.ascii_letters + string.digits + "_:-."


@given(st.text(alphabet=SAFE, min_size=1, max_size=MAX_ID_LENGTH).filter(lambda value: not value.startswith(".")))
def test_plain_ids_are_taken_as_they_are(value: str) -> None:
    assert is_plain_id(value)
    assert plain_id(value, "id") == value


@given(st.text())
def test_what_is_taken_is_safe_everywhere(value: str) -> None:
    if is_plain_id(value):
        assert 0 < len(value.encode()) <= MAX_ID_LENGTH
        assert set(value) <= set(SAFE)
        assert value not in (".", "..")


@given(before=st.text(alphabet=SAFE, max_size=5), after=st.text(alphabet=SAFE, max_size=5), bad=st.characters())
def test_one_bad_character_is_enough(before: str, after: str, bad: str) -> None:
    if bad not in SAFE:
        assert not is_plain_id(before + bad + after)


@pytest.mark.parametrize(
    "value",
    [
        "",
        ".",
        "..",
        ".hidden",
        "../x",
        "a/b",
        "a\\b",
        "a b",
        "a\n",
        "\na",
        "a\r\nx: y",
        "a\0",
        "%2e%2e",
        "caf\u00e9",
        "\uff41",
        "\u0661",
        "x" * (MAX_ID_LENGTH + 1),
        "x" * 1_000_000,
    ],
    ids=lambda value: repr(value)[:20],
)
def test_odd_ids_are_refused_by_name(value: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        plain_id(value, "session_id")
    assert caught.value.param == "session_id"
    assert "session_id" in caught.value.message
    assert len(caught.value.message) < 200


def test_the_longest_id_is_taken() -> None:
    assert is_plain_id("x" * MAX_ID_LENGTH)


@pytest.mark.parametrize(
    ("name", "names", "same"),
    [
        ("delete", ("delete",), True),
        ("Delete", ("add", "delete"), True),
        ("delete", ("DELETE",), True),
        ("deletes", ("delete",), False),
        ("delete", (), False),
    ],
)
def test_a_name_in_another_case_is_the_same_name(name: str, names: tuple[str, ...], same: bool) -> None:
    assert is_named(name, names) is same


def loose(module: ast.Module) -> list[str]:
    """The patterns of a module that take a newline at the end of what they check."""
    matched = {
        node.func.value.id
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "match"
        and isinstance(node.func.value, ast.Name)
    }
    found: list[str] = []
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == "pattern" and isinstance(node.value, ast.Constant):
            found.append(str(node.value.value))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in matched:
            found += [str(one.value) for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
    return [one for one in found if one.endswith("$")]


def test_no_pattern_takes_a_newline_at_the_end() -> None:
    planted = '_N = re.compile(r"[a-z]+$")\n_N.match(x)\nName = Annotated[str, Meta(pattern="^[a-z]+$")]\n'
    assert sorted(loose(ast.parse(planted))) == ["[a-z]+$", "^[a-z]+$"]
    wrong = {name: found for name, module in sources(ROOT) if (found := loose(module))}
    assert wrong == {}
