"""The drawer of conversations that callers made."""

from collections.abc import Sequence

from frontdesk.data.conversation import Conversation, ConversationItem
from frontdesk.stores.sql.engine import Engine, Rows
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.tables import key

_ITEMS = (
    "SELECT i.number, i.data FROM items i JOIN conversations c ON c.conversation_id = i.conversation_id "
    "WHERE i.conversation_id = ? AND c.owner = ?"
)


class SqlConversations:
    """Conversations that callers made, and their items."""

    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def get(self, owner: str, conversation_id: str) -> Conversation | None:
        place = (key(conversation_id), key(owner))
        rows = await self._engine.read("SELECT data FROM conversations WHERE conversation_id = ? AND owner = ?", place)
        if not rows:
            return None
        where: Place = ("conversations", ("conversation_id", "owner"), place)
        return await self._records.read("conversations", where, rows[0][0])

    async def items(
        self, owner: str, conversation_id: str, *, after: int = 0, limit: int = 100, descending: bool = False
    ) -> Sequence[ConversationItem]:
        place = (key(conversation_id), key(owner))
        if descending:
            before = f"{_ITEMS} AND (? = 0 OR i.number < ?) ORDER BY i.number DESC LIMIT ?"
            return await self._read(await self._engine.read(before, (*place, after, after, limit)))
        rows = await self._engine.read(f"{_ITEMS} AND i.number > ? ORDER BY i.number LIMIT ?", (*place, after, limit))
        return await self._read(rows)

    async def item(self, owner: str, conversation_id: str, item_id: str) -> ConversationItem | None:
        values = (key(conversation_id), key(owner), key(item_id))
        items = await self._read(await self._engine.read(f"{_ITEMS} AND i.item_id = ? ORDER BY i.number", values))
        return items[0] if items else None

    async def _read(self, rows: Rows) -> list[ConversationItem]:
        places: list[tuple[Place, bytes]] = [(("items", ("number",), (number,)), data) for number, data in rows]
        items: list[ConversationItem | None] = await self._records.read_each("items", places)
        return [item.replace(number=number) for item, (number, _) in zip(items, rows, strict=True) if item is not None]
