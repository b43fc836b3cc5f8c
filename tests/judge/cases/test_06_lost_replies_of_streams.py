"""Point 6: the reply to the commit of a background stream's events is lost, and nothing else is wrong."""

import pytest

from tests.databases import PostgresServer
from tests.judge.ledger import FINAL, Ledger, Run
from tests.judge.proxy import Rule
from tests.judge.site import site
from tests.judge.steps import check


@pytest.mark.parametrize("at_byte", [0, 5, 12, 17])
async def test_the_reply_to_the_commit_of_events_is_lost(
    postgres_of_this_process: PostgresServer, at_byte: int
) -> None:
    ledger = Ledger()
    async with site("postgres", server=postgres_of_this_process) as place:
        host = place.hosts[0]
        assert host.proxy is not None
        rule = host.proxy.add(Rule("cut", touching="INTO events", at_byte=at_byte))
        bodies = [{"message": f"w{number} say:12", "background": True, "stream": True} for number in range(4)]
        exchanges = [await host.begin("/invocations", body) for body in bodies]
        for exchange in exchanges:
            async with exchange:
                run_id = (await anext(exchange.events())).data["id"]
                ledger.runs[run_id] = Run(run_id)
        await rule.seen.wait()
        for run in ledger.runs.values():
            while not run.statuses or run.statuses[-1][1] not in FINAL:
                answer = await host.get(f"/invocations/{run.run_id}")
                if answer.ok:
                    code = (answer.body["error"] or {}).get("code", "")
                    run.statuses.append((ledger.tick(), answer.body["status"], code))
    check(ledger)
