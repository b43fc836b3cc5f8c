"""Numbers that Python can't represent, or not as JSON: in every field of every HTTP channel, a 400 or an answer."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.http.idempotency import HEADER
from tests.examples import examples
from tests.faults.test_shapes_of_bodies import JSON, PLACES, EveryChannelHost, open_house

MARK = "in the place of this text"
NUMBERS = ["1e999", "-1e999", "9" * 5_000, "-" + "9" * 5_000, "9" * 400, "1" * 310 + "e5", "1E-99999", "-0", "1e308"]
TEXTS = [r'"\ud800"', r'"\udc00\ud800"', r'"\u0000"']
"""Strings that JSON can express and Unicode can't."""
numbers = st.builds(
    lambda sign, digits, fraction, exponent: f"{sign}{digits}{fraction}{exponent}",
    st.sampled_from(["", "-"]),
    st.integers(1, 9).flatmap(lambda digit: st.integers(1, 6_000).map(lambda length: str(digit) * length)),
    st.sampled_from(["", ".5", "." + "1" * 5_000]),
    st.just("")
    | st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 9**9)),
)


def let_through(request: Any, **_: Any) -> Any:
    return request


async def post(house: EveryChannelHost, path: str, body: Any, token: str, headers: dict[str, str]) -> Any:
    raw = json.dumps(body).replace(json.dumps(MARK), token).encode()
    filled = path.replace("{conversation_id}", house.conversation)
    return await house.http.post(filled, content=raw, headers={**JSON, **headers})


async def check(house: EveryChannelHost, path: str, tokens: list[str], where: str) -> None:
    for number, (token, (place, body_of), keyed) in enumerate(product(tokens, PLACES[path], [False, True])):
        headers = {HEADER: f"{where} {number}"} if keyed else {}
        answer = await post(house, path, body_of(MARK), token, headers)
        case = (
            f"{token[:20]} in {place}, {'with' if keyed else 'without'} a key: {answer.status_code} {answer.text[:200]}"
        )
        assert answer.status_code == 200 or 400 <= answer.status_code < 500, case
        if answer.status_code == 200:
            await house.need_recorded(path, answer)
        if answer.status_code == 200 and keyed and path in ("/v1/responses", "/invocations"):
            again = await post(house, path, body_of(MARK), token, headers)
            assert (again.status_code, again.json()["id"]) == (200, answer.json()["id"]), case
            other = await post(house, path, {**body_of(MARK), "y": 1}, token, headers)
            assert other.status_code in (400, 422), case


@pytest.mark.parametrize("hook", [None, let_through], ids=["no hook", "a hook"])
@pytest.mark.parametrize("path", PLACES)
async def test_a_number_that_python_cannot_represent_was_a_500(path: str, hook: Any, tmp_path: Path) -> None:
    async with open_house(tmp_path, **({} if hook is None else {"run_hook": hook})) as house:
        await check(house, path, NUMBERS + TEXTS, "odd")


@given(tokens=st.lists(numbers, min_size=2, max_size=2))
@examples(4)
async def test_any_number_is_refused_or_recorded(tokens: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    async with open_house(tmp_path_factory.mktemp("any"), run_hook=let_through) as house:
        for path in PLACES:
            await check(house, path, tokens, "any")
