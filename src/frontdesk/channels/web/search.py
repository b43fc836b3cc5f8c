"""Search in the conversations of one visitor: linear, and by pages that read a bounded number of messages."""

from typing import NamedTuple

import msgspec

from frontdesk.channels.web.client import Mailbox, Spot
from frontdesk.channels.web.head import Head
from frontdesk.channels.web.wire import MAIN, Message
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.aio.large import LARGE, run_sized
from frontdesk.kit.chat.text import one_line

LONGEST_QUERY = 200
MOST_HITS = 20
MOST_READ = 400
"""The number of messages that one page of a search reads."""
_AROUND = 60
_COST = 8
"""The factor by which it takes longer to look at a character than to read or write a byte."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A message in which the words of a search were found."""

    chat: str
    number: int
    at: float
    role: str
    snippet: str


class Found(NamedTuple):
    """A page of a search, and where the next one begins; empty if nothing is left."""

    hits: list[Hit]
    next: str = ""


async def search(mailbox: Mailbox, visitor: str, query: str, after: str) -> Found:
    """Return the messages that have the words of a query, the latest of each conversation first."""
    words = one_line(query[: LONGEST_QUERY + 1]).casefold()
    if not words or len(query) > LONGEST_QUERY:
        raise InvalidRequestError(f"A search has 1 to {LONGEST_QUERY} characters.", param="q")
    head = await mailbox.head(visitor)
    hits: list[Hit] = []
    looked = 0
    for read, (chat, number) in enumerate(_places(head, after)):
        if read >= MOST_READ or len(hits) >= MOST_HITS:
            return Found(hits, f"{chat}:{number}")
        message = await mailbox.message(Spot(visitor, chat, number))
        if message is None or message.state == "removed":
            continue
        # Each time that it has become much, it goes on in the turn of its caller, and others come in between.
        looked += _COST * len(message.text)
        hit = await run_sized(looked, _hit, chat, message, words)
        if looked > LARGE:
            looked = 0
        if hit is not None:
            hits.append(hit)
    return Found(hits)


def _places(head: Head, after: str) -> list[tuple[str, int]]:
    """Return the places of all messages from a place on, in an order that nothing that is said changes."""
    chats = sorted(head.chats, key=lambda chat: (chat.id != MAIN, -chat.born, chat.id))
    first, _, given = after.partition(":")
    if first:
        ids = [chat.id for chat in chats]
        if first not in ids or not (given.isascii() and given.isdigit() and len(given) < 16):
            raise InvalidRequestError("There is no such place to go on from.", param="after")
        chats = chats[ids.index(first) :]
    places: list[tuple[str, int]] = []
    for chat in chats:
        last = min(chat.last, int(given)) if chat.id == first else chat.last
        # One more than a page reads tells where the next one begins.
        room = MOST_READ + 1 - len(places)
        places += [(chat.id, number) for number in range(last, chat.shared, -1)[:room]]
    return places


def _hit(chat: str, message: Message, words: str) -> Hit | None:
    text = one_line(message.text)
    place = text.casefold().find(words)
    if place < 0:
        return None
    start, end = max(0, place - _AROUND), place + len(words) + _AROUND
    snippet = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    return Hit(chat=chat, number=message.number, at=message.at, role=message.role, snippet=snippet)
