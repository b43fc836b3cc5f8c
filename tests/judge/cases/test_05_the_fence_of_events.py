"""Point 5: the commit of events is delayed until another host has ended the run."""

import asyncio
import signal
from contextlib import suppress

from tests.databases import PostgresServer
from tests.judge.ledger import FINAL, Ledger, Run
from tests.judge.proxy import Rule
from tests.judge.site import Process, site
from tests.judge.steps import check

WINDOW = 8.0
"""How long the commit is delayed at most: much longer than a host may hold a run."""


async def test_events_are_committed_when_another_host_has_ended_the_run(
    postgres_of_this_process: PostgresServer,
) -> None:
    ledger = Ledger()
    async with site("postgres", hosts=2, keep_idle_limit=False, server=postgres_of_this_process) as place:
        here, there = place.hosts
        assert here.proxy is not None
        rule = here.proxy.add(Rule("hold", touching="INTO events", without="UPDATE background"))
        body = {"message": "w say:40 hold:gate", "background": True, "stream": True}
        async with await here.begin("/invocations", body) as exchange:
            run_id = (await anext(exchange.events())).data["id"]
            run = ledger.runs[run_id] = Run(run_id, disturbed=True)
            await rule.seen.wait()
            here.send(signal.SIGSTOP)
        with suppress(TimeoutError):
            async with asyncio.timeout(WINDOW):
                await _ends(ledger, run, there)
                run.reads.append((ledger.tick(), await _events(there, run_id), True))
        rule.release.set()
        await rule.done.wait()
        if run.reads:
            run.reads.append((ledger.tick(), await _events(there, run_id), True))
        here.send(signal.SIGCONT)
        place.open("gate")
        await _ends(ledger, run, there)
        run.reads += [(ledger.tick(), await _events(there, run_id), True) for _ in range(2)]
    check(ledger)


async def _ends(ledger: Ledger, run: Run, host: Process) -> None:
    while not run.statuses or run.statuses[-1][1] not in FINAL:
        body = (await host.get(f"/invocations/{run.run_id}")).body
        run.statuses.append((ledger.tick(), body["status"], (body["error"] or {}).get("code", "")))


async def _events(host: Process, run_id: str) -> tuple[str, ...]:
    path = f"/invocations/{run_id}?stream=true"
    async with await host.begin(path, None, method="GET") as exchange:
        return tuple([f"{event.name} {event.data.get('text')}" async for event in exchange.events()])
