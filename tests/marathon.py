"""Kills hosts under load, hundreds of times, and counts what they lost: `python -m tests.marathon --help`."""

import asyncio
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random, SystemRandom

from tests.databases import PostgresServer, postgres_server
from tests.faults.crash.books import Tally
from tests.faults.crash.processes import HostProcesses
from tests.faults.crash.rounds import AT_RANDOM, CRASH_POINTS, Plan, one_host, two_hosts

LAP = 20
"""The kills on one database; then another one begins, with new sessions."""


@dataclass(frozen=True)
class Part:
    """One way to run, and how much of the kills it gets."""

    title: str
    run: Callable[[HostProcesses, Random, Plan], Awaitable[Tally]]
    share: float


PARTS = {
    "sqlite": Part("SQLite", one_host, 0.4),
    "postgres": Part("Postgres", one_host, 0.3),
    "two-hosts": Part("two hosts", two_hosts, 0.3),
}
LABELS = {
    "kills": "kills",
    "acknowledged": "turns acknowledged",
    "unknown": "turns cut off",
    "lost": "turns lost",
    "doubled": "turns doubled",
    "disordered": "turns out of order",
    "busy": "sessions left busy",
    "refused": "turns refused",
    "questions": "approvals asked",
    "questions_lost": "approvals lost",
    "payments": "tool runs",
    "payments_lost": "tool runs lost",
    "payments_doubled": "tool runs doubled",
}


def plan(kills: int, dice: Random) -> Plan:
    """Every second kill at a named point, the others at random."""
    points = dice.sample(CRASH_POINTS, len(CRASH_POINTS))
    moments = [points[number // 2 % len(points)] if number % 2 == 0 else AT_RANDOM for number in range(kills)]
    return [(moment, dice.randint(1, 100)) for moment in moments]


@asynccontextmanager
async def house(name: str, server: PostgresServer) -> AsyncIterator[HostProcesses]:
    """An empty house, for a lap."""
    with tempfile.TemporaryDirectory(prefix="fd-crash-") as directory:
        root = Path(directory)
        if name == "sqlite":
            async with HostProcesses("sqlite", str(root / "state"), root / "ledger") as built:
                yield built
            return
        with server.database() as conninfo:
            async with HostProcesses("postgres", conninfo, root / "ledger") as built:
                yield built


async def run(parts: Mapping[str, int], seed: int) -> dict[str, Tally]:
    """All laps; the counts of each part."""
    tallies = {name: Tally() for name in parts}
    began = time.monotonic()
    with postgres_server(on_disk=True) as server:
        for name, kills in parts.items():
            tally = tallies[name]
            while tally.kills < kills:
                dice = Random(f"{seed} {name} {tally.kills}")
                async with house(name, server) as built:
                    tally.add(await PARTS[name].run(built, dice, plan(min(LAP, kills - tally.kills), dice)))
                so_far = f"{tally.kills} of {kills} kills, {tally.acknowledged} turns, {tally.wrong} wrong"
                print(f"{time.monotonic() - began:5.0f} s  {PARTS[name].title}: {so_far}", flush=True)
    return tallies


def table(tallies: Mapping[str, Tally]) -> str:
    """The counts side by side, and their sum."""
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    columns = [*tallies.values(), total]
    lines = [f"{'':20}" + "".join(f"{title:>12}" for title in [*(PARTS[name].title for name in tallies), "all"])]
    for one in fields(Tally):
        mark = "  <--" if one.name in Tally.WRONG and getattr(total, one.name) else ""
        lines.append(f"{LABELS[one.name]:20}" + "".join(f"{getattr(tally, one.name):12}" for tally in columns) + mark)
    return "\n".join(lines)


def main() -> int:
    """Runs it; 1 if anything was lost, doubled, out of order or stuck."""
    parser = ArgumentParser(prog="python -m tests.marathon", description=__doc__)
    parser.add_argument("--kills", type=int, default=220, help="how many in all (default: %(default)s)")
    parser.add_argument("--store", choices=PARTS, action="append", help="only this part; may be given again")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1_000_000), help="of what is by chance")
    options = parser.parse_args()
    chosen = {name: PARTS[name].share for name in options.store or PARTS}
    parts = {name: round(options.kills * share / sum(chosen.values())) for name, share in chosen.items()}
    print(f"seed {options.seed}", flush=True)
    tallies = asyncio.run(run(parts, options.seed))
    print(table(tallies))
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
