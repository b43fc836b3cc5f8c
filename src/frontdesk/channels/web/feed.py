"""The feed of a page: changes behind its cursor, and additions to the answers that are being written."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from frontdesk.channels.web.client import Mailbox, Spot, as_shown, wait_for
from frontdesk.channels.web.head import Chat, Head
from frontdesk.channels.web.wire import StoredMessage
from frontdesk.kit.http.server_stop import ServerStop
from frontdesk.kit.names import digest

_UNKNOWN = -1
_DIGITS = 12


class Frame(msgspec.Struct, frozen=True):
    """One piece of the feed: the events, and the cursor with which a page goes on behind them."""

    cursor: int
    events: list[dict[str, Any]]
    box: str
    """The mailbox in which the cursor counts."""


class _Shown(NamedTuple):
    epoch: int
    length: int
    notes: tuple[Any, Any]


class Feed:
    """The feed of one page; it is read again and again, and returns what is new each time."""

    def __init__(
        self,
        mailbox: Mailbox,
        visitor: str,
        cursor: int,
        now: Callable[[], float],
        *,
        box: str | None = None,
        stop: ServerStop | None = None,
    ) -> None:
        """Read from a cursor on; one that was given out for another `box` counts for nothing here."""
        self._mailbox = mailbox
        self.box = box_of(visitor)
        self._visitor = visitor
        self.cursor = cursor if box in (None, self.box) else _UNKNOWN
        """The number of the last change that was returned."""
        self._live: dict[Spot, _Shown] = {}
        self._now = now
        self.stop = stop or ServerStop()
        """The end of the server, with which the feed ends."""

    async def read(self) -> Frame | None:
        """Return what is new; `None` if nothing is."""
        head = await self._mailbox.head(self._visitor)
        changes = head.since(self.cursor)
        if changes is None:
            self.cursor, self._live = head.change, {}
            return Frame(head.change, [{"type": "reset"}], self.box)
        events = [chat_event(head, change.chat, self._now()) for change in changes if not change.message]
        changed = {Spot(self._visitor, change.chat, change.message) for change in changes if change.message}
        live = [Spot(self._visitor, *place) for place in head.live]
        for place in sorted({*changed, *live}):
            events += await self._message_events(place, changed=place in changed)
        is_new = bool(events) or head.change != self.cursor
        self.cursor = head.change
        return Frame(head.change, events, self.box) if is_new else None

    async def _message_events(self, place: Spot, *, changed: bool) -> list[dict[str, Any]]:
        stored = await self._mailbox.peek(place)
        if stored is None:
            return []
        shown = self._live.get(place)
        if stored.state != "live":
            self._live.pop(place, None)
            return [await self._whole(place, stored)] if changed or shown is not None else []
        notes = (stored.tools, stored.citations)
        self._live[place] = _Shown(stored.epoch, stored.length, notes)
        if shown is None or shown.epoch != stored.epoch or shown.length > stored.length:
            return [await self._whole(place, stored)]
        events: list[dict[str, Any]] = []
        where = {"chat": place.chat, "number": place.number, "epoch": stored.epoch}
        if shown.length < stored.length:
            text = await self._mailbox.text(place, stored, shown.length)
            delta = {"from": shown.length, "text": text, "length": stored.length}
            events.append({"type": "delta", **where, **delta})
        if shown.notes != notes:
            tools, citations = msgspec.to_builtins(notes)
            events.append({"type": "notes", **where, "tools": tools, "citations": citations})
        return events

    async def _whole(self, place: Spot, stored: StoredMessage) -> dict[str, Any]:
        message = as_shown(stored, await self._mailbox.text(place, stored, 0))
        return {"type": "message", "chat": place.chat, "message": msgspec.to_builtins(message)}

    def idle(self) -> Frame:
        """Return the piece that says that there is nothing new."""
        return Frame(self.cursor, [], self.box)

    async def wait(self, look_seconds: float, most_seconds: float) -> Frame | None:
        """Return what is new as soon as something is; `None` if nothing was for a time, or until the server stops.

        What this process writes is seen at once, and what another writes within `look_seconds`.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + most_seconds
        with self._mailbox.listening(self._visitor) as event, self.stop.waking(event):
            while True:
                frame = await self.read()
                if frame is not None or clock() >= deadline or self.stop.has_begun:
                    return frame
                await wait_for(event, min(look_seconds, deadline - clock()))


def box_of(visitor: str) -> str:
    """Return the name of a visitor's mailbox, by which a page sees that it shows another one."""
    return digest(f"box {visitor}")[:_DIGITS]


def chat_event(head: Head, chat_id: str, now: float) -> dict[str, Any]:
    """Return a conversation as it is now, or that it is gone."""
    chat = head.chat(chat_id)
    return {"type": "gone", "id": chat_id} if chat is None else {"type": "chat", "chat": shown_chat(chat, now)}


def shown_chat(chat: Chat, now: float) -> dict[str, Any]:
    """Return a conversation as a page gets it; `busy` is for how many seconds something is being answered."""
    shown: dict[str, Any] = {"id": chat.id, "title": chat.title, "at": chat.at, "last": chat.last}
    shown["busy"] = round(max(0.0, chat.busy_until - now), 3)
    if chat.base:
        shown |= {"base": chat.base, "shared": chat.shared, "born": chat.born}
    return {**shown, "archived": True} if chat.archived else shown
