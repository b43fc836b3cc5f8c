"""The contract of stores for atomic transactions."""

import asyncio

import pytest

from frontdesk.errors import StaleTurnError, StoreError
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.session import Lease
from frontdesk_testing.store_samples import (
    NOW,
    OWNER,
    build_identity,
    build_last_seen,
    build_messages,
    build_name,
    conversation,
    conversation_item,
    count_all_rows,
    delivery,
    event,
    grant,
    identity,
    inbox_item,
    keep_session,
    link,
    question,
    run,
    session,
    texts,
    write_all_rows,
)


async def prepare(store: HostStateStore) -> Lease:
    """Store a record of each kind that can be changed or removed."""
    await store.sessions.reserve(build_name(), "ses_old")
    await keep_session(store, session("ses_old"))
    await store.identities.remember(build_identity(identity("1")))
    async with store.transaction() as transaction:
        transaction.see(build_last_seen(identity("1"), at=NOW))
        transaction.add_link(link(identity("old")))
        transaction.save_run(run("run_old"))
        transaction.add_approval(question("apr_old"))
        transaction.accept(inbox_item("evt_old", chat="old"))
        transaction.add_delivery(delivery("del_old"))
        transaction.save_conversation(conversation("conv_old"))
        transaction.save_conversation(conversation("conv_kept"))
        transaction.add_items(OWNER, [conversation_item("item_old", "conv_kept")])
        transaction.add_grant(grant("gra_old"))
        transaction.save_checkpoint("ses_old", "chk_old", b"old")
    return await store.sessions.claim("ses_new")


async def note_everything(store: HostStateStore, transaction: StateTransaction, lease: Lease) -> None:
    """Call every method of a transaction."""
    finished = await store.inbox.next("telegram", "old")
    assert finished is not None
    transaction.save_session(session("ses_new"), lease)
    transaction.name_session(build_name(), "ses_new")
    transaction.append_history("ses_new", build_messages("new"))
    transaction.remember_identity(build_identity(identity("2")))
    transaction.see(build_last_seen(identity("2"), at=NOW + 1))
    transaction.add_link(link(identity("new")))
    transaction.remove_link(OWNER, identity("old"))
    transaction.save_run(run("run_new"))
    transaction.add_events([event(1, "run_new")])
    transaction.delete_run(OWNER, "run_old")
    transaction.add_approval(question("apr_new"))
    transaction.decide_approval(OWNER, "apr_old", "approved", at=NOW)
    transaction.cancel_approvals("of_nobody", at=NOW)
    transaction.accept(inbox_item("evt_new", chat="new"))
    transaction.finish(finished)
    transaction.add_delivery(delivery("del_new"))
    transaction.change_delivery(delivery("del_old", status="dead", ended_at=NOW))
    transaction.end_rest(delivery("del_none", answer_id="none"), error="e", at=NOW)
    transaction.save_conversation(conversation("conv_new"))
    transaction.delete_conversation(OWNER, "conv_old")
    transaction.add_items(OWNER, [conversation_item("item_new", "conv_kept")])
    transaction.delete_item(OWNER, "conv_kept", "item_old")
    transaction.add_grant(grant("gra_new"))
    transaction.use_grant("gra_old")
    transaction.save_checkpoint("ses_new", "chk_new", b"new")
    transaction.delete_checkpoint("ses_old", "chk_old")


async def look(store: HostStateStore) -> dict[str, object]:
    """Return the records that `note_everything` changes."""
    current = await store.sessions.find(build_name())
    place = await store.identities.last_seen(OWNER)
    conversations = [await store.conversations.get(OWNER, f"conv_{name}") for name in ("old", "new")]
    runs = [await store.runs.get(OWNER, f"run_{name}") for name in ("old", "new")]
    grants = [await store.identities.grant(f"gra_{name}") for name in ("old", "new")]
    saved = [await store.checkpoints.get(f"ses_{name}", f"chk_{name}") for name in ("old", "new")]
    return {
        "session": await store.sessions.get(OWNER, "ses_new") is not None,
        "name": None if current is None else current.session_id,
        "history": texts(await store.sessions.history(OWNER, "ses_new")),
        "identities": sorted(person.native_id for person in await store.identities.of_owner(OWNER)),
        "seen": None if place is None else place.at,
        "links": sorted(record.identity.native_id for record in await store.identities.links(OWNER)),
        "runs": [record.run_id for record in runs if record is not None],
        "events": len(await store.runs.events(OWNER, "run_new")),
        "approvals": [approval.approval_id for approval in await store.approvals.pending(OWNER)],
        "inbox": sorted((item.channel, item.conversation_id) for item in await store.inbox.waiting("h")),
        "outbox": [row.delivery_id for row in await store.outbox.open(("telegram", "1"))],
        "conversations": [record.conversation_id for record in conversations if record is not None],
        "items": [item.item_id for item in await store.conversations.items(OWNER, "conv_kept")],
        "grants": [record.grant_id for record in grants if record is not None],
        "checkpoints": [data for data in saved if data is not None],
    }


BEFORE: dict[str, object] = {
    "session": False,
    "name": "ses_old",
    "history": [],
    "identities": ["1"],
    "seen": NOW,
    "links": ["old"],
    "runs": ["run_old"],
    "events": 0,
    "approvals": ["apr_old"],
    "inbox": [("telegram", "old")],
    "outbox": ["del_old"],
    "conversations": ["conv_old"],
    "items": ["item_old"],
    "grants": ["gra_old"],
    "checkpoints": [b"old"],
}
AFTER: dict[str, object] = {
    "session": True,
    "name": "ses_new",
    "history": ["new"],
    "identities": ["1", "2"],
    "seen": NOW + 1,
    "links": ["new"],
    "runs": ["run_new"],
    "events": 1,
    "approvals": ["apr_new"],
    "inbox": [("telegram", "new")],
    "outbox": ["del_new"],
    "conversations": ["conv_new"],
    "items": ["item_new"],
    "grants": ["gra_new"],
    "checkpoints": [b"new"],
}


class Transactions:
    """A transaction is written completely or not at all."""

    async def test_everything_is_written_when_the_block_is_left_and_nothing_before(self, store: HostStateStore) -> None:
        lease = await prepare(store)
        async with store.transaction() as transaction:
            await note_everything(store, transaction, lease)
            assert await look(store) == BEFORE
        assert await look(store) == AFTER

    @pytest.mark.parametrize("error", [RuntimeError("stop"), asyncio.CancelledError(), KeyboardInterrupt()], ids=repr)
    async def test_an_error_in_the_block_writes_nothing(self, store: HostStateStore, error: BaseException) -> None:
        lease = await prepare(store)
        with pytest.raises(type(error)) as caught:
            await self._interrupt(store, lease, error)
        assert caught.value is error
        assert await look(store) == BEFORE

    async def test_a_lease_that_has_ended_writes_nothing(self, store: HostStateStore) -> None:
        lease = await prepare(store)
        await store.sessions.claim("ses_new")
        with pytest.raises(StaleTurnError):
            async with store.transaction() as transaction:
                await note_everything(store, transaction, lease)
        assert await look(store) == BEFORE

    async def test_an_approval_that_does_not_wait_writes_nothing(self, store: HostStateStore) -> None:
        lease = await prepare(store)
        with pytest.raises(StoreError):
            await self._answer_unknown(store, lease)
        assert await look(store) == BEFORE

    async def test_after_a_failure_the_next_transaction_is_whole(self, store: HostStateStore) -> None:
        lease = await prepare(store)
        with pytest.raises(StoreError):
            await self._answer_unknown(store, lease)
        async with store.transaction() as transaction:
            await note_everything(store, transaction, lease)
        assert await look(store) == AFTER

    async def test_an_empty_transaction_is_fine(self, store: HostStateStore) -> None:
        async with store.transaction():
            pass
        assert list(await store.inbox.waiting("h")) == []

    async def test_fifty_at_once_are_all_written_and_one_that_fails_hurts_only_itself(
        self, store: HostStateStore
    ) -> None:
        async def write(number: int) -> None:
            async with store.transaction() as transaction:
                transaction.save_run(run(f"run_{number}"))
                transaction.add_events([event(1, f"run_{number}")])
                if number == 25:
                    transaction.decide_approval(OWNER, "apr_unknown", "approved", at=NOW)

        results = await asyncio.gather(*(write(number) for number in range(50)), return_exceptions=True)
        failed = [number for number, result in enumerate(results) if result is not None]
        assert failed == [25]
        assert isinstance(results[25], StoreError)
        for number in range(50):
            written = number != 25
            assert (await store.runs.get(OWNER, f"run_{number}") is not None) is written
            assert bool(await store.runs.events(OWNER, f"run_{number}")) is written

    async def test_everything_at_once_from_fifty_is_written_whole_or_not_at_all(self, store: HostStateStore) -> None:
        async def write(number: int) -> None:
            async with store.transaction() as transaction:
                await write_all_rows(store, transaction, f"all_{number}")
                if number % 5 == 0:
                    transaction.use_grant("gra_unknown")

        results = await asyncio.gather(*(write(number) for number in range(50)), return_exceptions=True)
        assert [number for number, result in enumerate(results) if result is not None] == list(range(0, 50, 5))
        assert {type(result) for result in results if result is not None} == {StoreError}
        counts = [await count_all_rows(store, f"all_{number}") for number in range(50)]
        assert counts == [0 if number % 5 == 0 else 20 for number in range(50)]

    async def _interrupt(self, store: HostStateStore, lease: Lease, error: BaseException) -> None:
        async with store.transaction() as transaction:
            await note_everything(store, transaction, lease)
            raise error

    async def _answer_unknown(self, store: HostStateStore, lease: Lease) -> None:
        async with store.transaction() as transaction:
            await note_everything(store, transaction, lease)
            transaction.decide_approval(OWNER, "apr_unknown", "approved", at=NOW)
