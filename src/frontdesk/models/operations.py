"""Scheduled tasks, operators' rows, expiry, rate limits and event limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from frontdesk.models.base import FrozenStruct, StoredRecord
from frontdesk.models.settings import count_finding, seconds_finding

TaskStatus = Literal["pending", "running", "succeeded", "failed", "cancelled"]


class TaskRecord(StoredRecord, frozen=True, kw_only=True):
    """A task with its status and the process that executes it."""

    task_id: str
    name: str
    payload: Mapping[str, Any]
    due_at: float
    status: TaskStatus = "pending"
    attempts: int = 0
    """The number of tries, the present one included; one that its process did not survive counts too."""
    holder: str = ""
    """The process that works on it; empty while it waits."""
    fence: int = 0
    """The number of all claims; only the last claim may write."""
    error: str | None = None
    """The error of the last try."""


LedgerKind = Literal["sessions", "runs", "deliveries", "approvals", "people", "links", "inbox", "audit"]
OPEN = 9e99
"""The time of the end of a run that has not ended, for its place in the list."""
PLACES: Mapping[LedgerKind, tuple[type, ...]] = {
    "sessions": (float, str),
    "runs": (float, str, str),
    "deliveries": (int, str, int, str),
    "approvals": (int,),
    "people": (str, str),
    "links": (str, str),
    "inbox": (int,),
    "audit": (int,),
}
"""The types of the values that are the place of a row in the list of its kind."""
ASCENDING: frozenset[LedgerKind] = frozenset({"people", "links"})
"""The kinds that are listed by name; the others are listed with the newest first."""
INDEXED: Mapping[LedgerKind, tuple[tuple[str, ...], ...]] = {
    "sessions": (("id",), ("person",)),
    "runs": (("id",), ("person",), ("status",)),
    "deliveries": (("id",), ("run",), ("person",), ("status",), ("channel",)),
    "approvals": (("id",), ("person",), ("status",)),
    "people": (("channel", "id"), ("person",), ("channel",)),
    "links": (("channel", "id"), ("person",), ("channel",)),
    "inbox": (("id",), ("status",), ("channel",)),
    "audit": (("id",), ("subject",), ("person",), ("by",)),
}
"""The filters by which a store finds rows directly, those that leave the fewest rows first."""
COMMON: Mapping[LedgerKind, str] = {"runs": "completed", "inbox": "done"}
"""The status that most rows of a kind have, and that no index is worth."""


class LedgerRow(FrozenStruct, frozen=True, kw_only=True):
    """A row in its stored form."""

    place: tuple[Any, ...]
    """Its place in the list of its kind."""
    columns: Mapping[str, Any]
    """The columns that are stored beside the record."""
    record: Mapping[str, Any] | None = None
    """The record as a JSON tree; `None` if there is none, or if this version can't read it."""


_HOUR = 3600.0
_DAY = 24 * _HOUR
YEAR = 365 * _DAY
"""The default lifetime of a conversation after its last turn."""
_NOTES_PER_LIFETIME = 4
"""The least number of times that a person's presence is recorded within the lifetime of an identity."""


class Expiry(FrozenStruct, frozen=True, kw_only=True):
    """Seconds after which a record of each kind may be dropped. `None` keeps it forever."""

    continuations: float | None = _DAY
    """Background runs and their events, after their end."""
    runs: float | None = 30 * _DAY
    """All other runs, after their end. Their messages stay in their sessions."""
    grants: float | None = _HOUR / 4
    """Proofs of identity that were begun and not completed; a proof may have a shorter time of its own."""
    last_seen: float | None = 30 * _DAY
    approvals: float | None = 30 * _DAY
    """Questions that were answered."""
    audit: float | None = YEAR
    """Lines of the audit log."""
    pending_approvals: float | None = YEAR
    """Questions without an answer, after the last turn of their session, which is kept as long."""
    inbox: float | None = 7 * _DAY
    """Finished events, kept so that a platform's retry is not run again."""
    deliveries: float | None = 30 * _DAY
    """Deliveries that have ended."""
    tasks: float | None = _DAY
    """Tasks that have ended."""
    sessions: float | None = YEAR
    """Sessions with their history, approvals and checkpoints, after the last turn."""
    conversations: float | None = YEAR
    """Conversations that callers made, with their items, after the last change."""
    identities: float | None = YEAR
    """Identities of people who were not seen since, whose links never changed, and who have no other records."""
    files: float | None = _DAY
    """Files that no record uses any more, after they were last used."""
    set_aside: float | None = YEAR
    """Records that could not be read, after they were set aside."""

    @property
    def seen_every(self) -> float | None:
        """Return the interval in seconds for recording presence, or `None` if identities do not expire."""
        return None if self.identities is None else min(_DAY, self.identities / _NOTES_PER_LIFETIME)

    @property
    def identities_kept(self) -> float | None:
        """Return the seconds from recorded presence to expiry of an identity, or `None` for no expiry.

        There is no index of a person's runs, so identities are kept for as long as any run of theirs can exist. The
        recorded presence may lag behind the real one, by the recording interval plus the time for which a process
        caches it.
        """
        every, others = self.seen_every, (self.identities, self.runs, self.continuations)
        if every is None or None in others:
            return None
        return max(lifetime for lifetime in others if lifetime is not None) + 2 * every


@dataclass(frozen=True)
class RateLimit:
    """A number of requests per number of seconds. `burst` may arrive at once, by default all of them."""

    requests: int
    per_seconds: float = 60.0
    burst: int | None = None

    def findings(self) -> list[str]:
        wrong = [count_finding("requests", self.requests), seconds_finding("per_seconds", self.per_seconds)]
        if self.burst is not None:
            wrong.append(count_finding("burst", self.burst))
        return [finding for finding in wrong if finding is not None]


def rate_findings(name: str, rate: Any) -> list[str]:
    if rate is None:
        return []
    if not isinstance(rate, RateLimit):
        return [f"{name} must be a RateLimit or None, got {type(rate).__name__}"]
    return [f"{name}: {finding}" for finding in rate.findings()]


@dataclass(frozen=True, kw_only=True)
class EventLimits:
    """Limits for incoming messages of a chat channel. `None` means no limit."""

    per_caller: RateLimit | None = RateLimit(120, per_seconds=60.0)
    """The rate of one person's messages, and apart from them of their control events; counted by each process."""
    max_waiting_per_caller: int | None = 50
    """The number of one person's messages that may wait on the channel, those that are being answered included."""
    max_waiting_for_unlinked: int | None = 1_000
    """The number of messages that may wait on the channel before those of unlinked visitors are rejected. It bounds all
    of them together, where identities are free. See `Channel.identifies_anonymous_callers`."""
    max_text_bytes_per_hour_for_unlinked: int | None = 16 * 1024 * 1024
    """The bytes of text that all unlinked visitors of the channel together may send in an hour, for each process.
    It bounds the disk that their messages take until they expire. `FileLimits` bounds their files."""
    max_callers: int = 10_000
    """The number of people whose rates are counted separately. When there are more at once, the others share one."""

    def findings(self) -> list[str]:
        wrong = rate_findings("per_caller", self.per_caller)
        for name in (
            "max_waiting_per_caller",
            "max_waiting_for_unlinked",
            "max_text_bytes_per_hour_for_unlinked",
            "max_callers",
        ):
            value = getattr(self, name)
            if value is not None and (finding := count_finding(name, value)):
                wrong.append(finding)
        return wrong


DEFAULT_EVENT_LIMITS = EventLimits()
"""The limits of a channel that sets none."""
