"""The contract of stores for isolation: no call may reveal records of other owners."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from frontdesk.errors import StoreError
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.file import compute_file_id
from frontdesk.models.run import RunFilter
from frontdesk.serialization.codec import encode
from frontdesk_testing.store_samples import (
    NOW,
    OTHER,
    OWNER,
    build_identity,
    build_last_seen,
    build_messages,
    build_name,
    build_place,
    conversation,
    conversation_item,
    delivery,
    event,
    identity,
    job,
    keep_session,
    link,
    question,
    run,
    session,
    vote,
    watcher,
)

Read = Callable[[HostStateStore, str], Awaitable[Any]]
Write = Callable[[StateTransaction, str], None]

_FILE = b"secret"


async def _content(store: HostStateStore, owner: str) -> str | None:
    kept = await store.files.get(owner, compute_file_id(OWNER, _FILE))
    return None if kept is None else kept[1].decode()


async def _bytes_kept(store: HostStateStore, owner: str) -> int | None:
    return await store.files.get_size(owner) or None


async def _runs_listed(store: HostStateStore, owner: str) -> Sequence[Any]:
    return (await store.runs.page(owner, RunFilter())).runs


async def _last_messages(store: HostStateStore, owner: str) -> Sequence[Any]:
    return (await store.sessions.history_page(owner, "ses_1")).messages


READS: dict[str, Read] = {
    "sessions.find": lambda store, owner: store.sessions.find(build_name(owner=owner)),
    "sessions.get": lambda store, owner: store.sessions.get(owner, "ses_1"),
    "sessions.history": lambda store, owner: store.sessions.history(owner, "ses_1"),
    "sessions.history_page": _last_messages,
    "sessions.first_messages": lambda store, owner: store.sessions.first_messages(owner, ["ses_1"]),
    "sessions.titles": lambda store, owner: store.sessions.titles(owner, ["ses_1"]),
    "identities.of_owner": lambda store, owner: store.identities.of_owner(owner),
    "identities.last_seen": lambda store, owner: store.identities.last_seen(owner),
    "identities.links": lambda store, owner: store.identities.links(owner),
    "runs.get": lambda store, owner: store.runs.get(owner, "run_1"),
    "runs.events": lambda store, owner: store.runs.events(owner, "run_1"),
    "runs.newest_of_chain": lambda store, owner: store.runs.newest_of_chain(owner, "run_1"),
    "runs.next_of_chain": lambda store, owner: store.runs.next_of_chain(owner, "run_1", run(finished_at=NOW)),
    "runs.page": _runs_listed,
    "watchers.get": lambda store, owner: store.watchers.get(owner, "watch_1"),
    "watchers.of_chain": lambda store, owner: store.watchers.of_chain(owner, "run_1", now=NOW),
    "background.get": lambda store, owner: store.background.get(owner, "run_2"),
    "background.of_owner": lambda store, owner: store.background.of_owner(owner),
    "approvals.get": lambda store, owner: store.approvals.get(owner, "apr_1"),
    "approvals.of_session": lambda store, owner: store.approvals.of_session(owner, "ses_1"),
    "approvals.of_chain": lambda store, owner: store.approvals.of_chain(owner, "run_1"),
    "approvals.pending": lambda store, owner: store.approvals.pending(owner),
    "approvals.asked_as": lambda store, owner: store.approvals.asked_as(owner, "call"),
    "approvals.places": lambda store, owner: store.approvals.places(owner, "apr_1"),
    "approvals.votes": lambda store, owner: store.approvals.votes(owner, "apr_1"),
    "approvals.waiting_for": lambda store, owner: store.approvals.waiting_for((), owner=owner),
    "outbox.find": lambda store, owner: store.outbox.find(owner=owner),
    "conversations.get": lambda store, owner: store.conversations.get(owner, "conv_1"),
    "conversations.items": lambda store, owner: store.conversations.items(owner, "conv_1"),
    "conversations.item": lambda store, owner: store.conversations.item(owner, "conv_1", "item_1"),
    "files.get": _content,
    "files.get_size": _bytes_kept,
}
"""Every call that reads for an owner."""

WRITES: dict[str, Write] = {
    "remove_watcher": lambda transaction, owner: transaction.remove_watcher(owner, "watch_1"),
    "remove_link": lambda transaction, owner: transaction.remove_link(owner, identity()),
    "delete_run": lambda transaction, owner: transaction.delete_run(owner, "run_1"),
    "add_events": lambda transaction, owner: transaction.add_events([event(3, owner=owner)]),
    "cancel_job": lambda transaction, owner: transaction.cancel_job(owner, "run_2"),
    "delete_conversation": lambda transaction, owner: transaction.delete_conversation(owner, "conv_1"),
    "add_items": lambda transaction, owner: transaction.add_items(owner, [conversation_item("item_2")]),
    "delete_item": lambda transaction, owner: transaction.delete_item(owner, "conv_1", "item_1"),
    "cancel_approvals": lambda transaction, owner: transaction.cancel_approvals(owner, at=NOW),
    "begin_approval": lambda transaction, owner: transaction.begin_approval(owner, "apr_2", "att_1"),
    "release_approval": lambda transaction, owner: transaction.release_approval(owner, "apr_2", "att_1"),
    "count_vote": lambda transaction, owner: transaction.count_vote(owner, "apr_1", seen=0),
    "escalate_approval": lambda transaction, owner: transaction.escalate_approval(owner, "apr_1"),
    "decide_approval": lambda transaction, owner: transaction.decide_approval(owner, "apr_1", "approved", at=NOW),
    "title_session": lambda transaction, owner: transaction.title_session(owner, "ses_1", "another"),
}
"""Every call that changes or adds records for an owner."""


NOTHING = {encode(None), encode([]), encode({})}


async def keep_everything(store: HostStateStore) -> None:
    """Store a record of each kind, all of one owner."""
    await store.sessions.reserve(build_name(), "ses_1")
    await keep_session(store, session(key="mine"), build_messages("secret"))
    await store.identities.remember(build_identity(identity()))
    async with store.transaction() as transaction:
        transaction.see(build_last_seen(identity()))
        transaction.add_link(link(identity()))
        transaction.save_run(run())
        transaction.save_run(run("run_3", finished_at=NOW + 1, root_run_id="run_1"))
        transaction.add_events([event(1), event(2)])
        transaction.add_watcher(watcher(), most_of_owner=9, most_of_chain=9)
        queued = run("run_2", status="queued", background=True)
        transaction.queue_run(queued, job("run_2"), most_waiting=9, most_of_owner=9)
        transaction.title_session(OWNER, "ses_1", "secret")
        transaction.add_approval(question(target_request_id="call"))
        transaction.add_vote(vote())
        transaction.add_place(build_place())
        transaction.add_approval(question("apr_2"))
        transaction.add_delivery(delivery())
        transaction.save_conversation(conversation())
        transaction.add_items(OWNER, [conversation_item("item_1")])
    await store.files.put(OWNER, _FILE, media_type="text/plain")
    async with store.transaction() as transaction:
        transaction.decide_approval(OWNER, "apr_2", "approved", at=NOW, attempt="att_1")


async def read_all(store: HostStateStore, owner: str) -> dict[str, bytes]:
    """Return the records that an owner can see, in a comparable form."""
    results = {name: await read(store, owner) for name, read in READS.items()}
    return {
        name: encode(list(cast(Sequence[Any], value)) if isinstance(value, Sequence) else value)
        for name, value in results.items()
    }


class Isolation:
    """The records of one owner do not exist for another."""

    async def test_an_owner_sees_all_of_it_and_nobody_else_any(self, store: HostStateStore) -> None:
        await keep_everything(store)
        assert NOTHING.isdisjoint((await read_all(store, OWNER)).values())
        for stranger in (OTHER, "", OWNER.upper(), f"{OWNER} ", f"{OWNER}\0", "%", "*"):
            assert NOTHING.issuperset((await read_all(store, stranger)).values()), stranger

    @pytest.mark.parametrize("name", WRITES)
    async def test_nobody_else_can_change_anything(self, store: HostStateStore, name: str) -> None:
        await keep_everything(store)
        before = await read_all(store, OWNER)
        for stranger in (OTHER, ""):
            try:
                async with store.transaction() as transaction:
                    WRITES[name](transaction, stranger)
            except StoreError:
                assert name in ("decide_approval", "begin_approval", "count_vote", "escalate_approval")
            assert await read_all(store, OWNER) == before
            assert NOTHING.issuperset((await read_all(store, stranger)).values())
        async with store.transaction() as transaction:
            WRITES[name](transaction, OWNER)
        assert await read_all(store, OWNER) != before
