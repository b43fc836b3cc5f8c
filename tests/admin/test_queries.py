"""What operators see: rows of everybody by pages, and neither secrets nor what people said."""

import json
from typing import Any

import pytest

from frontdesk.admin import queries
from frontdesk.admin.queries import FILTERS, MAX_SCANNED, AdminQueries
from frontdesk.errors import ConflictError, InvalidRequestError, NotFoundError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.channel_storage import SealedToken
from frontdesk.models.delivery import Attempt
from frontdesk.models.identity import Caller
from frontdesk.models.operations import INDEXED, PLACES
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import RunFailure
from frontdesk_testing.store_ledger import fill
from frontdesk_testing.store_samples import (
    NOW,
    OTHER,
    OWNER,
    audit_line,
    build_identity,
    build_last_seen,
    build_messages,
    delivery,
    identity,
    inbox_item,
    keep_session,
    link,
    question,
    run,
    session,
)

SAID = "nobody's business"


async def pages(asked: AdminQueries, kind: str, filters: dict[str, str], limit: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    after = None
    while True:
        page = await asked.page(kind, filters, after=after, limit=limit)
        assert len(page.items) <= limit
        assert page.scanned <= MAX_SCANNED
        items += page.items
        after = page.next
        if after is None:
            return items


@pytest.mark.parametrize("kind", PLACES)
async def test_pages_hold_all_rows_once(store: HostStateStore, kind: str) -> None:
    await fill(store, 7)
    asked = AdminQueries(store)
    whole = (await asked.page(kind)).items
    assert len(whole) == 7
    for limit in (1, 3, 7):
        assert await pages(asked, kind, {}, limit) == whole
    assert len({row["seen"] for row in whole}) == 7


async def test_filters_are_combined(store: HostStateStore) -> None:
    await fill(store, 9)
    asked = AdminQueries(store)

    async def found(kind: str, **filters: str) -> list[str]:
        rows = await pages(asked, kind, filters, 2)
        return [str(row[queries.IDS[queries.check_kind(kind)]]) for row in rows]

    assert await found("deliveries", status="dead", channel="slack") == ["dlv_1"]
    assert await found("deliveries", status="dead", channel="telegram") == []
    assert await found("deliveries", person=OTHER, status="pending") == ["dlv_7", "dlv_5", "dlv_3"]
    assert await found("runs", status="failed") == ["run_1"]
    assert await found("runs", status="completed", person=OTHER) == ["run_7", "run_5", "run_3"]
    assert await found("runs", since=repr(NOW + 6)) == ["run_8", "run_7", "run_6"]
    assert await found("sessions", since=repr(NOW + 7), person=OWNER) == ["ses_8"]
    assert await found("people", channel="slack") == ["n1", "n3", "n5", "n7"]
    assert await found("links", channel="slack", id="n3") == ["n3"]
    assert await found("audit", subject="apr_3", by=OTHER) != []
    assert await found("inbox", status="done") == []
    assert len(await found("inbox", status="waiting", channel="slack")) == 4


async def test_what_few_rows_match_is_looked_for_a_bounded_number_at_a_time(
    store: HostStateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_SCANNED", 4)
    monkeypatch.setattr(queries, "_CHUNK_ROWS", 3)
    await fill(store, 9)
    asked = AdminQueries(store)
    first = await asked.page("runs", {"status": "completed", "person": OTHER}, limit=9)
    assert (len(first.items), first.scanned, first.next is None) == (3, 4, False)
    scanned = await asked.page("inbox", {"status": "done"}, limit=9)
    assert (scanned.items, scanned.scanned, scanned.next is not None) == ([], 4, True)
    assert await pages(asked, "inbox", {"status": "done"}, 9) == []


async def test_old_rows_end_the_search(store: HostStateStore) -> None:
    async with store.transaction() as transaction:
        for number in range(6):
            transaction.add_audit(audit_line(subject=f"s{number}", at=NOW + 3000 * number))
    page = await AdminQueries(store).page("audit", {"since": repr(NOW + 11_000)})
    # A row that is only a little too old does not end it, as the clocks of hosts differ.
    assert ([row["subject"] for row in page.items], page.next, page.scanned) == (["s5", "s4"], None, 4)


@pytest.mark.parametrize(
    ("kind", "filters", "limit", "param"),
    [
        ("secrets", {}, 1, "kind"),
        ("runs", {"channel": "web"}, 1, "channel"),
        ("runs", {"since": "yesterday"}, 1, "since"),
        ("runs", {}, 0, "limit"),
        ("runs", {}, 201, "limit"),
        ("people", {"id": "1"}, 1, "channel"),
    ],
)
async def test_a_wrong_question_is_refused(kind: str, filters: dict[str, str], limit: int, param: str) -> None:
    from frontdesk import InMemoryStateStore

    with pytest.raises(InvalidRequestError) as refused:
        await AdminQueries(InMemoryStateStore()).page(kind, filters, limit=limit)
    assert refused.value.param == param


async def confide(store: HostStateStore) -> None:
    """Write rows of each kind that hold what nobody may see."""
    who = identity("1", name="Ann", phone=SAID)
    token = SealedToken(event_id="evt_1", key_id="k", data=SAID.encode(), expires_at=NOW)
    asked = ChannelRequest(channel="telegram", input=SAID, reference={"secret": SAID}, metadata={"m": SAID})
    caller = Caller(identity=who, claims={"email": SAID})
    await store.identities.remember(build_identity(who))
    await keep_session(store, session(state={"memory": SAID}), build_messages(SAID))
    async with store.transaction() as transaction:
        transaction.title_session(OWNER, "ses_1", SAID)
        transaction.see(build_last_seen(who))
        transaction.save_run(
            run(
                status="failed",
                input=build_messages(SAID),
                finished_at=NOW,
                metadata={"m": SAID},
                failure=RunFailure(code="target_failed", message=SAID),
            )
        )
        transaction.add_delivery(
            delivery(payload=SAID, reference={"r": SAID}, history=(Attempt(at=NOW, code="down"),), reply_token=token)
        )
        transaction.add_approval(question(reason=None, requester=caller, resume=asked))
        transaction.add_link(link(who).replace(claims={"email": SAID}, subject="issuer|1"))
        item = inbox_item().replace(caller=caller, request=asked, payload=SAID, reply_token=token)
        transaction.accept(item)
        transaction.add_audit(audit_line().replace(reason=SAID))


async def test_nothing_that_people_said_is_in_a_list_or_shown_unasked(store: HostStateStore) -> None:
    await confide(store)
    asked = AdminQueries(store)
    for kind in PLACES:
        (row,) = (await asked.page(kind)).items
        name = {"id": str(row[queries.IDS[kind]])}
        if kind in ("people", "links"):
            name["channel"] = row["channel"]
        shown = await asked.show(kind, name)
        assert SAID not in json.dumps([row, shown]), kind
        assert row.items() <= shown.items()
        content = json.dumps(await asked.show(kind, name, content=True))
        assert (SAID in content) is (kind not in ("people", "links", "approvals")), kind
    approval = await asked.show("approvals", {"id": "apr_1"}, content=True)
    assert json.loads(approval["arguments"]) == {"amount": 5}
    linked = await asked.show("links", {"channel": "telegram", "id": "1"})
    assert (linked["claims"], linked["subject"], linked["linked_with"]) == (["email"], "issuer|1", [])
    person = await asked.show("people", {"channel": "telegram", "id": "1"})
    assert (person["name"], person["last_seen_on"], person["last_seen_at"]) == ("Ann", "telegram", NOW)
    sent = await asked.show("deliveries", {"id": "del_1"})
    assert sent["history"] == [{"at": NOW, "what": "down"}]


async def test_a_row_is_named_by_its_id(store: HostStateStore) -> None:
    await fill(store, 2)
    async with store.transaction() as transaction:
        transaction.save_run(run("run_0", owner=OTHER, finished_at=NOW))
    asked = AdminQueries(store)
    with pytest.raises(NotFoundError, match="No session with this id"):
        await asked.show("sessions", {"id": "ses_9"})
    with pytest.raises(ConflictError, match="Add the person"):
        await asked.show("runs", {"id": "run_0"})
    assert (await asked.show("runs", {"id": "run_0", "person": OTHER}))["person"] == OTHER
    with pytest.raises(InvalidRequestError):
        await asked.show("links", {"channel": "slack"})
    with pytest.raises(NotFoundError):
        await asked.show("inbox", {"id": "no number"})


def test_each_filter_has_an_index_or_ends_the_search() -> None:
    for kind, filters in FILTERS.items():
        indexed = {name for names in INDEXED[kind] for name in names}
        assert set(filters) - {"since"} == indexed
