"""What every actor is."""

import asyncio
from random import Random
from typing import Any, ClassVar

from tests.judge.court import Court
from tests.judge.site import Process
from tests.judge.wire import Answer, CutError

AWAY = 0.25
"""How long a client waits that nobody has answered."""


class Actor:
    """A client that does one thing again and again, and enters what it saw."""

    name: ClassVar[str]
    clients: ClassVar[int] = 2
    """How many of its operations run at once."""

    def __init__(self, court: Court, rng: Random) -> None:
        self.court = court
        self.ledger = court.ledger
        self.rng = rng

    async def prepare(self) -> None:
        """Do what has to be done before the faults begin."""

    async def act(self) -> None:
        """Do one operation."""
        raise NotImplementedError

    async def settle(self) -> None:
        """Look at how everything ended, when the faults are over."""

    def host(self) -> Process:
        """A host to ask."""
        return self.court.host(self.rng)

    async def ask(self, path: str, body: Any, *, by: int = 0, leaves: bool = False, **more: Any) -> Answer | None:
        """Ask, and perhaps leave before the answer; nothing, if there is no answer."""
        try:
            exchange = await self.host().begin(path, body, by=by, **more)
            async with exchange:
                if leaves:
                    await asyncio.sleep(self.rng.choice((0.0, 0.01, 0.055, 0.07, 0.1, 0.3, 1.0)))
                    return None
                answer = await exchange.answer()
        except CutError:
            await asyncio.sleep(AWAY)
            return None
        self.court.note(self.name, answer)
        return answer

    def leaves(self) -> bool:
        """Draw whether the client hangs up."""
        return self.rng.random() < 0.2
