"""Point 10: identities that nobody needs any more, and a host that stood still while another ended its run."""

import signal

from tests.databases import PostgresServer
from tests.judge.app import get_key
from tests.judge.ledger import FINAL, Ledger, Run
from tests.judge.proxy import Rule
from tests.judge.site import site
from tests.judge.steps import check
from tests.judge.wire import Exchange

STRANGERS = 20
DAY = 86_400.0
YEARS = 1_500 * DAY


async def test_a_host_that_stood_still_says_what_the_others_say(postgres_of_this_process: PostgresServer) -> None:
    ledger = Ledger()
    async with site("postgres", hosts=2, server=postgres_of_this_process) as place:
        here, there = place.hosts
        answer = await here.post("/invocations", {"message": "w hold:gate", "background": True})
        run_id = answer.body["id"]
        run = ledger.runs[run_id] = Run(run_id, disturbed=True)
        assert await place.noted("held", "w")
        waiting = [await Exchange.connect(here.port) for _ in range(5)]
        # They are accepted by then, and what comes on them is read when the host wakes up.
        await here.get("/invocations/none")
        here.send(signal.SIGSTOP)
        while not run.statuses or run.statuses[-1][1] not in FINAL:
            body = (await there.get(f"/invocations/{run_id}")).body
            run.statuses.append((ledger.tick(), body["status"], (body["error"] or {}).get("code", "")))
        for exchange in waiting:
            exchange.send("GET", f"/invocations/{run_id}", key=get_key(0))
        # Whatever it writes takes a while, so that it does not find out by itself before it has answered.
        assert here.proxy is not None
        rule = here.proxy.add(Rule("hold"))
        here.send(signal.SIGCONT)
        for exchange in waiting:
            found = await exchange.answer()
            if found.ok:
                run.statuses.append((ledger.tick(), found.body["status"], (found.body["error"] or {}).get("code", "")))
        rule.release.set()
    check(ledger)


async def test_identities_of_strangers_are_dropped_when_nothing_of_them_is_left() -> None:
    ledger = Ledger()
    expiry = dict.fromkeys(("sessions", "runs", "inbox", "deliveries", "last_seen"), DAY)
    async with site("sqlite", chats=("chat",), expiry=expiry) as place:
        platform, host = place.platforms["chat"], place.hosts[0]
        people = [await platform.user(f"stranger{number}") for number in range(STRANGERS)]
        for person in people:
            await platform.say(person, "word")
        for person in people:
            await platform.wait_for_answers(person.chat_id)
        assert place.rows("identities") >= STRANGERS
        await host.stop()
        place.set_clock(YEARS)
        # Each start looks for what has expired; what depends on something else may go with the next look only.
        for _ in range(3):
            await host.start()
            await place.until(lambda: place.rows("sessions") == 0, within=10.0)
            await place.until(lambda: place.rows("identities") == 0, within=1.0)
            await host.stop()
        assert place.rows("sessions") == 0
        ledger.grown.append(("identities of strangers", 0, place.rows("identities")))
    check(ledger)
