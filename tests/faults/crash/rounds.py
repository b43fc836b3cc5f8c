"""A round: clients at work, a host that is killed, and a look at what is remembered."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from frontdesk_testing import CRASH_POINTS
from tests.faults.crash.books import Book, Tally, judge_payments
from tests.faults.crash.clients import Chained, Client, CutOffError, Named
from tests.faults.crash.processes import HostProcess, HostProcesses

AT_RANDOM = "at random"
MOMENTS = (*CRASH_POINTS, AT_RANDOM)
Plan = Sequence[tuple[str, int]]
"""When to kill: at a point and how often it is passed, or at random after so many turns."""
_NAMED, _CHAINED = 8, 4
_ENOUGH = 1_000
"""The turns after which a host is killed that has not reached its point."""


@dataclass
class Load:
    """The clients of a house, over all rounds."""

    house: HostProcesses
    dice: Random
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        kinds = [Named] * _NAMED + [Chained] * _CHAINED
        self.clients = [kind(Book(f"s{number}"), self.tally, self.dice) for number, kind in enumerate(kinds)]

    async def kill(self, host: HostProcess, moment: str, passes: int, others: Sequence[HostProcess] = ()) -> None:
        """Has the clients talk until a host is dead, and to the others still a little longer."""
        if moment != AT_RANDOM:
            await host.arm(moment, passes)
        limit = self.tally.acknowledged + (passes if moment == AT_RANDOM else _ENOUGH)
        async with asyncio.TaskGroup() as group:
            for client in self.clients:
                group.create_task(self._talk(client, host, others, limit))
        host.kill()
        await host.wait_for_end()
        self.tally.kills += 1

    async def _talk(self, client: Client, host: HostProcess, others: Sequence[HostProcess], limit: int) -> None:
        while host.alive:
            try:
                await client.turn(self.dice.choice([host, *others]))
            except CutOffError:
                break
            if self.tally.acknowledged >= limit:
                # A moment later, so that it is no particular moment for anybody.
                asyncio.get_running_loop().call_later(self.dice.random() / 50, host.kill)
        for _ in others:
            await client.turn(self.dice.choice(others))

    async def look(self, host: HostProcess, *, answer: float = 0.5) -> None:
        """Asks every client's questions, as many as it takes, and holds all histories against the books."""
        async with asyncio.TaskGroup() as group:
            for client in self.clients:
                group.create_task(self._look(client, host, answer))

    async def _look(self, client: Client, host: HostProcess, answer: float) -> None:
        if isinstance(client, Named):
            for question in client.book.questions:
                chosen = question.state == "pending" and self.dice.random() < answer
                if chosen or question.state == "unknown":
                    await client.answer(host, question)
        client.book.judge(await client.recall(host), self.tally, exactly=client.exactly)

    def close(self) -> Tally:
        """The counts, with those of the ledger."""
        judge_payments([client.book for client in self.clients], self.house.payments(), self.tally)
        return self.tally


async def one_host(house: HostProcesses, dice: Random, plan: Plan) -> Tally:
    """Kills a host again and again; each one that follows it must know what it knew."""
    load = Load(house, dice)
    for moment, passes in plan:
        host = await house.start()
        await load.look(host)
        await load.kill(host, moment, passes)
    await load.look(await house.start(), answer=1.0)
    return load.close()


async def two_hosts(house: HostProcesses, dice: Random, plan: Plan) -> Tally:
    """Kills one of two hosts again and again; the other goes on with the sessions of both."""
    load = Load(house, dice)
    host, other = await house.start(), await house.start()
    for moment, passes in plan:
        await load.kill(host, moment, passes, [other])
        await load.look(other)
        host, other = other, await house.start()
    await load.look(other, answer=1.0)
    return load.close()
