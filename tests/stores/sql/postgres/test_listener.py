"""Processes on one Postgres hear of each other, also after the server was away."""

from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing.store_samples import OWNER, job, run
from tests.databases import postgres_server
from tests.scenarios.desk import until


async def test_what_one_writes_the_other_hears_and_again_after_the_server_was_away() -> None:
    heard: list[tuple[str, str]] = []
    with postgres_server() as server, server.database() as place:
        one, other = PostgresStateStore(place), PostgresStateStore(place)
        other.listen(lambda kind, run_id: heard.append((kind, run_id)))
        await one.open()
        await other.open()
        # When it begins to listen, anything may have happened before.
        await until(lambda: ("cancel", "") in heard)
        heard.clear()
        async with one.transaction() as transaction:
            record = run("run_1", status="queued", background=True)
            transaction.queue_run(record, job(), most_waiting=9, most_of_owner=9)
        await until(lambda: heard == [("work", "")])
        (mine,) = await one.background.claim("host_me", limit=1)
        async with one.transaction() as transaction:
            transaction.cancel_job(OWNER, "run_1")
        await until(lambda: heard[1:] == [("cancel", "run_1")])
        heard.clear()
        server.stop()
        server.start()
        await until(lambda: ("run", "") in heard, within=40)
        heard.clear()
        async with one.transaction() as transaction:
            transaction.end_job(mine)
        await until(lambda: heard == [("run", "run_1")])
        await other.close()
        await one.close()
