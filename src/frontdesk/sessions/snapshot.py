"""Session state without messages: saved after a turn, restored before the next, and limited in size.

A small state is encoded and decoded on the event loop. A large one is processed in a thread, because it would block the
loop.
"""

from collections.abc import Mapping
from typing import Any

from agent_framework import AgentSession, InMemoryHistoryProvider

from frontdesk.concurrency.offload import MIN_LARGE_BYTES, compute_weight, is_heavy, off_loop
from frontdesk.errors import CodecError, SessionTooLargeError
from frontdesk.loggers import runs as log
from frontdesk.models.session import SessionRecord
from frontdesk.serialization.codec import prepare
from frontdesk.serialization.json_tree import Prepared

MAX_BYTES = 4 * 1024 * 1024
"""The default limit for the size of a state."""

_UNUSED: Mapping[str, Any] = {InMemoryHistoryProvider.DEFAULT_SOURCE_ID: {}}
"""The state after a turn of an agent whose history the host keeps: the framework makes a place for each provider."""
NOTHING: Mapping[str, Any] = {}
"""The state of a session that remembers nothing beside its messages."""


class Snapshots:
    """Serializes session states, up to a maximum size."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes

    async def take(self, live: AgentSession) -> Mapping[str, Any]:
        """Serialize the state of a session. Raise `SessionTooLargeError` if it is too large."""
        if not is_heavy(live.state, inside=True):
            return self._serialize(live, is_light=self._max_bytes >= MIN_LARGE_BYTES)
        return await off_loop(self._serialize, live)

    def _serialize(self, live: AgentSession, *, is_light: bool = False) -> Mapping[str, Any]:
        """Serialize a state. With `is_light` it was measured before and is below the limit."""
        # Estimated first, so that no time is spent on a state that is far too large.
        if not is_light and compute_weight(live.state, self._max_bytes) > self._max_bytes:
            raise SessionTooLargeError
        # Encoded here, so that the store in memory accepts nothing that another would refuse.
        state = prepare(live.to_dict)
        if state.size > self._max_bytes:
            raise SessionTooLargeError
        return state

    async def after(self, live: AgentSession, before: SessionRecord, *, completed: bool) -> Mapping[str, Any]:
        """Return the state after a turn, or the previous one if it cannot be stored and the turn is incomplete."""
        try:
            return await self.take(live)
        except (CodecError, SessionTooLargeError) as error:
            if completed:
                log.error("session state cannot be stored: session_id=%s: %s", before.session_id, error)
                raise
            return await rewrite(before.state)


async def rewrite(state: Mapping[str, Any]) -> Mapping[str, Any]:
    if not is_heavy(state):
        return state
    return await off_loop(prepare, lambda: state)


def is_blank(live: AgentSession) -> bool:
    """Return True if a session has no state besides its messages."""
    return (not live.state or live.state == _UNUSED) and live.service_session_id is None


def restore(record: SessionRecord) -> AgentSession:
    """Return the framework's session in its state after the last turn."""
    if not record.state:
        return AgentSession(session_id=record.session_id)
    # The framework's session id is ours: a branch takes over its parent's state, not its name.
    return AgentSession.from_dict({**record.state, "session_id": record.session_id})


def release(*written: object) -> None:
    """Free the encoded form of values that have been stored."""
    for value in written:
        if type(value) is Prepared:
            value.release()
