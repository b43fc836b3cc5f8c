"""Going out: crashes around a send, and what is sent after them."""

from pathlib import Path

import pytest

from frontdesk import ChannelIdentity
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.messages import MessagePlatform, Person
from tests.faults.inbox.desk import wait_for_answers
from tests.faults.inbox.processes import DeskProcess, Desks
from tests.scenarios.desk import until
from tests.testing.messages.starting import fork_platform


async def keys_of(platform: MessagePlatform) -> list[str]:
    """What the platform has accepted, in its order."""
    return [one.idempotency_key for one in await platform.log() if one.method == "send"]


async def wait_for_deliveries(host: DeskProcess) -> list[str]:
    """How all deliveries ended, once they have."""
    found: list[str] = []

    async def all_ended() -> bool:
        found[:] = sorted(status for status, _ in (await host.http.get("/deliveries")).json().values())
        return "open" not in found

    await until(all_ended)
    return found


async def ask_and_crash(platform: MessagePlatform, who: Person, host: DeskProcess, point: str) -> None:
    """Somebody asks, and the host dies over the answer."""
    await platform.say(who, "first")
    await wait_for_answers(platform, who, 1)
    await host.arm(point, 1)
    await platform.say(who, "second")
    await host.wait_for_end()


async def test_a_crash_before_the_send_loses_no_answer(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            await ask_and_crash(platform, ann, await desks.host(), "before_push")
            assert await wait_for_answers(platform, ann, 1) == ["heard first"]
            await desks.host()
            assert await wait_for_answers(platform, ann, 2) == ["heard first", "heard second"]
        assert desks.list_asked() == ["first", "second"]


async def test_a_crash_after_the_send_does_not_send_it_again(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            await ask_and_crash(platform, ann, await desks.host(), "after_push")
            await desks.host()
            await platform.say(ann, "third")
            # The platform knows the part by its key, and shows it once.
            assert await wait_for_answers(platform, ann, 3) == ["heard first", "heard second", "heard third"]
        assert desks.list_asked() == ["first", "second", "third"]


async def test_a_crash_after_the_send_is_not_repeated_blindly_where_nobody_knows_keys(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        await platform.set(dedupe=False)
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", idempotent=False) as desks:
            await ask_and_crash(platform, ann, await desks.host(), "after_push")
            host = await desks.host()
            await platform.say(ann, "third")
            assert await wait_for_answers(platform, ann, 3) == ["heard first", "heard second", "heard third"]
            states = await wait_for_deliveries(host)
        # It is neither forgotten nor called a success: it is unknown, and can be seen.
        assert states == ["accepted", "accepted", "unknown"]


async def test_an_answer_that_was_left_behind_is_not_sent_weeks_later(tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            await platform.fail("unavailable", method="send")
            await host.deliver({"to": ann.user_id, "text": "the kitchen closes in an hour", "key": "1"})
            await host.kill()
            await let_weeks_pass(tmp_path / "state" / "frontdesk.db", ann)
            await platform.recover()
            host = await desks.host()
            await host.deliver({"to": ann.user_id, "text": "good morning", "key": "2"})
            assert await wait_for_answers(platform, ann, 1) == ["good morning"]
            states = await wait_for_deliveries(host)
        assert states == ["accepted", "dead"]


async def let_weeks_pass(database: Path, who: Person) -> None:
    """As if what waits had been written three weeks ago."""
    store = SqliteStateStore(database)
    await store.open()
    identity = ChannelIdentity(channel="messages", native_id=who.user_id)
    for one in await store.outbox.open((identity.channel, identity.native_id)):
        async with store.transaction() as transaction:
            transaction.change_delivery(one.replace(queued_at=one.created_at - 21 * 86_400))
    await store.close()


@pytest.mark.parametrize("point", ["before_push", "after_push"])
async def test_a_batch_half_sent_goes_on_where_it_was(point: str, tmp_path: Path) -> None:
    async with fork_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger", text_limit=20) as desks:
            host = await desks.host()
            text = " ".join(f"word{number:02}" for number in range(20))
            await host.arm(point, 4)
            await host.deliver({"to": ann.user_id, "text": text, "key": "1"})
            await host.wait_for_end()
            half = len(await platform.answers(ann.chat_id))
            assert 3 <= half <= 4
            await desks.host()
            said = await wait_for_answers(platform, ann, 10)
        assert " ".join(one.strip() for one in said) == text
        keys = await keys_of(platform)
        assert len(keys) == len(set(keys))
