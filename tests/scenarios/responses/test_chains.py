"""Conversations by `previous_response_id`: a chain keeps its whole history, and a branch has its own."""

import asyncio
from typing import Any

import pytest
from openai import BadRequestError

from tests.scenarios.responses.cast import build_answering, parrot
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client


def _list_heard(target: Any) -> list[str]:
    """What the agent heard from the caller in its last turn."""
    return [text for role, text in target.client.said() if role == "user"]


async def test_a_chain_of_fifty_keeps_its_whole_history(customer_of: Any) -> None:
    target = parrot()
    async with open_client(target) as desk:
        customer = customer_of(desk)
        last: Any = None
        for turn in range(50):
            more = {} if last is None else {"previous_response_id": last.id}
            said = await customer.create(f"turn {turn}", **more)
            assert said.previous_response_id == (last and last.id)
            last = said
        roles = [role for role, _ in target.client.said()]
        assert roles == ["user", "assistant"] * 49 + ["user"]
        assert _list_heard(target) == [f"turn {turn}" for turn in range(50)]
        # One session for the whole chain, with what was said in it and nothing twice.
        assert len(desk.ledger.kept_sessions) == 1
        (kept,) = desk.ledger.kept_messages.values()
        assert len(kept) == 100


async def test_the_whole_and_the_stream_continue_each_other(customer_of: Any) -> None:
    target = parrot()
    async with open_client(target) as desk:
        customer = customer_of(desk)
        first = (await customer.events("one"))[-1].response
        second = await customer.create("two", previous_response_id=first.id)
        events, third = await customer.stream("three", previous_response_id=second.id)
        assert events[0].response.previous_response_id == third.previous_response_id == second.id
        assert _list_heard(target) == ["one", "two", "three"]


async def test_a_branch_has_its_own_history_only() -> None:
    target = parrot()
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        root = await customer.create("root")
        left = await customer.create("left", previous_response_id=root.id)
        right = await customer.create("right", previous_response_id=root.id)
        assert _list_heard(target) == ["root", "right"]
        await customer.create("more left", previous_response_id=left.id)
        assert _list_heard(target) == ["root", "left", "more left"]
        await customer.create("more right", previous_response_id=right.id)
        assert _list_heard(target) == ["root", "right", "more right"]
        await customer.create("anew", previous_response_id=root.id)
        assert _list_heard(target) == ["root", "anew"]


async def test_branches_at_the_same_time_do_not_disturb_each_other() -> None:
    target = build_answering(lambda messages: [" > ".join(one.text for one in messages if one.role == "user")])
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        root = await customer.create("root")

        async def branch(name: str) -> str:
            last = root
            for turn in range(4):
                last = await customer.create(f"{name}{turn}", previous_response_id=last.id)
            return last.output_text

        names = [f"b{number}-" for number in range(8)]
        assert await asyncio.gather(*map(branch, names)) == [
            " > ".join(["root", *(f"{name}{turn}" for turn in range(4))]) for name in names
        ]


async def test_a_response_that_was_deleted_can_not_be_continued_but_what_followed_it_can() -> None:
    target = parrot()
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        first = await customer.create("one")
        second = await customer.create("two", previous_response_id=first.id)
        await customer.delete(first.id)
        with pytest.raises(BadRequestError) as caught:
            await customer.create("three", previous_response_id=first.id)
        assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
        await customer.create("three", previous_response_id=second.id)
        assert _list_heard(target) == ["one", "two", "three"]


async def test_a_failed_turn_leaves_its_question_and_can_be_continued() -> None:
    target = build_answering(
        lambda messages: ["fine"] if "again" in messages[-1].text else [RuntimeError("the reason")]
    )
    async with open_client(target) as desk:
        customer = AsyncCustomer(desk)
        failed = (await customer.events("one"))[-1].response
        assert failed.status == "failed"
        told = await customer.create("again", previous_response_id=failed.id)
        assert (told.output_text, _list_heard(target)) == ("fine", ["one", "again"])
