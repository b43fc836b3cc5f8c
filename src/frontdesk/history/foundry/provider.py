"""`FoundryHostedAgentHistoryProvider`: the history of a hosted agent in Foundry's response storage."""

import asyncio
import base64
import os
import re
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from agent_framework import FileHistoryProvider, HistoryProvider, Message

from frontdesk.clock import Clock, SystemClock
from frontdesk.concurrency.current import current_turn
from frontdesk.errors import (
    ChannelConfigurationError,
    HistoryRefusedError,
    HistoryStorageError,
    ResponseTakenError,
    UnavailableError,
)
from frontdesk.errors.base import install_hint
from frontdesk.foundry.conventions import HOSTED, FoundrySettings, foundry_response_id, is_response_id
from frontdesk.history.foundry.reading import read
from frontdesk.history.foundry.writing import write
from frontdesk.interfaces.auth import AsksEnvironment
from frontdesk.interfaces.target import ChoosesLoading, FollowsResponses
from frontdesk.loggers import host as host_log
from frontdesk.loggers import store as log
from frontdesk.models.identity import IsolationKeys


class ResponseStorage(Protocol):
    """A service that stores responses with their items. Each call is made for the person given by its keys."""

    async def create(
        self,
        response: Mapping[str, Any],
        input_items: Sequence[Mapping[str, Any]],
        history_item_ids: Sequence[str],
        keys: IsolationKeys,
    ) -> None:
        """Store a response. Raises `ResponseTakenError` if its id exists, `HistoryStorageError` if storing fails."""
        ...

    async def history_ids(self, response_id: str, limit: int, keys: IsolationKeys) -> Sequence[str]:
        """Return the ids of the last `limit` items up to the end of a response, oldest first.

        A limit of -1 means no limit. Raises `HistoryRefusedError` if the person has no such response.
        """
        ...

    async def items(self, ids: Sequence[str], keys: IsolationKeys) -> Sequence[Mapping[str, Any] | None]:
        """Return the items with these ids, with None for missing ones."""
        ...

    async def aclose(self) -> None: ...


_NONE = "~none"
_DIGEST = "~key-"
_ENCODED = "~iso-"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
# Names that Windows takes for devices, with any ending.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def get_directory(root: Path, keys: IsolationKeys) -> Path:
    """Return the directory of a person's chat. It is inside the root for any keys."""
    person = root / _segment(root, keys.user_key)
    place = person / _segment(person, keys.chat_key)
    if not place.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"local_storage_root: {place} is outside of it")
    return place


def _segment(parent: Path, key: str | None) -> str:
    """Return a directory name. Names of different keys differ in more than case, which some disks ignore."""
    if key is None:
        return _NONE
    name, digest = _earlier_name(key), _DIGEST + sha256(key.encode()).hexdigest()
    if os.path.lexists(parent / digest):
        return digest
    # Names with capitals are those of earlier versions.
    is_free = name == name.lower() and not os.path.lexists(parent / name)
    return name if is_free or _is_entry(parent, name) else digest


def _earlier_name(key: str) -> str:
    if _SAFE.fullmatch(key) and not key.endswith(".") and not _DEVICE.fullmatch(key):
        return key
    return _ENCODED + base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _is_entry(parent: Path, name: str) -> bool:
    """Return True if a directory has an entry of exactly this name, also on a disk that ignores case."""
    path, other = parent / name, parent / name.swapcase()
    if not os.path.lexists(path):
        return False
    ignores_case = path != other and os.path.lexists(other) and os.path.samestat(os.lstat(path), os.lstat(other))
    return not ignores_case or name in os.listdir(parent)


class LocalFiles:
    """The histories below a directory, one file for each session."""

    def __init__(self, root: str | Path, source_id: str) -> None:
        self._root = Path(root)
        self._source_id = source_id

    async def of(self, keys: IsolationKeys) -> Any:
        place = await asyncio.to_thread(get_directory, self._root, keys)
        with warnings.catch_warnings():
            # The framework calls it experimental, once in a process; whoever develops with it need not hear that.
            warnings.simplefilter("ignore")
            return FileHistoryProvider(place, source_id=self._source_id)


_NAME = "FoundryHostedAgentHistoryProvider"
NO_SDK = f"{_NAME}: the SDK is missing: {install_hint('foundry')}; or name a local_storage_root, for development"


class Opened(NamedTuple):
    storage: ResponseStorage | None
    root: Path | None = None
    settings: FoundrySettings | None = None


def open_storage(credential: Any, endpoint: str | None, root: str | Path | None) -> Opened:
    """Open the storage of the Foundry project that hosts this process. Elsewhere files or memory replace it."""
    if not _has_sdk():
        if root is None:
            raise ChannelConfigurationError([NO_SDK])
        return Opened(None, Path(root))
    # Here, and not at the top: it takes a second, and most hosts are somewhere else.
    from frontdesk.history.foundry.sdk import MemoryStorage, SdkStorage, agent_config

    config = agent_config()
    settings = FoundrySettings(
        name=config.agent_name or None, version=config.agent_version or None, session_id=config.session_id or None
    )
    if not config.is_hosted:
        return Opened(MemoryStorage(), None, settings) if root is None else Opened(None, Path(root), settings)
    if root is not None:
        host_log.info("local_storage_root has no effect in Foundry: provider=%s", _NAME)
    place = endpoint or config.project_endpoint
    findings = _findings(credential, place)
    if findings:
        raise ChannelConfigurationError(findings)
    return Opened(SdkStorage.connect(credential, place), None, settings)


def _has_sdk() -> bool:
    try:
        return find_spec("azure.ai.agentserver.responses") is not None
    except ModuleNotFoundError:
        return False


def _findings(credential: Any, endpoint: str) -> list[str]:
    wrong: list[str] = []
    if credential is None:
        wrong.append(
            f"{_NAME}: in Foundry it needs credential=, such as an azure.identity.aio.ManagedIdentityCredential"
        )
    if not endpoint:
        wrong.append(f"{_NAME}: in Foundry it needs endpoint=, or FOUNDRY_PROJECT_ENDPOINT")
    elif not endpoint.startswith("https://"):
        wrong.append(f"{_NAME}: the endpoint must begin with https://")
    return wrong


_LAST = "last_response_id"
"""The key of a session's state for the last response that was written for it."""
_LOST = "lost_responses"
"""The key of a session's state for responses that were not written, each with the one that it continues."""
_MAX_LOST = 50
_UNREADABLE = "The history of this conversation can't be read. Try again later."


class _Bound:
    def __init__(self, response_id: str, previous: str | None, keys: IsolationKeys) -> None:
        self.response_id = response_id
        self.anchor = previous if is_response_id(previous) else None
        self.keys = keys
        self.is_written = False


_NOBODY = IsolationKeys()


class FoundryHostedAgentHistoryProvider(HistoryProvider, FollowsResponses, ChoosesLoading, AsksEnvironment):
    """A history provider for hosted agents: turns are responses in the store of a Foundry project.

    It loads the history from there, or only mirrors turns for Foundry's portal. A failed write is counted in
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
        """Open the storage. With `load_messages=None`, the host decides between loading and mirroring."""
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
        """Return True if a history is found by its last response and not by the session."""
        return self._files is None

    def choose_loading(self, *, kept_elsewhere: bool) -> None:
        """Load the history, unless the host keeps it in a store that every process reaches. Called by the host."""
        if self._chooses:
            self.load_messages = not kept_elsewhere

    def look(self, variable: Callable[[str], str | None]) -> None:
        """Receive the reader of environment variables. Called once, when the host is built."""
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
        """Bind the request of the next run for the duration of the block."""
        token = self._bound.set(_Bound(response_id, previous_response_id, isolation or _NOBODY))
        try:
            yield
        finally:
            self._bound.reset(token)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the history up to the response that the current one continues. Empty if there is no such response."""
        bound = self._bound.get()
        keys = _NOBODY if bound is None else bound.keys
        if self._files is not None:
            files = await self._files.of(keys)
            return await files.get_messages(session_id, state=state, **kwargs)
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
        """Write a turn as one completed response. If the storage rejects it, count a failed write."""
        turn, bound = current_turn.get(), self._bound.get()
        if not messages or (turn is not None and not turn.admitted.request.store):
            return
        keys = _NOBODY if bound is None else bound.keys
        if self._files is not None:
            files = await self._files.of(keys)
            await files.save_messages(session_id, messages, state=state, **kwargs)
            return
        anchor = _anchor(bound, session_id, state)
        response_id = _own_id(bound, anchor)
        given, output = write(messages, response_id)
        try:
            async with asyncio.timeout(self._seconds):
                earlier = await self._earlier(anchor, keys)
                await self._store.create(self._response(response_id, anchor, output), given, earlier, keys)
        except ResponseTakenError:
            # An earlier try of the same turn was written, and its answer was lost.
            log.info("response already stored in Foundry: response_id=%s", response_id)
        except (HistoryStorageError, TimeoutError) as error:
            self.failed_writes += 1
            log.warning("failed to store the response in Foundry: response_id=%s: %s", response_id, _reason(error))
            _note_lost(state, response_id, anchor)
            return
        if state is not None:
            state[_LAST] = response_id
        if bound is not None:
            bound.anchor, bound.is_written = response_id, True

    async def aclose(self) -> None:
        if self._storage is not None:
            await self._storage.aclose()

    @property
    def _store(self) -> ResponseStorage:
        if self._storage is None:
            raise RuntimeError("a file-based provider has no response storage")
        return self._storage

    async def _earlier(self, anchor: str | None, keys: IsolationKeys) -> Sequence[str]:
        """Return the ids of the items before this turn. If they can't be read, the turn is written without them."""
        if anchor is None:
            return ()
        try:
            # Half of the time, so that the other half is left for the turn itself.
            async with asyncio.timeout(self._seconds / 2):
                return await self._store.history_ids(anchor, -1, keys)
        except (HistoryStorageError, TimeoutError) as error:
            log.warning(
                "failed to read the previous responses from Foundry, writing the turn alone: response_id=%s: %s",
                anchor,
                _reason(error),
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
    """Return the last response of the history."""
    if bound is not None and bound.anchor is not None:
        return _behind_lost(bound.anchor, state)
    last: Any = None if state is None else state.get(_LAST)
    return next((value for value in (last, session_id) if isinstance(value, str) and is_response_id(value)), None)


def _behind_lost(anchor: str, state: Mapping[str, Any] | None) -> str | None:
    """Return the last response before the unwritten ones, so that only their messages are missing."""
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
        state[_LOST] = dict(list(lost.items())[-_MAX_LOST:])


def _own_id(bound: _Bound | None, anchor: str | None) -> str:
    """Return the id to write under: that of the request, if the service can read it and it is unused."""
    if bound is None or bound.is_written or not is_response_id(bound.response_id):
        return foundry_response_id(anchor)
    return bound.response_id


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
