"""The lines of the audit log about links."""

from frontdesk.interfaces.store import HostStateStore
from tests.access.linking import desk, home, join, who
from tests.access.test_links import store, stores

__all__ = ["store", "stores"]


async def test_a_link_and_its_end_by_a_person_were_not_in_the_audit_log(store: HostStateStore) -> None:
    links = desk(store)
    await join(links, "b", "a")
    link = await store.identities.link(who("b"))
    assert link is not None
    # The same proof again changes nothing.
    await join(links, "b", "a")
    await links.part(who("b"))
    lines = [(line.action, line.subject, line.owner, line.by, line.reason) for line in await store.audit.lines()]
    accounts = "b on chat-b, a on chat-a"
    assert lines == [
        ("linked", link.link_id, home("a"), home("a"), f"test: {accounts}"),
        ("unlinked", link.link_id, home("a"), home("a"), "b on chat-b"),
    ]
