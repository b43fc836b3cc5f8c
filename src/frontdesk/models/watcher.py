"""Watchers: URLs that receive a notification when a run of a chain ends or requests input."""

from collections.abc import Mapping
from typing import Any

from frontdesk.models.base import FrozenStruct, StoredRecord
from frontdesk.models.channel_storage import SealedToken
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.run import ChainStatus

TOO_MANY_WATCHERS = "Too many watchers. Remove one of this run or of another run first."


class RunWatcher(FrozenStruct, frozen=True, kw_only=True):
    """A URL that receives a POST when a run of a chain ends or requests input."""

    url: str
    headers: Mapping[str, str] = {}
    """Headers of each request, such as `Authorization`. They are stored encrypted and never returned."""
    metadata: Mapping[str, Any] = {}
    """Data of the channel, returned by `watchers`. At most 4 KB as JSON, and not encrypted."""
    watcher_id: str = ""
    """Set by the host."""

    def __repr__(self) -> str:
        return f"RunWatcher(watcher_id={self.watcher_id!r})"


class WatcherRecord(StoredRecord, frozen=True, kw_only=True):
    """The stored form of a watcher."""

    watcher_id: str
    owner: str
    chain_id: str
    channel: str
    """The channel on which it was added."""
    identity: ChannelIdentity
    """The caller who added it."""
    url: str
    headers: SealedToken | None = None
    metadata: Mapping[str, Any] = {}
    seen: str = ""
    """The newest run of the chain if it had ended when the watcher was added. It causes no notification."""
    created_at: float
    expires_at: float

    def __repr__(self) -> str:
        return f"WatcherRecord(watcher_id={self.watcher_id!r})"


class RunNotice(FrozenStruct, frozen=True, kw_only=True):
    """An event of a chain that a watcher receives."""

    watcher: RunWatcher
    run_id: str
    chain_id: str
    status: ChainStatus
    """The final status of the run, or `input_required`."""
