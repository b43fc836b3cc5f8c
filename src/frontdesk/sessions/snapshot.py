"""The state of a session beside its messages: taken after a turn, restored before the next, and limited in size.

A small state is encoded and decoded on the event loop, a large one in a thread, because it would block the loop.
"""

from collections.abc import Mapping
from typing import Any

from agent_framework import AgentSession

from frontdesk.data.codec import prepare
from frontdesk.data.json_tree import Prepared
from frontdesk.data.session import SessionRecord
from frontdesk.errors import CodecError, SessionTooLargeError
from frontdesk.kit.aio.large import is_heavy, off_loop, weight_of
from frontdesk.loggers import runs as log

MAX_BYTES = 4 * 1024 * 1024
"""The default limit for the size of a state."""

NOTHING: Mapping[str, Any] = {}
"""The state of a session that remembers nothing beside its messages."""


class Snapshots:
    """Takes the states of sessions, up to a size."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes

    async def take(self, live: AgentSession) -> Mapping[str, Any]:
        """Write down the state of a session; one that is too large is a `SessionTooLargeError`."""
        if not is_heavy(live.state, inside=True):
            return self._taken(live)
        return await off_loop(self._taken, live)

    def _taken(self, live: AgentSession) -> Mapping[str, Any]:
        # Estimated first, so that no time is spent on a state that is far too large.
        if weight_of(live.state, self._max_bytes) > self._max_bytes:
            raise SessionTooLargeError
        # Encoded here, so that the store in memory accepts nothing that another would refuse.
        state = prepare(live.to_dict)
        if state.size > self._max_bytes:
            raise SessionTooLargeError
        return state

    async def after(self, live: AgentSession, before: SessionRecord, *, completed: bool) -> Mapping[str, Any]:
        """Return the state after a turn; if it can't be stored and the turn has not completed, the one before."""
        try:
            return await self.take(live)
        except (CodecError, SessionTooLargeError) as error:
            if completed:
                log.error("the state of session %s can't be stored: %s", before.session_id, error)
                raise
            return await rewritten(before.state)


async def rewritten(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a state that was stored before, ready to be stored again."""
    if not is_heavy(state):
        return state
    return await off_loop(prepare, lambda: state)


def is_blank(live: AgentSession) -> bool:
    """Tell whether a session remembers nothing beside its messages."""
    return not live.state and live.service_session_id is None


def restore(record: SessionRecord) -> AgentSession:
    """Return the framework's session, as the last turn left it."""
    if not record.state:
        return AgentSession(session_id=record.session_id)
    # The framework's session id is ours: a branch takes over its parent's state, not its name.
    return AgentSession.from_dict({**record.state, "session_id": record.session_id})


def release(*written: object) -> None:
    """Free the encoded form of values that have been stored."""
    for value in written:
        if type(value) is Prepared:
            value.release()
