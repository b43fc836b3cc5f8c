"""A host stands still when it has claimed an event, for longer than the claim is good, and another one answers it."""

import asyncio
import signal

import pytest

from tests.databases import PostgresServer
from tests.judge.proxy import Rule
from tests.judge.site import site

PATIENCE = 90.0
WINDOW = 3.0
"""How long the host may take, once it goes on, to do what it must not do."""


@pytest.mark.parametrize("touching", ["UPDATE inbox", "INTO leases"], ids=["the claim", "the session"])
async def test_a_host_stands_still_between_its_claim_and_the_answer(
    postgres_of_this_process: PostgresServer, touching: str
) -> None:
    async with site("postgres", hosts=2, chats=("chat",), server=postgres_of_this_process) as place:
        platform = place.platforms["chat"]
        person = await platform.user("ann")
        proxies = {host.number: host.proxy for host in place.hosts if host.proxy is not None}
        rules = {number: proxy.add(Rule("hold_reply", touching=touching)) for number, proxy in proxies.items()}
        await platform.say(person, "word")
        seen = [asyncio.create_task(rule.seen.wait()) for rule in rules.values()]
        await asyncio.wait(seen, return_when=asyncio.FIRST_COMPLETED)
        here = next(host for host in place.hosts if rules[host.number].seen.is_set())
        here.send(signal.SIGSTOP)
        for host in place.hosts:
            assert host.proxy is not None
            host.proxy.forget(rules[host.number])
            rules[host.number].release.set()

        async def answered() -> bool:
            return any('"word"' in one.text for one in await platform.answers(person.chat_id))

        await platform.until(answered, within=PATIENCE)
        here.send(signal.SIGCONT)
        await place.until(lambda: place.effects("heard").count("word") > 1, within=WINDOW)
        assert place.effects("heard").count("word") == 1, "the agent was asked again when the answer was there already"
        assert len(await platform.answers(person.chat_id)) == 1
