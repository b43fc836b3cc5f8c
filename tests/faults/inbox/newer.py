"""Makes this process one of a newer version: its schema has grown, and so has every noun that it writes."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from frontdesk.inbox.intake import EventIntake
from frontdesk.models.delivery import InboxItem
from frontdesk.serialization import codec, json_tree
from frontdesk.stores.sql.migrations import schema
from frontdesk.stores.sql.migrations.steps import Step
from frontdesk.stores.sql.postgres import connections
from frontdesk.stores.sql.sqlite import engine

ERA = {"$": "user:sticker", "value": {"name": "era"}}
WORD = "new"
"""In a message that older versions can't read."""
EXPANDED = (
    "ALTER TABLE sessions ADD COLUMN title TEXT",
    "ALTER TABLE inbox ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'",
    "CREATE TABLE titles (session_id TEXT NOT NULL PRIMARY KEY, title TEXT NOT NULL)",
)


@dataclass(frozen=True)
class Sticker:
    """What only the newer version knows."""

    name: str


def become_newer() -> None:
    """Be the next release."""
    step = Step(EXPANDED, min_reader=schema.VERSION)
    schema.STEPS = (*schema.STEPS, step)
    schema.VERSION = connections.VERSION = engine.VERSION = len(schema.STEPS)
    codec.register_dataclass(Sticker, "sticker")
    for kind in codec.RECORD_TYPES:
        json_tree._writers[kind] = partial(_write, json_tree._writers[kind])
    accept = EventIntake.accept

    async def accept_with_sticker(self: EventIntake, item: InboxItem) -> bool:
        said = item.request.input
        if isinstance(said, str) and WORD in said.split():
            metadata = {**item.request.metadata, "sticker": Sticker(said)}
            item = item.replace(request=item.request.replace(metadata=metadata))
        return await accept(self, item)

    EventIntake.accept = accept_with_sticker


def _write(write: json_tree.Writer, record: Any, depth: int) -> Any:
    # A field of every noun, and in it a tag that is not known either.
    return {"era": ERA, **msgspec.to_builtins(write(record, depth))}
