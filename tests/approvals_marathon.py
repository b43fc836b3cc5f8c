"""Kills two hosts while two people approve tool calls, and counts what ran: `--help` tells more."""

import asyncio
import json
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import httpx

from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from tests.databases import postgres_server
from tests.faults.approving_host import PEOPLE
from tests.faults.ports import free_port, is_ready
from tests.forked import ForkedProcess, fork
from tests.scenarios.desk import until

AT_ONCE = 8
FOREVER = 600.0


@dataclass
class Tally:
    """What became of the questions."""

    questions: int = 0
    kills: int = 0
    approved: int = 0
    rejected: int = 0
    ran: int = 0
    interrupted: int = 0
    """Calls that were killed once they had begun: they fail, and are never repeated."""
    without_yes: int = 0
    twice: int = 0
    lost: int = 0

    @property
    def is_clean(self) -> bool:
        return not (self.without_yes or self.twice or self.lost)


class Desk:
    """Two hosts on one database, one of which is killed now and then."""

    def __init__(self, root: Path, dsn: str, dice: Random) -> None:
        self._root, self._dsn, self._dice = root, dsn, dice
        self._processes: dict[int, ForkedProcess] = {}
        self.clients: dict[int, httpx.AsyncClient] = {}

    async def start(self, place: int) -> None:
        port = free_port()
        settings = json.dumps({"root": str(self._root), "dsn": self._dsn, "port": port})
        self._processes[place] = await fork("tests.faults.approving_host:main", settings)
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)
        await until(lambda: is_ready(client), within=60)
        self.clients[place] = client

    async def kill(self) -> None:
        """End one of the hosts as a power cut would, and start another in its place."""
        place = self._dice.choice(sorted(self._processes))
        process = self._processes[place]
        process.kill()
        await process.wait()
        await self.clients[place].aclose()
        await self.start(place)

    async def stop(self) -> None:
        for place, process in self._processes.items():
            process.kill()
            await process.wait()
            with suppress(KeyError):
                await self.clients[place].aclose()

    async def post(self, path: str, headers: Any = None, body: Any = None) -> Any:
        """Ask either host, and the other one if that does not answer, until one does."""
        while True:
            client = self.clients[self._dice.choice(sorted(self.clients))]
            try:
                response = await client.post(path, json=body, headers=headers)
            except (httpx.TransportError, RuntimeError):
                await asyncio.sleep(0.05)
                continue
            if response.status_code < 500 and response.status_code != 409:
                return response.json()
            await asyncio.sleep(0.05)


async def _answer(desk: Desk, number: int, yes: bool) -> None:
    """Ask, and let two people answer; each presses again until an answer comes."""
    body = {"message": str(number), "session_id": f"s{number}"}
    run = await desk.post("/invocations", {"idempotency-key": f"question-{number}"}, body)
    while run["status"] == "running":
        await asyncio.sleep(0.05)
        run = await desk.post("/invocations", {"idempotency-key": f"question-{number}"}, body)
    if run["status"] != "completed":
        # The host was killed while it asked: there is no question, and nothing may run.
        return
    (question,) = run["approvals"]
    words = ("yes", "yes") if yes else ("yes", "no")
    outcomes = await asyncio.gather(
        *(desk.post(f"/pager/vote/{question['id']}/{who}/{word}") for who, word in zip(PEOPLE, words, strict=True))
    )
    assert {outcome["outcome"] for outcome in outcomes} <= {"recorded", "needs_more", "late"}, outcomes


async def run(root: Path, dsn: str, questions: int, kills: int, dice: Random) -> Tally:
    """Ask so many questions with so many kills in between; return what became of them."""
    wanted = {number: dice.random() < 0.7 for number in range(questions)}
    desk, tally = Desk(root, dsn, dice), Tally(questions=questions)
    deaths = sorted(dice.sample(range(1, questions), min(kills, questions - 1)))
    try:
        for place in (0, 1):
            await desk.start(place)
        remaining = asyncio.Semaphore(AT_ONCE)
        answered = asyncio.Condition()
        done = 0

        async def one(number: int) -> None:
            nonlocal done
            async with remaining:
                await _answer(desk, number, wanted[number])
            async with answered:
                done += 1
                answered.notify_all()

        async def reap() -> None:
            for death in deaths:
                async with answered:
                    await answered.wait_for(lambda death=death: done >= death)
                await desk.kill()
                tally.kills += 1

        await asyncio.gather(*(one(number) for number in wanted), reap())
        await _count(dsn, wanted, root / "paid", tally)
    finally:
        await desk.stop()
    return tally


async def _count(dsn: str, wanted: dict[int, bool], paid: Path, tally: Tally) -> None:
    """Wait until all that was decided has run, and compare it with what was said."""
    store = PostgresStateStore(dsn)
    await store.open()
    try:

        async def is_over() -> bool:
            ((left,),) = await store._engine.read("SELECT COUNT(*) FROM inbox WHERE done_at IS NULL")
            ((open_runs,),) = await store._engine.read("SELECT COUNT(*) FROM runs WHERE ended_at IS NULL")
            return left == 0 and open_runs == 0

        await until(is_over, within=FOREVER)
        ran = _read(paid)
        rows = await store._engine.read("SELECT owner, approval_id FROM approvals")
        for owner, approval_id in rows:
            question = await store.approvals.get(owner, approval_id)
            assert question is not None
            number = int(question.request.function_call.parse_arguments()["number"])
            await _judge(store, question, wanted[number], ran.pop(number, 0), tally)
        # Whatever is left ran without a question.
        tally.without_yes += sum(ran.values())
    finally:
        await store.close()


def _read(paid: Path) -> Counter[int]:
    """Return how often each call has run."""
    return Counter(int(line) for line in paid.read_text().split()) if paid.exists() else Counter[int]()


async def _judge(store: Any, question: Any, yes: bool, ran: int, tally: Tally) -> None:
    tally.approved += question.status == "approved"
    tally.rejected += question.status == "rejected"
    tally.ran += ran
    tally.twice += ran > 1
    if not yes or question.status != "approved":
        tally.without_yes += ran > 0
        tally.lost += yes
    elif ran == 0:
        record = None if question.resumed_by is None else await store.runs.get(question.owner, question.resumed_by)
        was_cut_off = record is not None and record.failure is not None and record.failure.code == "interrupted"
        tally.interrupted += was_cut_off
        tally.lost += not was_cut_off


def main(arguments: list[str] | None = None) -> int:
    """Run the marathon, and say what was found."""
    parser = ArgumentParser(prog="python -m tests.approvals_marathon", description=__doc__)
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(2**32))
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}")
    with tempfile.TemporaryDirectory() as root, postgres_server() as server, server.database() as dsn:
        tally = asyncio.run(run(Path(root), dsn, given.questions, given.kills, Random(given.seed)))
    for name, value in asdict(tally).items():
        print(f"{name.replace('_', ' ')}: {value}")
    return 0 if tally.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
