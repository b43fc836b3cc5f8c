"""Every table is covered: it expires, it goes with another, or there is a reason to keep it."""

import re
from pathlib import Path

from frontdesk.stores.sql.migrations.schema import VERSION
from frontdesk.stores.sql.move.endpoints import LEASES, read_shapes
from frontdesk.stores.sql.sweeper import batches, conversations, files, identities, sessions
from frontdesk_testing.store_samples import NOW
from tests.stores.sql.moving import Place, fill
from tests.stores.sql.test_sweeper import KINDS, NEVER

FOR_GOOD = {
    "links": "a person has made it, and ends it",
    "link_claims": "they end with their link",
    "leaderships": "a row for each name by which a channel leads; its fence must only grow",
    "conversation_aliases": "a session is found by its first name for as long as it is there",
    "alias_versions": "a row for each channel on which conversations have moved",
    "backfills": "a row for each, which says that it need not be done again",
    "secrets": "the host's own; what it has sealed could not be opened any more",
}
WITH_OTHERS = {
    "sessions": {"history", "names", "leases", "checkpoints", "approvals", "session_titles"},
    "runs": {"events", "background"},
    "conversations": {"items"},
    "files": {"file_chunks", "file_uses"},
}


def test_every_table_expires_or_says_why_not() -> None:
    """A new table has an expiry, goes with another, or is kept for good for a reason."""
    soon = NEVER.replace(**dict.fromkeys([*KINDS, "grants"], 0.0))
    statements = [one.sql for batch in batches(soon, NOW) for one in (*batch.parts, *batch.whole)]
    soon = soon.replace(identities=0.0)
    others = (
        sessions(["a"], soon, NOW),
        conversations(["a"], soon, NOW),
        files(["a"], soon, NOW),
        identities([("a", "b")], soon, NOW),
    )
    for batch in others:
        statements += [one.sql for one in (*batch.parts, *batch.whole)]
    dropped = {match for sql in statements for match in re.findall(r"DELETE\s+FROM (\w+)", sql)}
    # A background run is removed by the transaction that records its end.
    dropped |= {"background"}
    tables = {shape.name for shape in read_shapes(VERSION)}
    assert dropped | FOR_GOOD.keys() == tables
    assert not dropped & FOR_GOOD.keys()
    assert all(parts <= dropped for parts in WITH_OTHERS.values())


async def test_every_table_is_moved(tmp_path: Path) -> None:
    """A new table has a sample in what is moved, so that the tests of a move see it arrive."""
    place = Place(str(tmp_path / "frontdesk.db"))
    await fill(place)
    # Of a store at rest nobody writes anything, so that leases are left behind.
    assert {table for table, count in place.numbers().items() if not count} == {LEASES}
