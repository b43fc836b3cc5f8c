"""Functions whose annotations are only text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_framework import Message

from tests.targets.turns import adapt_target, run

if TYPE_CHECKING:
    from somewhere_else import Unknown  # type: ignore[import-not-found]


async def of_messages(messages: list[Message]) -> str:
    return f"{len(messages)} messages"


async def of_text(text: str) -> str:
    return f"heard {text}"


async def of_unknown(text: str, extra: Unknown | None = None) -> str:
    return f"heard {text}"


async def test_they_are_read_as_what_they_mean() -> None:
    assert (await run(of_messages)).text == "1 messages"
    assert (await run(of_text)).text == "heard hello"


async def test_one_that_means_nothing_when_it_runs_does_no_harm() -> None:
    assert adapt_target(of_unknown).findings == []
    assert (await run(of_unknown)).text == "heard hello"
