"""Finishes events that were dealt with, and notes where a command was given."""

from collections.abc import Callable

from frontdesk.abc.allowlist import Allowed
from frontdesk.abc.store import StateTransaction
from frontdesk.access.gate import Gate
from frontdesk.data.delivery import InboxItem
from frontdesk.delivery.presence import Presence


class Finishing:
    """Finishes events without a run: a run notes the place of its caller itself."""

    def __init__(self, gate: Gate, presence: Presence) -> None:
        self._gate = gate
        self._presence = presence

    async def finished(self, item: InboxItem) -> Callable[[StateTransaction], None]:
        """Return what records an event as done, and the place of whoever gave a command with it."""
        owner = await self._command_owner(item)

        def note(transaction: StateTransaction) -> None:
            if owner is not None:
                here = item.request.conversation_id
                self._presence.note_place(transaction, owner, item.caller.identity, here, item.received_at)
            transaction.finish(item)

        return note

    async def _command_owner(self, item: InboxItem) -> str | None:
        """Return the owner of a command; `None` if the event was none, or of a stranger."""
        if item.request.operation != "command" or not self._presence.matters:
            return None
        decision = await self._gate.decide(item.caller, item.channel)
        return decision.isolation_key if isinstance(decision, Allowed) else None
