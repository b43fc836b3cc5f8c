"""Kills hosts and workers while they deliver, and asks the platform what arrived: `--help` tells more."""

import asyncio
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random, SystemRandom

from frontdesk_testing.messages import message_platform
from tests.databases import PostgresServer, postgres_server
from tests.faults.inbox.deliveries import Plan, Tally, run
from tests.faults.inbox.processes import Desks

DESTINATIONS = 50


@dataclass(frozen=True)
class Part:
    """One way to run."""

    title: str
    postgres: bool = False
    dedupes: bool = True
    live: bool = False


PARTS = {
    "sqlite": Part("SQLite"),
    "unkeyed": Part("without keys", dedupes=False),
    "postgres": Part("two and two", postgres=True),
    "live": Part("live answers", live=True),
    "live-postgres": Part("live, two", postgres=True, live=True),
}
LABELS = {
    "deliveries": "deliveries",
    "kills": "kills",
    "accepted": "accepted",
    "unknown": "honestly unknown",
    "repeated": "honestly repeated",
    "shown": "shown early",
    "lost": "lost",
    "doubled": "doubled",
    "disordered": "out of order",
    "stray": "left half-written",
    "open": "left open",
    "dead": "dead",
}


async def one(part: Part, server: PostgresServer, deliveries: int, kills: int, dice: Random) -> Tally:
    """One part, in a new place."""
    crowd = {"hosts": 2, "workers": 2} if part.postgres else {}
    plan = Plan(
        # An answer takes longer than something that is told.
        deliveries=deliveries // 4 if part.live else deliveries,
        destinations=DESTINATIONS,
        kills=kills,
        dedupes=part.dedupes,
        live=part.live,
        **crowd,
    )
    shows = {"live": True, "pause": 0.02} if part.live else {}
    with tempfile.TemporaryDirectory(prefix="fd-out-") as directory, server.database() as conninfo:
        root = Path(directory)
        place = ("postgres", conninfo) if part.postgres else ("sqlite", str(root / "state"))
        async with (
            message_platform(root / "log") as platform,
            Desks(*place, platform, root / "ledger", idempotent=part.dedupes, **shows) as desks,  # pyright: ignore
        ):
            return await run(platform, desks, plan, dice)


async def all_of(names: Mapping[str, Part], deliveries: int, kills: int, seed: int) -> dict[str, Tally]:
    """Every part, one after the other."""
    tallies: dict[str, Tally] = {}
    began = time.monotonic()
    with postgres_server(on_disk=True) as server:
        for name, part in names.items():
            tallies[name] = await one(part, server, deliveries, kills, Random(f"{seed} {name}"))
            print(f"{time.monotonic() - began:5.0f} s  {part.title}: {tallies[name].wrong} wrong", flush=True)
    return tallies


def table(tallies: Mapping[str, Tally]) -> str:
    """The counts side by side."""
    lines = [f"{'':20}" + "".join(f"{PARTS[name].title:>14}" for name in tallies)]
    for field in fields(Tally):
        counts = [getattr(tally, field.name) for tally in tallies.values()]
        mark = "  <--" if field.name in Tally.WRONG and any(counts) else ""
        lines.append(f"{LABELS[field.name]:20}" + "".join(f"{count:14}" for count in counts) + mark)
    return "\n".join(lines)


def main() -> int:
    """Runs it; 1 if anything was lost, doubled, out of order or left."""
    parser = ArgumentParser(prog="python -m tests.delivery_marathon", description=__doc__)
    parser.add_argument("--deliveries", type=int, default=10_000, help="in each part (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=100, help="in each part (default: %(default)s)")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be given again")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1_000_000), help="of what is by chance")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chosen = {name: PARTS[name] for name in options.part or PARTS}
    tallies = asyncio.run(all_of(chosen, options.deliveries, options.kills, options.seed))
    print(table(tallies))
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
