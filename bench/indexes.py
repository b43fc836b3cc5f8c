"""`python -m bench.indexes`: what the indexes of the lists of operators cost a message in a chat.

One host on SQLite answers messages in this process. In turns, its database has the indexes or lacks them; nothing else
differs.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from bench.figures import Line
from bench.part import run
from frontdesk import SqliteStateStore
from frontdesk.stores.sql.migrations.chat import FEWER_INDEXES, OPERATOR_LISTS
from frontdesk_testing import EchoAgent
from tests.scenarios.delivery.chats import Chats, open_chats
from tests.scenarios.desk import until

PEOPLE = 20
MOST_PERCENT = 3.0
_INDEX = re.compile(r"CREATE INDEX (?:IF NOT EXISTS )?(\w+)")
_DROPPED = {statement.split()[-1] for statement in FEWER_INDEXES if statement.startswith("DROP INDEX")}
_MADE = [
    statement
    for statement in (*OPERATOR_LISTS, *FEWER_INDEXES)
    if (found := _INDEX.match(statement)) and found[1] not in _DROPPED
]


def change_indexes(database: Path, *, there: bool) -> None:
    """Build the indexes, or drop them."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        for statement in _MADE:
            name = _INDEX.match(statement)
            assert name is not None
            connection.execute(f"DROP INDEX IF EXISTS {name[1]}")
            if there:
                connection.execute(statement)


class Talk:
    """People who write to one host, and wait until all of them are answered."""

    def __init__(self, chats: Chats) -> None:
        self._chats = chats
        self._said = 0

    async def processor_us(self, count: int) -> float:
        """Have some messages answered; return the microseconds of the processor that each took."""
        began = time.process_time()
        for number in range(count):
            await self._chats.a.say(f"message {number}", who=f"p{number % PEOPLE}")
        self._said += count
        await until(lambda: len(self._chats.a.texts()) >= self._said)
        return (time.process_time() - began) / count * 1e6


async def measure(*, quick: bool) -> list[Line]:
    """Measure, and return the lines of the report."""
    rounds, count = (2, 100) if quick else (9, 1_000)
    taken: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory(dir=".") as state:
        database = Path(state) / "state.db"
        async with open_chats(EchoAgent(), store=SqliteStateStore(database)) as chats:
            talk = Talk(chats)
            await talk.processor_us(count)
            for _ in range(rounds):
                for there in (True, False):
                    change_indexes(database, there=there)
                    taken[there].append(await talk.processor_us(count))
    with_them, without = median(taken[True]), median(taken[False])
    price = (with_them - without) / without * 100
    return [
        Line("processor time of a message in a chat, SQLite, with the operators' indexes", f"{with_them:,.0f} us"),
        Line("  the same without them", f"{without:,.0f} us"),
        Line(f"  their price (under {MOST_PERCENT:.0f} %)", f"{price:.1f} %", price < MOST_PERCENT),
    ]


if __name__ == "__main__":
    sys.exit(run("bench.indexes", __doc__, measure))
