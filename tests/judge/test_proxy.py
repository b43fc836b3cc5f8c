"""The proxy knows a commit, and disturbs it where it says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.judge.faults.databases import REPLY
from tests.judge.proxy import PostgresProxy, Rule


@asynccontextmanager
async def open_proxy(conninfo: str) -> AsyncIterator[tuple[PostgresProxy, str]]:
    """A database with a table, and a way to it that can be disturbed."""
    with psycopg.connect(conninfo, autocommit=True) as line:
        line.execute("CREATE TABLE kept (number int)")
    upstream = str(Path(str(conninfo_to_dict(conninfo)["host"])) / ".s.PGSQL.5432")
    async with PostgresProxy(upstream) as proxy:
        yield proxy, make_conninfo(conninfo, host="127.0.0.1", port=proxy.port, sslmode="disable")


def read_kept(conninfo: str) -> list[int]:
    """What the server has."""
    with psycopg.connect(conninfo, autocommit=True) as line:
        return [number for (number,) in line.execute("SELECT number FROM kept ORDER BY number").fetchall()]


async def insert(conninfo: str, number: int) -> None:
    """Write a number in a transaction, as a host does."""
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True, prepare_threshold=2) as line:
        for one in (number, number + 100, number + 200):
            await line.execute("BEGIN")
            await line.execute("INSERT INTO kept VALUES (%s)", (one,))
            await line.execute("COMMIT")


async def test_a_reply_is_cut_at_every_byte_and_the_commit_counts(postgres: str) -> None:
    async with open_proxy(postgres) as (proxy, conninfo):
        for at_byte in range(REPLY):
            rule = proxy.add(Rule("cut", touching="INTO kept", at_byte=at_byte))
            with pytest.raises(psycopg.OperationalError):
                await insert(conninfo, at_byte)
            assert rule.seen.is_set()
        assert read_kept(postgres) == list(range(REPLY))


async def test_a_commit_that_is_held_takes_effect_when_it_is_released(postgres: str) -> None:
    async with open_proxy(postgres) as (proxy, conninfo):
        rule = proxy.add(Rule("hold", touching="INTO kept"))
        work = asyncio.create_task(insert(conninfo, 1))
        await rule.seen.wait()
        assert read_kept(postgres) == []
        rule.release.set()
        await rule.done.wait()
        await work
        assert read_kept(postgres) == [1, 101, 201]


async def test_a_rule_waits_for_the_transaction_that_it_means(postgres: str) -> None:
    async with open_proxy(postgres) as (proxy, conninfo):
        rules = [proxy.add(Rule("cut", touching="elsewhere")), proxy.add(Rule("cut", without="INTO kept"))]
        await insert(conninfo, 1)
        assert not any(rule.seen.is_set() for rule in rules)
        assert proxy.commits == 3
