"""Shares the places at which events are answered: one sender never has more than a part of them.

The places are this process's own, and so is the count: on each replica a sender has the same part.
"""

from collections import Counter, OrderedDict

from frontdesk.data.delivery import EventKind, InboxItem

Conversation = tuple[str, str]
"""The channel and the id of a conversation."""
Sender = tuple[EventKind, tuple[str, str]]


class SenderPlaces:
    """Counts the events of each sender that are being answered, and remembers the conversations that wait for one."""

    def __init__(self, most: dict[EventKind, int]) -> None:
        """Let a sender have `most` events of a kind answered at once."""
        self._most = most
        self._taken: Counter[Sender] = Counter()
        self._waiting: dict[Sender, OrderedDict[Conversation, None]] = {}
        self._senders: dict[tuple[EventKind, Conversation], Sender] = {}

    def waits(self, kind: EventKind, conversation: Conversation) -> bool:
        """Tell whether a conversation waits for a place of the sender of its first event."""
        return (kind, conversation) in self._senders

    def enter(self, item: InboxItem) -> bool:
        """Take a place for an event; if its sender has no more, let its conversation wait for one."""
        sender, conversation = _sender(item), (item.channel, item.conversation_id)
        if self._taken[sender] < self._most[item.kind]:
            self._taken[sender] += 1
            return True
        self._waiting.setdefault(sender, OrderedDict())[conversation] = None
        self._senders[item.kind, conversation] = sender
        return False

    def leave(self, item: InboxItem) -> Conversation | None:
        """Free the place of an event; return the conversation that has waited longest for it."""
        sender = _sender(item)
        self._taken[sender] -= 1
        if not self._taken[sender]:
            del self._taken[sender]
        waiting = self._waiting.get(sender)
        if waiting is None:
            return None
        conversation, _ = waiting.popitem(last=False)
        self._end(item.kind, conversation, sender)
        return conversation

    def forget(self, kind: EventKind, conversation: Conversation) -> None:
        """Let a conversation wait no longer."""
        sender = self._senders.get((kind, conversation))
        if sender is not None:
            del self._waiting[sender][conversation]
            self._end(kind, conversation, sender)

    def _end(self, kind: EventKind, conversation: Conversation, sender: Sender) -> None:
        del self._senders[kind, conversation]
        if not self._waiting[sender]:
            del self._waiting[sender]


def _sender(item: InboxItem) -> Sender:
    return item.kind, item.caller.identity.key
