"""Fills a store with the sessions of some weeks, straight into its tables.

The records are real ones, of the sizes that people write; but a few are encoded, and the rest are these with other ids.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import time
from typing import Any

from agent_framework import AgentResponse, Message

from bench.states import State
from frontdesk.framework.contents import stamp
from frontdesk.models.run import RunRecord
from frontdesk.models.session import SessionRecord
from frontdesk.serialization.codec import encode
from frontdesk.state_dir.paths import DATABASE
from frontdesk.stores.sql import tables
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk.stores.sql.tables import Table, values_sql

WEEKS = 3 * 7 * 24 * 3600.0
OWNERS = 500
AT_ONCE = 250
"""Sessions that take turns with each other, so that the rows of one don't lie together."""
LOT = 5_000
KINDS = 32
"""Of turns."""
OWNER = "key_" + "f" * 32
RUN_ID = "run_" + "f" * 32
SESSION_ID = "ses_" + "f" * 32
LEASES = Table(
    "leases",
    ("session_id", "fence", "holder", "until"),
    ("text", "bigint", "text", "double precision"),
    ("session_id",),
)
Row = Sequence[Any]


async def fill(state: State, sessions: int, turns: int) -> None:
    """Makes the tables as the store does, and puts the rows into them."""
    if state.store == "postgres":
        from frontdesk.stores.sql.postgres.engine import PostgresStateStore

        await make_tables(PostgresStateStore(state.address))
        copy_rows(state.address, build_lots(sessions, turns))
        return
    from frontdesk.stores.sql.sqlite.engine import SqliteStateStore

    path = Path(state.address) / DATABASE
    await make_tables(SqliteStateStore(path))
    insert_rows(path, build_lots(sessions, turns))


async def make_tables(store: SqlStateStore) -> None:
    await store.open()
    await store.close()


def insert_rows(path: Path, lots: Iterator[tuple[Table, list[Row]]]) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    for table, rows in lots:
        if table is not LEASES:
            connection.execute("BEGIN")
            connection.executemany(values_sql(table, 1), rows)
            connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def copy_rows(conninfo: str, lots: Iterator[tuple[Table, list[Row]]]) -> None:
    import psycopg
    from psycopg import sql

    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursor = connection.cursor()
        for table, rows in lots:
            columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
            command = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table.name), columns)
            with cursor.copy(command) as copy:
                copy.set_types(table.types)
                for row in rows:
                    copy.write_row(row)
        # A database that has run for weeks has seen both; one in the middle of a round would be seen in the figures.
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


@dataclass(frozen=True, slots=True)
class Kind:
    """One turn, as rows hold it."""

    history: bytes
    run: bytes


def build_lots(sessions: int, turns: int) -> Iterator[tuple[Table, list[Row]]]:
    """The rows, some thousand of one table at a time, oldest first."""
    chance = random.Random(sessions)
    kinds = [build_kind(chance) for _ in range(KINDS)]
    now = time()
    for start in range(0, sessions, AT_ONCE):
        count = min(AT_ONCE, sessions - start)
        began = now - WEEKS * (1 - start / sessions)
        lasted = WEEKS * count / sessions
        ids = [build_id(chance, "ses", began + lasted * number / count / turns) for number in range(count)]
        owners = [f"key_{chance.randrange(OWNERS):032x}" for _ in ids]
        moments = (
            (session_id, owner, began + lasted * turn / turns)
            for turn in range(turns)
            for session_id, owner in zip(ids, owners, strict=True)
        )
        while lot := list(islice(moments, LOT)):
            drawn = chance.choices(kinds, k=len(lot))
            yield tables.HISTORY, [(one[0], kind.history) for one, kind in zip(lot, drawn, strict=True)]
            yield tables.RUNS, [build_run(chance, *one, kind.run) for one, kind in zip(lot, drawn, strict=True)]
        ended = began + lasted
        pairs = zip(ids, owners, strict=True)
        yield tables.SESSIONS, [build_session(session_id, owner, began, ended, turns) for session_id, owner in pairs]
        yield LEASES, [(session_id, turns, "host_" + "f" * 32, 0.0) for session_id in ids]


def build_id(chance: random.Random, prefix: str, at: float) -> str:
    """As the host makes them: first the time, then what nobody can guess."""
    return f"{prefix}_{int(at * 1000):012x}{chance.getrandbits(80):020x}"


def build_kind(chance: random.Random) -> Kind:
    """A question of up to 300 characters, an answer of up to 1,200."""
    question = stamp(Message("user", [write_text(chance, 20, 300)]), ASKED, "msg_" + "f" * 32)
    answer = stamp(Message("assistant", [write_text(chance, 100, 1_200)]), ANSWERED, "msg_" + "e" * 32)
    run = RunRecord(
        run_id=RUN_ID,
        owner=OWNER,
        channel="invocations",
        status="completed",
        created_at=time(),
        finished_at=time(),
        session_id=SESSION_ID,
        session_key=SESSION_ID,
        input=[question],
        result=AgentResponse(messages=[answer], response_id="answer"),
        messages=2,
    )
    return Kind(encode([question, answer]), encode(run))


ASKED = {
    "channel": "invocations",
    "identity": {"channel": "invocations", "native_id": "anonymous"},
    "response_target": {"kind": "originating", "names": [], "echo_input": False},
}
ANSWERED = {
    "originating_channel": "invocations",
    "includes_originating": True,
    "intended_targets": [],
    "skipped_targets": [],
}
WORDS = (
    "the",
    "room",
    "by",
    "sea",
    "is",
    "open",
    "until",
    "breakfast",
    "and",
    "a",
    "guest",
    "asks",
    "for",
    "two",
    "keys",
)


def write_text(chance: random.Random, least: int, most: int) -> str:
    size = chance.randint(least, most)
    return " ".join(chance.choices(WORDS, k=size // 4))[:size]


def build_run(chance: random.Random, session_id: str, owner: str, at: float, data: bytes) -> Row:
    run_id = build_id(chance, "run", at)
    for mark, text in ((RUN_ID, run_id), (SESSION_ID, session_id), (OWNER, owner)):
        data = data.replace(mark.encode(), text.encode())
    return (run_id, owner, "request", at, data)


def build_session(session_id: str, owner: str, began: float, ended: float, turns: int) -> Row:
    record = SessionRecord(
        session_id=session_id,
        owner=owner,
        key=session_id,
        created_at=began,
        updated_at=ended,
        turns=turns,
        messages=2 * turns,
    )
    return (session_id, owner, 1, None, None, ended, encode(record))
