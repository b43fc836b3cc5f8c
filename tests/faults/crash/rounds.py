"""A round: clients at work, a host that is killed, and a look at what is remembered."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from frontdesk.testing import CRASH_POINTS
from tests.faults.crash.books import Book, Tally, judge_payments
from tests.faults.crash.clients import Chained, Client, CutOffError, Named
from tests.faults.crash.processes import HostProcess, House

AT_RANDOM = "at random"
MOMENTS = (*CRASH_POINTS, AT_RANDOM)


@dataclass
class Load:
    """The clients of a house, over all rounds."""

    house: House
    dice: Random
    tally: Tally = field(default_factory=Tally)
    clients: list[Client] = field(default_factory=list[Client])
    books: list[Book] = field(default_factory=list[Book])

    def enrol(self, named: int = 8, chained: int = 4) -> None:
        """New clients, in the place of those before; their books are kept."""
        kinds = [Named] * named + [Chained] * chained
        self.clients = [kind(Book(f"s{len(self.books) + n}"), self.tally, self.dice) for n, kind in enumerate(kinds)]
        self.books += [client.book for client in self.clients]

    async def kill(self, host: HostProcess, moment: str, passes: int, others: Sequence[HostProcess] = ()) -> None:
        """Has the clients talk until a host is dead, and to the others still a little longer."""
        if moment != AT_RANDOM:
            await host.arm(moment, passes)
        limit = self.tally.acknowledged + (passes if moment == AT_RANDOM else 1_000)
        await asyncio.gather(*(self._talk(client, host, others, limit) for client in self.clients))
        host.kill()
        await host.ended()
        self.tally.kills += 1

    async def _talk(self, client: Client, host: HostProcess, others: Sequence[HostProcess], limit: int) -> None:
        more = 2 if others else 0
        while host.alive:
            try:
                await client.turn(self.dice.choice([host, *others]))
            except CutOffError:
                break
            if self.tally.acknowledged >= limit:
                # The others are in the middle of their turns.
                host.kill()
        for _ in range(more):
            await client.turn(self.dice.choice(others))

    async def look(self, host: HostProcess, *, answer: float = 0.5) -> None:
        """Asks every client's questions, as many as it takes, and holds all histories against the books."""
        await asyncio.gather(*(self._look(client, host, answer) for client in self.clients))

    async def _look(self, client: Client, host: HostProcess, answer: float) -> None:
        if isinstance(client, Named):
            for question in client.book.questions:
                chosen = question.state == "pending" and self.dice.random() < answer
                if chosen or question.state == "unknown":
                    await client.answer(host, question)
        client.book.judge(await client.recall(host), self.tally, exactly=client.exactly)

    def close(self) -> Tally:
        """The counts, with those of the ledger."""
        judge_payments(self.books, self.house.payments(), self.tally)
        return self.tally


async def one_host(house: House, dice: Random, plan: Sequence[tuple[str, int]], *, each: int = 10) -> Tally:
    """Kills a host again and again; each one that follows it must know what it knew."""
    load = Load(house, dice)
    for number, (moment, passes) in enumerate(plan):
        host = await house.start()
        if number:
            last = (number % each) == 0
            await load.look(host, answer=1.0 if last else 0.5)
        if number % each == 0:
            load.enrol()
        await load.kill(host, moment, passes)
    await load.look(await house.start(), answer=1.0)
    return load.close()


async def two_hosts(house: House, dice: Random, plan: Sequence[tuple[str, int]], *, each: int = 10) -> Tally:
    """Kills one of two hosts again and again; the other goes on with the sessions of both."""
    load = Load(house, dice)
    host, other = await house.start(), await house.start()
    for number, (moment, passes) in enumerate(plan):
        if number % each == 0:
            load.enrol()
        await load.kill(host, moment, passes, [other])
        await load.look(other, answer=1.0 if number % each == each - 1 else 0.5)
        host, other = other, await house.start()
    await load.look(other, answer=1.0)
    return load.close()
