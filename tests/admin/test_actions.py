"""What operators do: each action is written with its line in the audit log, or not at all."""

from collections.abc import Mapping
from typing import Any

import pytest

from frontdesk.admin.actions import ACTIONS, AdminActions, AdminParts
from frontdesk.admin.queries import AdminQueries
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW, OWNER, delivery, identity, inbox_item, job, link, question, run
from tests.access.linking import desk, introduce, join

DEAD = delivery("dlv_1", status="dead", error="blocked", ended_at=NOW)


class Desk:
    """An operator at a store, who looks before they act."""

    def __init__(self, store: HostStateStore) -> None:
        self.store = store
        self.parts = AdminParts.of_store(store, FakeClock(NOW + 5), RandomIds())
        self.actions = AdminActions(self.parts, "ann")
        self.queries = AdminQueries(store)

    async def act(self, kind: str, action: str, seen: str | None = None, **name: str) -> dict[str, Any]:
        row = await self.queries.show(kind, name)
        return await self.actions.act(kind, action, name, seen=seen or row["seen"])

    async def list_audited(self) -> list[tuple[str, str, str]]:
        return [(line.action, line.subject, line.by) for line in await self.store.audit.lines()]


@pytest.fixture
def operator(store: HostStateStore) -> Desk:
    return Desk(store)


async def write(store: HostStateStore, **calls: Any) -> None:
    async with store.transaction() as transaction:
        for name, value in calls.items():
            getattr(transaction, name)(value)


async def test_a_delivery_is_tried_again_and_dropped(operator: Desk) -> None:
    await write(operator.store, add_delivery=DEAD)
    after = await operator.act("deliveries", "retry", id="dlv_1")
    assert (after["status"], after["attempts"]) == ("pending", 0)
    after = await operator.act("deliveries", "drop", id="dlv_1")
    assert after["status"] == "cancelled"
    assert await operator.list_audited() == [
        ("delivery_retried", "dlv_1", "operator:ann"),
        ("delivery_dropped", "dlv_1", "operator:ann"),
    ]
    (line, _) = await operator.store.audit.lines()
    assert (line.at, line.owner, line.reason) == (NOW + 5, OWNER, "was dead")
    with pytest.raises(ConflictError, match="can't be dropped"):
        await operator.act("deliveries", "drop", id="dlv_1")


async def test_a_run_that_waits_is_marked(operator: Desk) -> None:
    async with operator.store.transaction() as transaction:
        queued = run("run_1", background=True, status="queued")
        transaction.queue_run(queued, job("run_1"), most_waiting=9, most_of_owner=9)
        transaction.save_run(run("run_2", finished_at=NOW))
    after = await operator.act("runs", "cancel", id="run_1")
    assert after["cancelling"] is True
    marked = await operator.store.background.get(OWNER, "run_1")
    assert marked is not None
    assert marked.cancelled
    assert await operator.list_audited() == [("run_cancelled", "run_1", "operator:ann")]
    with pytest.raises(ConflictError, match="Only a pending or running background run"):
        await operator.act("runs", "cancel", id="run_2")


async def test_an_event_that_waits_is_finished_and_one_that_is_worked_on_is_marked(operator: Desk) -> None:
    store = operator.store
    async with store.transaction() as transaction:
        transaction.accept(inbox_item("evt_1", chat="a"))
        transaction.accept(inbox_item("evt_2", chat="b"))
        transaction.accept(inbox_item("evt_3", chat="c", kind="control"))
    held = await store.inbox.claim("telegram", "b", "host")
    assert held is not None
    rows = {row["event_id"]: row for row in (await operator.queries.page("inbox")).items}
    after = await operator.act("inbox", "cancel", id=str(rows["evt_1"]["number"]))
    assert (after["status"], after["error"]) == ("cancelled", "cancelled")
    after = await operator.act("inbox", "cancel", id=str(rows["evt_2"]["number"]))
    assert (after["status"], after["cancelling"]) == ("working", True)
    (kept,) = await store.inbox.renew([held])
    assert kept.is_cancelled
    assert await store.inbox.next("telegram", "a") is None
    assert [action for action, _, _ in await operator.list_audited()] == ["event_cancelled"] * 2
    with pytest.raises(ConflictError, match="Only a pending or running turn"):
        await operator.act("inbox", "cancel", id=str(rows["evt_3"]["number"]))


async def test_a_question_is_answered_by_an_operator_which_is_audited(operator: Desk) -> None:
    asked = question(requester=Caller(identity=ChannelIdentity(channel="web", native_id="1")))
    await write(operator.store, add_approval=asked)
    with pytest.raises(ConflictError, match="has changed"):
        # The stored digest is not that of the call.
        await operator.act("approvals", "approve", id="apr_1")
    after = await operator.act("approvals", "reject", id="apr_1")
    assert after["status"] == "rejected"
    assert await operator.list_audited() == [("rejected", "apr_1", "operator:ann")]
    (vote,) = await operator.store.approvals.votes(asked.owner, "apr_1")
    assert (vote.voter, vote.seat, vote.approved) == ("operator:ann", "operator", False)
    with pytest.raises(ConflictError, match="can't be answered: its status is rejected"):
        await operator.act("approvals", "approve", id="apr_1")


async def test_a_question_is_cancelled_once(operator: Desk) -> None:
    await write(operator.store, add_approval=question())
    after = await operator.act("approvals", "cancel", id="apr_1")
    assert after["status"] == "cancelled"
    assert await operator.list_audited() == [("cancelled", "apr_1", "operator:ann")]
    with pytest.raises(ConflictError, match="can't be cancelled: its status is cancelled"):
        await operator.act("approvals", "cancel", id="apr_1")
    with pytest.raises(InvalidRequestError, match="Unknown action"):
        await operator.act("approvals", "answer", id="apr_1")


async def test_a_link_is_revoked_with_those_that_came_through_it(operator: Desk) -> None:
    await introduce(operator.store)
    links = desk(operator.store)
    await join(links, "b", "a")
    await join(links, "c", "b")
    after = await operator.act("links", "revoke", channel="chat-b", id="b")
    assert after["gone"] is True
    assert (await operator.queries.page("links")).items == []
    lines = [(action, by) for action, _, by in await operator.list_audited()]
    assert lines == [*[("linked", "key of a")] * 2, *[("unlinked", "operator:ann")] * 2]


@pytest.mark.parametrize("kind", ACTIONS)
async def test_what_has_changed_since_it_was_seen_is_left_alone(operator: Desk, kind: str) -> None:
    store = operator.store
    async with store.transaction() as transaction:
        transaction.add_delivery(DEAD)
        transaction.queue_run(
            run("run_1", background=True, status="queued"), job("run_1"), most_waiting=9, most_of_owner=9
        )
        transaction.accept(inbox_item())
        transaction.add_approval(question())
        transaction.add_link(link(identity()))
    names: Mapping[str, dict[str, str]] = {
        "deliveries": {"id": "dlv_1"},
        "runs": {"id": "run_1"},
        "inbox": {"id": str((await operator.queries.page("inbox")).items[0]["number"])},
        "approvals": {"id": "apr_1"},
        "links": {"channel": "telegram", "id": "1"},
    }
    before = await operator.queries.show(kind, names[kind])
    await _change(store, kind)
    changed = await operator.queries.show(kind, names[kind])
    for action in ACTIONS[kind]:  # type: ignore[index]
        with pytest.raises(ConflictError) as refused:
            await operator.act(kind, action, seen=before["seen"], **names[kind])
        assert refused.value.code == "changed"
    assert await operator.queries.show(kind, names[kind]) == changed
    assert await operator.list_audited() == []


async def _change(store: HostStateStore, kind: str) -> None:
    if kind == "runs":
        await store.background.claim("another", limit=1)
    elif kind == "inbox":
        await store.inbox.claim("telegram", "chat", "another")
    else:
        async with store.transaction() as transaction:
            if kind == "deliveries":
                transaction.change_delivery(DEAD.replace(attempts=3))
            elif kind == "approvals":
                transaction.decide_approval(OWNER, "apr_1", "approved", at=NOW)
            else:
                transaction.add_link(link(identity()).replace(link_id="lnk_other"))


async def test_what_changes_between_the_look_and_the_write_is_left_alone(
    operator: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = operator.store
    await write(store, accept=inbox_item())
    number = str((await operator.queries.page("inbox")).items[0]["number"])
    seen = (await operator.queries.show("inbox", {"id": number}))["seen"]
    find = AdminQueries.find

    async def late(self: AdminQueries, kind: Any, name: Mapping[str, str]) -> Any:
        row = await find(self, kind, name)
        await store.inbox.claim("telegram", "chat", "another")
        return row

    monkeypatch.setattr(AdminQueries, "find", late)
    with pytest.raises(ConflictError) as refused:
        await operator.actions.act("inbox", "cancel", {"id": number}, seen=seen)
    assert refused.value.code == "changed"
    assert await operator.list_audited() == []


async def test_who_acts_has_a_name(operator: Desk) -> None:
    for name in ("", "a" * 101, "two\nlines"):
        with pytest.raises(InvalidRequestError):
            AdminActions(operator.parts, name)
    with pytest.raises(NotFoundError):
        await operator.actions.act("deliveries", "retry", {"id": "dlv_9"}, seen="x")
