"""Updates as the Bot API sends them."""

import json
from typing import Any

from frontdesk.channels.telegram.parse import read_update
from frontdesk.chat.messages import BotIdentity, InboundMessage

BOT = BotIdentity(id="7", name="desk_bot")
ANN = {"id": 1, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "ann", "language_code": "de"}
OURS = {"id": 7, "is_bot": True, "first_name": "Desk", "username": "desk_bot"}
PRIVATE = {"id": 1, "type": "private", "first_name": "Ann"}
GROUP = {"id": -100, "type": "supergroup", "title": "Team"}
FORUM = {**GROUP, "is_forum": True}


def message(text: Any = "", chat: Any = PRIVATE, **fields: Any) -> dict[str, Any]:
    """Return a message; commands and mentions have their entities, as the server adds them."""
    base = {"message_id": 10, "date": 1_700_000_000, "from": ANN, "chat": chat}
    return {**base, **({"text": text, "entities": entities(text)} if text else {}), **fields}


def entities(text: str) -> list[dict[str, Any]]:
    """Return the entities of the words that are commands or mentions."""
    made: list[dict[str, Any]] = []
    place = 0
    for word in text.split(" "):
        kind = {"/": "bot_command", "@": "mention"}.get(word[:1])
        units = len(word.encode("utf-16-le")) // 2
        if kind is not None and units > 1:
            made.append({"type": kind, "offset": place, "length": units})
        place += units + 1
    return made


def update(kind: Any = "message", **fields: Any) -> bytes:
    """Return an update."""
    return json.dumps({"update_id": 42, kind: fields.pop("content", None) or message(**fields)}).encode()


def read(kind: Any = "message", **fields: Any) -> InboundMessage | None:
    """Read an update of a message."""
    inbound = read_update(update(kind, **fields), BOT)
    assert inbound is None or isinstance(inbound, InboundMessage)
    return inbound


def read_message(kind: Any = "message", **fields: Any) -> InboundMessage:
    """Read an update of a message that says something."""
    inbound = read(kind, **fields)
    assert inbound is not None
    return inbound
