"""The updates that wait for a bot, and the polls for them."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice, takewhile

from frontdesk_testing.telegram.clock import MovableClock
from frontdesk_testing.telegram.errors import conflict
from frontdesk_testing.telegram.records import Json

LIFETIME_SECONDS = 24 * 3600.0
CLICK_LIFETIME_SECONDS = 150.0
QUIET_WEEK_SECONDS = 7 * 24 * 3600.0
CONFLICT_HOLD_SECONDS = 3.0
"""The time for which the server keeps back the answer to a poll that another one has ended."""
ON_REQUEST = {"chat_member", "message_reaction", "message_reaction_count"}
"""The kinds of updates that a bot gets only if it names them."""
_OTHER_POLL = "terminated by other getUpdates request; make sure that only one bot instance is running"
_WEBHOOK_SET = "terminated by setWebhook request"


@dataclass(slots=True, eq=False)
class Pending:
    """An update that was not confirmed."""

    update_id: int
    kind: str
    body: Json
    at: float
    lane: str
    """The key of its order: a chat, or the person who pressed a button."""

    def as_json(self) -> Json:
        """Return the object `Update`."""
        return {"update_id": self.update_id, self.kind: self.body}


@dataclass(slots=True, eq=False)
class _Poll:
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    ended: str = ""
    """Why it was ended by another call."""
    ended_at: float = 0.0


class UpdateQueue:
    """The updates of one bot, in their order."""

    def __init__(self, clock: MovableClock, first_id: int) -> None:
        self._clock = clock
        self._last_id = first_id - 1
        self._last_at = clock.now()
        self._pending: dict[int, Pending] = {}
        self._lanes: dict[str, deque[Pending]] = {}
        self._fresh_lanes: set[str] = set()
        self._poll: _Poll | None = None
        self._closed = False
        self.allowed: tuple[str, ...] = ()
        """The kinds that the bot has named; without any, all but those on request."""
        self.arrived = asyncio.Event()

    @property
    def is_polled(self) -> bool:
        """Return True if a poll waits."""
        return self._poll is not None

    def wants(self, kind: str) -> bool:
        """Return True if the bot gets updates of a kind."""
        return kind in self.allowed if self.allowed else kind not in ON_REQUEST

    def allow(self, kinds: Iterable[str]) -> None:
        """Set the kinds of updates that are wanted."""
        self.allowed = tuple(kinds)

    def add(self, kind: str, body: Json, lane: str) -> Pending | None:
        """Add an update, if the bot gets those of its kind."""
        if not self.wants(kind):
            return None
        now = self._clock.now()
        if now - self._last_at >= QUIET_WEEK_SECONDS:
            digest = hashlib.blake2b(str(self._last_id).encode(), digest_size=4).digest()
            self._last_id = int.from_bytes(digest) % 900_000_000 + 1
        self._last_id, self._last_at = self._last_id + 1, now
        pending = self._pending[self._last_id] = Pending(self._last_id, kind, body, now, lane)
        self._lanes.setdefault(lane, deque()).append(pending)
        self._fresh_lanes.add(lane)
        self._wake()
        return pending

    def _wake(self) -> None:
        self.arrived.set()
        self.arrived = asyncio.Event()
        if self._poll is not None:
            self._poll.wake.set()

    def _is_expired(self, update: Pending) -> bool:
        lifetime = CLICK_LIFETIME_SECONDS if update.kind == "callback_query" else LIFETIME_SECONDS
        return self._clock.now() - update.at >= lifetime

    def list_pending(self) -> list[Pending]:
        """Return the updates that were not confirmed, and are not too old."""
        return [update for update in self._pending.values() if not self._is_expired(update)]

    def first(self, lane: str) -> Pending | None:
        """Return the update of a lane that is to be sent next."""
        waiting = self._lanes.get(lane)
        while waiting and (waiting[0].update_id not in self._pending or self._is_expired(waiting[0])):
            self._pending.pop(waiting.popleft().update_id, None)
        if not waiting:
            self._lanes.pop(lane, None)
            return None
        return waiting[0]

    def fresh_lanes(self, *, every: bool = False) -> set[str]:
        """Return the lanes with a new update since the last call, or all lanes with updates."""
        fresh, self._fresh_lanes = set(self._lanes) if every else self._fresh_lanes, set()
        return fresh

    def remove(self, update: Pending) -> None:
        """Remove an update that was delivered."""
        self._pending.pop(update.update_id, None)
        self.first(update.lane)

    def clear(self) -> None:
        """Remove all updates."""
        self._pending.clear()
        self._lanes.clear()

    def end_poll(self, reason: str = _WEBHOOK_SET) -> None:
        """End the poll that waits."""
        if self._poll is not None:
            self._poll.ended, self._poll.ended_at = reason, self._clock.now()
            self._poll.wake.set()

    def close(self) -> None:
        """End the waiting poll without updates."""
        self._closed = True
        self._wake()

    def _confirm(self, offset: int) -> None:
        """Remove the updates below an offset. A negative offset counts from the end."""
        confirmed = takewhile(lambda update: update.update_id < offset, self._pending.values())
        for update in list(confirmed) if offset >= 0 else self.list_pending()[:offset]:
            self.remove(update)

    async def poll(self, offset: int, limit: int, seconds: float) -> list[Json]:
        """Confirm the updates below the offset. Return the next ones, or none after the timeout."""
        self.end_poll(_OTHER_POLL)
        self._confirm(offset)
        until = self._clock.now() + seconds
        poll = self._poll = _Poll()
        try:
            while not (updates := self._next(limit)) and not poll.ended and not self._closed:
                poll.wake.clear()
                if not await self._clock.wait(poll.wake, until - self._clock.now()):
                    break
            if poll.ended:
                await self._clock.sleep(poll.ended_at + CONFLICT_HOLD_SECONDS - self._clock.now())
                raise conflict(poll.ended)
            return [update.as_json() for update in updates]
        finally:
            if self._poll is poll:
                self._poll = None

    def _next(self, limit: int) -> list[Pending]:
        waiting = (update for update in self._pending.values() if not self._is_expired(update))
        return list(islice(waiting, limit))
