"""Postgres had committed what was done with an answer, and the host never heard of it; or two hosts had one answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.writes import Do
from frontdesk_testing.internals import get_components
from tests.faults.answer_steps import Decided, Doorway, code, yes
from tests.faults.inbox.desk import run_host
from tests.scenarios.cast import call
from tests.scenarios.desk import InvocationsHost, open_client, until
from tests.scenarios.test_approvals import Bank
from tests.testing.messages.starting import new_platform


@pytest.fixture
def store(postgres: str) -> PostgresStateStore:
    store = PostgresStateStore(postgres)
    # It would commit too.
    store._sweep.start = lambda: None  # type: ignore[method-assign]
    return store


def _lose_reply(store: PostgresStateStore) -> None:
    """Cut the connection when the next commit is done."""
    engine: Any = store._engine
    finish = engine._finish

    async def unheard(connection: Any) -> None:
        engine._finish = finish
        await finish(connection)
        await connection.close()
        await connection.execute("SELECT 1")

    engine._finish = unheard


async def _takes_writes(desk: InvocationsHost) -> bool:
    """Return True once a write has succeeded: turns are refused before."""
    return (await desk.client.get("/readyz")).status_code == 200


async def _is_all_sent(store: PostgresStateStore) -> bool:
    return set(await store.outbox.counts()) == {"accepted"}


async def test_the_reply_to_a_decision_was_lost_and_the_answer_with_it(store: PostgresStateStore) -> None:
    bank = Bank()
    async with open_client(bank.agent([call("pay", amount=5)], ["done"]), store=store) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        answers: Any = get_components(desk.host).answers
        plain = answers.take

        async def take(*given: Any) -> Any:
            answers.take = plain
            _lose_reply(store)
            return await plain(*given)

        answers.take = take
        assert code(await desk.post(yes(run))) == (503, "store_unavailable")
        assert bank.paid == []
        await until(lambda: _takes_writes(desk))
        assert (await desk.post(yes(run))).json()["text"] == "done"
        assert code(await desk.post(yes(run))) == (409, "approval_answered")
        assert bank.paid == [5]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_reply_to_a_beginning_was_lost_and_the_answer_with_it(
    store: PostgresStateStore, stream: bool
) -> None:
    bank = Bank()
    agent, door = bank.agent([call("pay", amount=5)], ["done"]), Doorway()
    agent.context_providers.append(door)
    async with open_client(agent, store=store) as desk:
        run = (await desk.ask("pay 5", session_id="s")).json()
        door.close()
        request = asyncio.create_task(desk.post(yes(run, stream=stream)))
        await door.entered.wait()
        _lose_reply(store)
        door.open.set()
        assert "store_unavailable" in (await request).text
        assert bank.paid == []
        await until(lambda: _takes_writes(desk))
        assert (await desk.post(yes(run))).json()["text"] == "done"
        assert code(await desk.post(yes(run))) == (409, "approval_answered")
        assert bank.paid == [5]


async def test_the_reply_to_a_beginning_was_lost_and_the_chat_was_told_so(store: PostgresStateStore) -> None:
    bank = Bank()
    agent, door = bank.agent([call("pay", amount=5)], ["done"]), Doorway()
    agent.context_providers.append(door)
    async with new_platform() as platform, run_host(agent, platform, store=store):
        ada = await platform.user("Ada")
        await platform.say(ada, "pay 5")
        (question,) = await platform.wait_for_answers(ada.chat_id)
        door.close()
        await platform.click(ada, question, "Approve")
        await door.entered.wait()
        # The question is settled meanwhile, and that is not the commit whose reply is lost.
        await until(lambda: _is_all_sent(store))
        _lose_reply(store)
        door.open.set()
        assert [one.text for one in await platform.wait_for_answers(ada.chat_id, 2)][1:] == ["done"]
        assert bank.paid == [5]


@asynccontextmanager
async def ask_on_two_hosts(bank: Bank, postgres: str) -> AsyncGenerator[tuple[InvocationsHost, InvocationsHost, Any]]:
    """Two hosts on one database, the first of which has asked whether it may pay."""
    asks, done = [call("pay", amount=5)], ["done"]
    async with (
        open_client(bank.agent(asks, done), store=PostgresStateStore(postgres)) as first,
        open_client(bank.agent(done), store=PostgresStateStore(postgres)) as second,
    ):
        yield first, second, (await first.ask("pay 5", session_id="s")).json()


async def test_two_hosts_were_given_the_same_answer_at_once(postgres: str) -> None:
    bank = Bank()
    async with ask_on_two_hosts(bank, postgres) as (first, second, run):
        answers = await asyncio.gather(*(desk.post(yes(run)) for desk in (first, second, first, second)))
        assert sorted(one.status_code for one in answers) == [200, 409, 409, 409]
        assert bank.paid == [5]


async def test_a_host_that_stood_still_after_its_decision_acted_on_an_answer_that_another_had(postgres: str) -> None:
    bank = Bank()
    async with ask_on_two_hosts(bank, postgres) as (first, second, run):
        decided = Decided(first.host)
        late = asyncio.create_task(first.post(yes(run)))
        await decided.seen.wait()
        # As if its lease had ended.
        engine: Any = second.ledger._engine
        await engine.write([Do("UPDATE leases SET until = 0")])
        assert (await second.post(yes(run))).json()["text"] == "done"
        decided.go_on.set()
        assert code(await late) == (409, "approval_answered")
        assert bank.paid == [5]
