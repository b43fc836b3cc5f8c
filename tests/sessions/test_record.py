"""The end of a run is in its session once, whatever becomes of the replies to its commits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk.delivery.routing import ORIGINATING
from frontdesk.errors import StoreUnavailableError
from frontdesk.models.run import RunFailure
from tests.sessions.admitted import Room, build_admitted

CANCELLED = RunFailure(code="cancelled", message="The run was cancelled.")


def lose_a_reply(remaining: Room, error: BaseException, *, commits: bool) -> None:
    """Let the next transaction commit or not, and raise in either case."""
    store: Any = remaining.store
    transaction = store.transaction

    @asynccontextmanager
    async def once() -> AsyncIterator[Any]:
        store.transaction = transaction
        async with transaction() as real:
            yield real
            if not commits:
                raise error
        raise error

    store.transaction = once


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("error", [StoreUnavailableError(), asyncio.CancelledError()], ids=["lost reply", "hang-up"])
async def test_a_run_was_cancelled_while_the_reply_to_its_commit_was_lost_and_its_question_was_there_twice(
    error: BaseException, commits: bool
) -> None:
    remaining = Room()
    turn = await remaining.turns.open(build_admitted(key="visit"))
    run = remaining.recorder.begin(turn)
    lose_a_reply(remaining, error, commits=commits)
    with pytest.raises(type(error)):
        await remaining.recorder.record_completed(turn, run, None, ORIGINATING)
    ended = await remaining.recorder.record_end(turn, run, "cancelled", CANCELLED)
    remaining.turns.close(turn)
    assert ended.status == ("completed" if commits else "cancelled")
    again = await remaining.turns.open(build_admitted(key="visit", run_id="run_2"))
    assert [message.text for message in await again.history()] == ["hello"]
