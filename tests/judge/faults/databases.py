"""A database that is cut off, stands still, or is started again."""

import asyncio
from random import Random

from tests.judge.court import Court
from tests.judge.proxy import PostgresProxy, Rule

REPLY = 18
"""How many bytes a server answers to a COMMIT."""


def _proxy(court: Court, rng: Random) -> PostgresProxy:
    proxy = rng.choice(court.site.processes).proxy
    assert proxy is not None
    return proxy


async def cut_commit(court: Court, rng: Random) -> None:
    """Cut the connection at a byte of the reply to a commit. Nothing that runs may suffer from that."""
    proxy = _proxy(court, rng)
    touching = rng.choice(("", "", "INTO events", "approvals", "sessions", "inbox", "deliveries"))
    rule = proxy.add(Rule("cut", touching=touching, at_byte=rng.randrange(REPLY)))
    await _wait_until_seen(rule, 1.0)
    proxy.forget(rule)


async def hold_commit(court: Court, rng: Random) -> None:
    """Have a commit, or the reply to it, wait on its way."""
    proxy = _proxy(court, rng)
    rule = proxy.add(Rule(rng.choice(("hold", "hold_reply"))))
    with court.disturb():
        await _wait_until_seen(rule, 1.0)
        await asyncio.sleep(rng.choice((0.2, 0.9, 2.5, 4.0)))
        proxy.forget(rule)
        rule.release.set()


async def stall(court: Court, rng: Random) -> None:
    """Have everything between a process and the database wait, for less or more than a lease."""
    proxy = _proxy(court, rng)
    with court.disturb():
        proxy.stall()
        await asyncio.sleep(rng.choice((0.5, 1.5, 2.2, 3.3, 4.5)))
        proxy.flow()


async def cut_all(court: Court, rng: Random) -> None:
    """End all connections of a process to the database."""
    with court.disturb():
        _proxy(court, rng).cut()


async def restart(court: Court, rng: Random) -> None:
    """Stop the database server, and start it again."""
    server = court.site.server
    assert server is not None
    with court.disturb():
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(rng.random())
        await asyncio.to_thread(server.start)


async def lock(court: Court, rng: Random) -> None:
    """Have the disk of a SQLite file stand still; less than it takes for a write to be given up."""
    with court.site.lock():
        await asyncio.sleep(rng.choice((0.1, 0.4, 1.0, 2.0)))


async def _wait_until_seen(rule: Rule, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await rule.seen.wait()
    except TimeoutError:
        pass
