"""The people, conversations and messages of the fake."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

TEAMS = "msteams"


def object_id(person_id: str) -> str:
    """Return the object id of a person in Entra."""
    digits = sha256(person_id.encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:32]))


@dataclass(slots=True)
class Person:
    """A person on one of the platforms."""

    id: str
    name: str
    channel: str
    tenant: str
    aad_object_id: str
    chat: "Conversation"
    """The direct chat with the bot."""

    def account(self) -> dict[str, Any]:
        account = {"id": self.id, "name": self.name}
        return {**account, "aadObjectId": self.aad_object_id} if self.aad_object_id else account


@dataclass(slots=True)
class Message:
    """A message of the bot, as people see it now."""

    id: str
    activity: Mapping[str, Any]
    conversation: str
    """The id of its conversation, with the thread."""
    deleted: bool = False
    versions: int = 1
    is_stream: bool = False
    """Whether it is still being written."""

    @property
    def attachments(self) -> list[dict[str, Any]]:
        return list(self.activity.get("attachments", ()))

    @property
    def cards(self) -> list[dict[str, Any]]:
        """Return the contents of its cards."""
        return [each["content"] for each in self.attachments if ".card." in each["contentType"]]

    @property
    def text(self) -> str:
        """Return its text, or the texts of its cards."""
        texts = [str(self.activity.get("text") or "")]
        for card in self.cards:
            texts += [block["text"] for block in card.get("body", ()) if block["type"] == "TextBlock"]
            texts += [card["text"]] if "text" in card else []
        return "\n".join(filter(None, texts))

    @property
    def actions(self) -> list[dict[str, Any]]:
        """Return the buttons of its cards."""
        return [action for card in self.cards for action in (*card.get("actions", ()), *card.get("buttons", ()))]


@dataclass(slots=True)
class Stream:
    """A message that is being written."""

    id: str
    began_at: float
    sequence: int
    state: str = "open"
    """`open`, `canceled` by the person, `timeout`, or `final`."""
    texts: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Conversation:
    """A chat, a group or a channel of a team."""

    id: str
    kind: str
    """`personal`, `groupChat` or `channel`; empty on platforms without kinds."""
    channel: str
    tenant: str
    is_group: bool
    members: set[str] = field(default_factory=set[str])
    installed: bool = True
    """Whether the bot is a member."""
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    heard: set[str] = field(default_factory=set[str])
    """The ids of the activities of people."""
    streams: dict[str, Stream] = field(default_factory=dict[str, Stream])
    sent_at: list[float] = field(default_factory=list[float])

    def account(self, thread: str = "") -> dict[str, Any]:
        account: dict[str, Any] = {"id": f"{self.id};messageid={thread}" if thread else self.id}
        if self.kind:
            account["conversationType"] = self.kind
        if self.channel == TEAMS:
            account["tenantId"] = self.tenant
        return {**account, "isGroup": True} if self.is_group else account

    def shown(self) -> list[Message]:
        """Return the messages of the bot that people see."""
        return [message for message in self.messages.values() if not message.deleted]
