"""Turns in which a target can be run by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from frontdesk.concurrency.current import current_turn
from frontdesk.history.staged import install_history
from frontdesk.interfaces.target import Target
from frontdesk.sessions.turn import Turn
from frontdesk.targets.detect import adapt
from tests.sessions.admitted import Room


def adapt_target(target: Any) -> Target:
    """A target as the host takes it."""
    return adapt(target, install_history)


@asynccontextmanager
async def turn_of(said: Any = "hello", *, remaining: Room | None = None, **fields: Any) -> AsyncIterator[Turn]:
    """A turn in which something was said."""
    remaining = remaining or Room()
    turn = await remaining.open(input=said, **fields)
    remaining.recorder.begin(turn)
    token = current_turn.set(turn)
    try:
        yield turn
    finally:
        current_turn.reset(token)
        remaining.turns.close(turn)


async def run(target: Any, said: Any = "hello", **fields: Any) -> Any:
    """What a target answers in one piece."""
    async with turn_of(said, **fields) as turn:
        ready = adapt_target(target)
        await ready.prepare(turn)
        return await ready.run(turn)


async def stream(target: Any, said: Any = "hello", **fields: Any) -> tuple[list[Any], Any]:
    """What a target answers in pieces, and what they come to."""
    async with turn_of(said, **fields) as turn:
        ready = adapt_target(target)
        await ready.prepare(turn)
        started = await ready.stream(turn)
        try:
            updates = [update async for update in started]
            return updates, await started.final()
        finally:
            await started.close()
