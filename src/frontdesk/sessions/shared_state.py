"""State that a client and the tools of a run share: stored with the session, and streamed as it changes."""

import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, cast

import msgspec
from agent_framework import AgentResponseUpdate

from frontdesk.concurrency.current import current_turn
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.state_updates import Operation, apply_patch, diff, state_update
from frontdesk.models.session import SessionRecord

MAX_STATE_BYTES = 262_144
MAX_STATE_DEPTH = 64


class SharedState:
    """The JSON value that the client of a run and its tools share.

    Tools get it by `SharedState.current()`, context providers as `shared_state`. It begins as the client has sent it,
    or as the session has stored it. Every change is stored with the session when the run ends. Streams contain a
    snapshot first and then changes as JSON Patch (RFC 6902).
    """

    def __init__(self, value: Any = None) -> None:
        self._text = _encode(value)
        self._sent: bytes | None = None if value is not None else self._text
        self._lock = threading.Lock()

    @classmethod
    def from_stored(cls, text: str) -> "SharedState":
        """Return a state from its stored form."""
        return cls(msgspec.json.decode(text))

    @classmethod
    def current(cls) -> "SharedState":
        """Return the state of the current run. Raise `RuntimeError` outside of a run."""
        turn = current_turn.get()
        if turn is None:
            raise RuntimeError("SharedState.current() was called outside of a run.")
        return cast("SharedState", turn.shared_state)

    @property
    def value(self) -> Any:
        """Return a copy of the present value. None if nothing has set it."""
        return msgspec.json.decode(self._text)

    @property
    def text(self) -> str:
        """The present value as JSON."""
        return self._text.decode()

    @property
    def is_set(self) -> bool:
        return self._text != b"null"

    def replace(self, value: Any) -> None:
        """Set the whole value. Raise `ValueError` if it is too large or has no JSON form."""
        text = _encode(value)
        with self._lock:
            self._text = text

    def patch(self, operations: Sequence[Operation]) -> None:
        """Apply operations of JSON Patch (RFC 6902), all or none. Raise `ValueError` if one of them fails."""
        with self._lock:
            self._text = _encode(apply_patch(self.value, operations))

    @contextmanager
    def edit(self) -> Generator[Any]:
        """Yield a copy to modify, a dict if nothing is set. Apply the modifications when the block succeeds.

        Concurrent changes of other tools are kept. `ValueError` is raised if the changes contradict each other.
        """
        before = self._text
        base: Any = msgspec.json.decode(before)
        draft: Any = {} if base is None else msgspec.json.decode(before)
        yield draft
        after = _encode(draft)
        with self._lock:
            if self._text is before or base is None:
                self._text = after
            else:
                self._text = _encode(apply_patch(self.value, diff(base, msgspec.json.decode(after))))

    def take_update(self) -> AgentResponseUpdate | None:
        """Return the changes since the last call as an update of the stream, or None."""
        text = self._text
        if text is self._sent:
            return None
        before, self._sent = self._sent, text
        if before == text:
            return None
        return state_update(None if before == b"null" else before, text)


def begin_state(given: Any, record: SessionRecord | None) -> SharedState | None:
    """Return the state of a request, or of its session. Reject one that is too large or has no JSON form."""
    if given is None:
        stored = None if record is None else record.shared_state
        return None if stored is None else SharedState.from_stored(stored)
    try:
        return SharedState(given)
    except ValueError as error:
        raise InvalidRequestError(f"The client state can't be used: {error}", param="client_state") from error


def _encode(value: Any) -> bytes:
    try:
        text = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"The shared state must be JSON: {error}") from None
    if len(text) > MAX_STATE_BYTES:
        raise ValueError(f"The shared state is limited to {MAX_STATE_BYTES} bytes, got {len(text)}.")
    # Brackets inside of texts count too, so that only few states have to be looked at.
    if text.count(b"[") + text.count(b"{") > MAX_STATE_DEPTH:
        _check_depth(msgspec.json.decode(text))
    return text


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_STATE_DEPTH + 1):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return
    raise ValueError(f"The shared state must have at most {MAX_STATE_DEPTH} levels.")


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()
