"""Reads what was said in a session, for its owner: a part at a time, from its end."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_framework import Message

from frontdesk.abc.store import HostStateStore
from frontdesk.data.session import SessionName
from frontdesk.data.transcript import TranscriptMessage, TranscriptPage
from frontdesk.ids import time_of

MOST_TURNS = 100
"""The number of turns that one part of a transcript can have."""


class Transcripts:
    """The transcripts of all sessions."""

    def __init__(self, store: HostStateStore) -> None:
        self._store = store

    async def page(self, name: SessionName, *, before: int | None, limit: int) -> TranscriptPage:
        """Return a part of the session that a name stands for; an empty one if it stands for none."""
        record = await self._store.sessions.find(name)
        if record is None or record.owner != name.owner:
            return TranscriptPage()
        turns = max(1, min(limit, MOST_TURNS))
        page = await self._store.sessions.history_page(name.owner, record.session_id, before=before, limit=turns)
        return TranscriptPage(messages=tuple(as_transcript(page.messages)), before=page.before)


def as_transcript(messages: Sequence[Message]) -> list[TranscriptMessage]:
    """Return messages with their channels and times; an answer has the time of the question before it."""
    noted: list[TranscriptMessage] = []
    at: float | None = None
    echoes = 0
    for message in messages:
        hosting = _hosting(message)
        if message.role == "user":
            at = time_of(message.message_id or "", "msg") or at
            echoes = len(noted) + 1 if _mapping(hosting.get("response_target")).get("echo_input") else 0
        channel = hosting.get("channel") or hosting.get("originating_channel")
        targets = _targets(hosting)
        if targets and echoes:
            # What was asked is shown there too, before the answer.
            asked = noted[echoes - 1]
            noted[echoes - 1] = asked.replace(shown_on=asked.shown_on | targets)
        own = {channel} if channel and hosting.get("includes_originating", True) else set[str]()
        noted.append(TranscriptMessage(message=message, channel=channel, at=at, shown_on=frozenset(own | targets)))
    return noted


def _hosting(message: Message) -> Mapping[str, Any]:
    return _mapping(message.additional_properties.get("hosting"))


def _targets(hosting: Mapping[str, Any]) -> frozenset[str]:
    """Return the channels to which an answer was sent besides the one on which was asked."""
    targets: Any = hosting.get("intended_targets") or ()
    return frozenset(str(_mapping(target).get("channel")) for target in targets)


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
