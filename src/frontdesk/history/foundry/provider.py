"""`FoundryHostedAgentHistoryProvider`: the history of a hosted agent in Foundry's store of responses."""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar

from agent_framework import HistoryProvider, Message

from frontdesk.clock import Clock, SystemClock
from frontdesk.data.isolation import IsolationKeys
from frontdesk.errors import (
    ChannelConfigurationError,
    HistoryRefusedError,
    HistoryStorageError,
    ResponseTakenError,
    UnavailableError,
)
from frontdesk.history.foundry.local import LocalFiles
from frontdesk.history.foundry.opening import NO_SDK, Opened, open_storage
from frontdesk.history.foundry.reading import read
from frontdesk.history.foundry.storage import ResponseStorage
from frontdesk.history.foundry.writing import written
from frontdesk.kit.aio.current import current_turn
from frontdesk.kit.foundry.ids import foundry_response_id, is_response_id
from frontdesk.kit.foundry.settings import HOSTED, FoundrySettings
from frontdesk.loggers import store as log

_LAST = "last_response_id"
"""The key of a session's state for the last response that was written for it."""
_LOST = "lost_responses"
"""The key of a session's state for responses that were not written, each with the one that it continues."""
_MOST_LOST = 50
_UNREADABLE = "The history of this conversation can't be read at the moment."


class _Bound:
    """The request that the present run works for."""

    def __init__(self, response_id: str, previous: str | None, keys: IsolationKeys) -> None:
        self.response_id = response_id
        self.anchor = previous if is_response_id(previous) else None
        self.keys = keys
        self.is_written = False


_NOBODY = IsolationKeys()


class FoundryHostedAgentHistoryProvider(HistoryProvider):
    """A history provider for hosted agents: turns are responses in the store of a Foundry project.

    It loads the history from there, or only mirrors turns for Foundry's portal. A write that fails is counted in
    `failed_writes` and logged, and never fails a turn.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "foundry_hosted_agent"

    def __init__(
        self,
        *,
        credential: Any = None,
        endpoint: str | None = None,
        history_limit: int = 100,
        source_id: str = DEFAULT_SOURCE_ID,
        load_messages: bool | None = None,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        local_storage_root: str | Path | None = None,
        model: str | None = None,
        timeout_seconds: float = 2.0,
        storage: ResponseStorage | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Open the storage; `load_messages=None` leaves it to the host whether to load or to mirror."""
        super().__init__(
            source_id,
            load_messages=load_messages is not False,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        if timeout_seconds <= 0:
            raise ValueError("FoundryHostedAgentHistoryProvider: timeout_seconds must be positive")
        if history_limit < 1 and history_limit != -1:
            raise ValueError("FoundryHostedAgentHistoryProvider: history_limit must be at least 1, or -1 for all items")
        self._chooses = load_messages is None
        self._limit, self._seconds, self._model = history_limit, timeout_seconds, model
        self._clock = clock or SystemClock()
        self._bound: ContextVar[_Bound | None] = ContextVar("frontdesk_foundry_request", default=None)
        opened = Opened(storage) if storage is not None else open_storage(credential, endpoint, local_storage_root)
        self._storage, self._settings = opened.storage, opened.settings
        self._files = None if opened.root is None else LocalFiles(opened.root, source_id)
        self.failed_writes = 0
        """The number of turns that the storage did not take."""

    @property
    def follows_responses(self) -> bool:
        """Tell whether a history is found by the response that it ends with, and not by the session."""
        return self._files is None

    def choose_loading(self, *, kept_elsewhere: bool) -> None:
        """Load the history, unless the host keeps it in a store that every process reaches; called by the host."""
        if self._chooses:
            self.load_messages = not kept_elsewhere

    def look(self, variable: Callable[[str], str | None]) -> None:
        """Take what reads a variable of the environment; called once, when the host is built."""
        if self._files is not None and variable(HOSTED):
            # Files of a sandbox are no history: another one would have none.
            raise ChannelConfigurationError(NO_SDK)
        found = FoundrySettings.of(variable)
        self._model = self._model or found.model
        self._settings = self._settings or found

    @contextmanager
    def bind_request_context(
        self,
        *,
        response_id: str,
        previous_response_id: str | None = None,
        isolation: IsolationKeys | None = None,
    ) -> Generator[None]:
        """Bind the request that the next run works for, for as long as it lasts."""
        token = self._bound.set(_Bound(response_id, previous_response_id, isolation or _NOBODY))
        try:
            yield
        finally:
            self._bound.reset(token)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the history up to the response that the present one continues; none if there is no such response."""
        bound = self._bound.get()
        keys = _NOBODY if bound is None else bound.keys
        if self._files is not None:
            return await self._files.of(keys).get_messages(session_id, state=state, **kwargs)
        anchor = _anchor(bound, session_id, state)
        if anchor is None:
            return []
        try:
            async with asyncio.timeout(self._seconds):
                ids = await self._store.history_ids(anchor, self._limit, keys)
                items = await self._store.items(ids, keys) if ids else ()
                return read(items, is_cut=len(ids) == self._limit)
        except HistoryRefusedError:
            return []
        except (HistoryStorageError, TimeoutError) as error:
            raise UnavailableError(_UNREADABLE, code="history_unavailable", retry_after=1.0) from error

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Write a turn as one completed response; count it as a failed write if the storage does not take it."""
        turn, bound = current_turn.get(), self._bound.get()
        if not messages or (turn is not None and not turn.admitted.request.store):
            return
        keys = _NOBODY if bound is None else bound.keys
        if self._files is not None:
            await self._files.of(keys).save_messages(session_id, messages, state=state, **kwargs)
            return
        anchor = _anchor(bound, session_id, state)
        response_id = _own_id(bound, anchor)
        given, output = written(messages, response_id)
        try:
            async with asyncio.timeout(self._seconds):
                earlier = await self._earlier(anchor, keys)
                await self._store.create(self._response(response_id, anchor, output), given, earlier, keys)
        except ResponseTakenError:
            # An earlier try of the same turn was written, and its answer was lost.
            log.info("Foundry has the response %s already", response_id)
        except (HistoryStorageError, TimeoutError) as error:
            self.failed_writes += 1
            log.warning("Foundry did not store the response %s: %s", response_id, _reason(error))
            _note_lost(state, response_id, anchor)
            return
        if state is not None:
            state[_LAST] = response_id
        if bound is not None:
            bound.anchor, bound.is_written = response_id, True

    async def aclose(self) -> None:
        """Close the connections to the storage."""
        if self._storage is not None:
            await self._storage.aclose()

    @property
    def _store(self) -> ResponseStorage:
        if self._storage is None:
            raise RuntimeError("a provider with files has no storage")
        return self._storage

    async def _earlier(self, anchor: str | None, keys: IsolationKeys) -> Sequence[str]:
        """Return the ids of the items before this turn; without them the turn is written all the same."""
        if anchor is None:
            return ()
        try:
            # Half of the time, so that the other half is left for the turn itself.
            async with asyncio.timeout(self._seconds / 2):
                return await self._store.history_ids(anchor, -1, keys)
        except (HistoryStorageError, TimeoutError) as error:
            log.warning(
                "Foundry did not tell what came before %s, and the turn is written alone: %s", anchor, _reason(error)
            )
            return ()

    def _response(self, response_id: str, previous: str | None, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        settings = self._settings or FoundrySettings()
        optional = {
            "model": self._model or settings.model,
            "previous_response_id": previous,
            "agent_session_id": settings.session_id,
            "agent_reference": settings.agent_reference,
        }
        return {
            "id": response_id,
            "response_id": response_id,
            "object": "response",
            "created_at": int(self._clock.now()),
            "status": "completed",
            "parallel_tool_calls": True,
            "output": list(output),
            **{name: value for name, value in optional.items() if value is not None},
        }


def _anchor(bound: _Bound | None, session_id: str | None, state: Mapping[str, Any] | None) -> str | None:
    """Return the response that the history ends with."""
    if bound is not None and bound.anchor is not None:
        return _behind_lost(bound.anchor, state)
    last: Any = None if state is None else state.get(_LAST)
    return next((value for value in (last, session_id) if isinstance(value, str) and is_response_id(value)), None)


def _behind_lost(anchor: str, state: Mapping[str, Any] | None) -> str | None:
    """Return the last response before those that were not written, so that only what they said is missing."""
    lost: Mapping[str, str | None] = {} if state is None else state.get(_LOST, {})
    found: str | None = anchor
    for _ in range(len(lost)):
        if found is None or found not in lost:
            break
        found = lost[found]
    return found


def _note_lost(state: dict[str, Any] | None, response_id: str, anchor: str | None) -> None:
    if state is not None:
        lost: dict[str, str | None] = {**state.get(_LOST, {}), response_id: anchor}
        state[_LOST] = dict(list(lost.items())[-_MOST_LOST:])


def _own_id(bound: _Bound | None, anchor: str | None) -> str:
    """Return the id for what is written: that of the request, if the service can read it and it is not used yet."""
    if bound is None or bound.is_written or not is_response_id(bound.response_id):
        return foundry_response_id(anchor)
    return bound.response_id


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
