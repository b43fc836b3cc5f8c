"""Workflow checkpoints, stored with the session that saved them.

The framework writes a checkpoint before the record of the run commits. The id in the record decides: a checkpoint that
no record names is never restored.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, Self

from agent_framework import CheckpointStorage, FileCheckpointStorage, WorkflowCheckpoint, WorkflowCheckpointException

from frontdesk.errors import UnavailableError
from frontdesk.identifiers import digest, is_plain_id
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import runs as log
from frontdesk.models.session import CheckpointRef

_SESSION = "frontdesk_session"
_ANSWERS = "frontdesk_answers"
_MAX_NAME_LENGTH = 200

Note = Callable[[WorkflowCheckpoint, CheckpointRef], None]
Reached = Callable[[CheckpointRef], Awaitable[None]]


class Place(Protocol):
    """Stores checkpoints by session and id."""

    async def save(self, session_id: str, checkpoint: WorkflowCheckpoint) -> None: ...

    async def load(self, ref: CheckpointRef) -> WorkflowCheckpoint: ...

    async def delete(self, ref: CheckpointRef) -> None: ...


class Checkpoints:
    """The checkpoints of every session, accessible only by the id in a record."""

    def __init__(self, place: Place, *, gives_way: bool = False) -> None:
        self._place = place
        self.gives_way = gives_way
        """Whether a workflow's own storage may replace it."""

    @classmethod
    def in_memory(cls, limit: int = 5_000) -> Self:
        """Keep checkpoints in this process. Beyond `limit`, drop the least recently used."""
        return cls(_Memory(limit))

    @classmethod
    def under(cls, root: Path | str, types: Iterable[type] = (), *, gives_way: bool = False) -> Self:
        """Keep checkpoints in files, one directory per session. `types` are held types beyond those found."""
        names = [f"{kind.__module__}:{kind.__qualname__}" for kind in types]
        return cls(_Files(Path(root), names), gives_way=gives_way)

    @classmethod
    def in_store(cls, store: HostStateStore) -> Self:
        """Keep checkpoints in the host's own store, for every process that shares it."""
        return cls(_InStore(store), gives_way=True)

    @classmethod
    def of(cls, storage: CheckpointStorage) -> Self:
        """Keep checkpoints in the operator's own storage, from which nothing is deleted."""
        return cls(_Shared(storage))

    @property
    def is_directory(self) -> bool:
        return isinstance(self._place, _Files)

    async def find(self, ref: CheckpointRef) -> WorkflowCheckpoint | None:
        """Return a checkpoint, or `None` if it is missing, unreadable, or of another session."""
        try:
            checkpoint = await self._place.load(ref)
        except WorkflowCheckpointException as error:
            log.debug("checkpoint cannot be decoded: checkpoint_id=%s", ref.checkpoint_id, exc_info=error)
            return None
        except OSError as error:
            raise UnavailableError("The session's checkpoint can't be read at the moment.") from error
        return checkpoint if checkpoint.metadata.get(_SESSION) == _plain(ref.session_id) else None

    async def keep(self, session_id: str, checkpoint: WorkflowCheckpoint) -> CheckpointRef:
        marked = replace(checkpoint, metadata={**checkpoint.metadata, _SESSION: _plain(session_id)})
        try:
            await self._place.save(session_id, marked)
        except (OSError, WorkflowCheckpointException) as error:
            raise UnavailableError("The session's checkpoint can't be written at the moment.") from error
        return CheckpointRef(session_id=session_id, checkpoint_id=checkpoint.checkpoint_id)

    def open(
        self, session_id: str, note: Note, restored: WorkflowCheckpoint | None = None, reached: Reached | None = None
    ) -> "RunStorage":
        """Open the storage for one run of a session. It calls `note` and `reached` after every save."""
        return RunStorage(self._place, session_id, note, restored, reached)


class RunStorage:
    """The checkpoint storage of one run, which keeps only the last checkpoint."""

    def __init__(
        self,
        place: Place,
        session_id: str,
        note: Note,
        restored: WorkflowCheckpoint | None,
        reached: Reached | None = None,
    ) -> None:
        self._place = place
        self._reached = reached
        self._session_id = session_id
        self._note = note
        self._restored = restored
        self._last: CheckpointRef | None = None
        self.answers: Mapping[str, Any] = {}
        """The answers that are kept with each checkpoint, for a workflow that is resumed by a replay."""
        self.failure: Exception | None = None
        """The error of the last save, if it failed."""

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        ref = CheckpointRef(session_id=self._session_id, checkpoint_id=checkpoint.checkpoint_id)
        marks = {_SESSION: _plain(self._session_id), **({_ANSWERS: dict(self.answers)} if self.answers else {})}
        marked = replace(checkpoint, metadata={**checkpoint.metadata, **marks})
        try:
            await self._place.save(self._session_id, marked)
        except Exception as error:
            # The framework only logs it.
            self.failure = error
            raise
        self.failure = None
        before, self._last = self._last, ref
        self._note(checkpoint, ref)
        if self._reached is not None:
            await self._reached(ref)
        if before is not None:
            await self._drop(before)
        return ref.checkpoint_id

    async def _drop(self, ref: CheckpointRef) -> None:
        try:
            await self._place.delete(ref)
        except OSError as error:
            log.warning("failed to delete an obsolete checkpoint: checkpoint_id=%s: %s", ref.checkpoint_id, error)

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return _only(self._restored, checkpoint_id)


class PauseStorage:
    """Holds back a run's checkpoints until its end, and saves the last one only if it is a pause.

    It is used for sessions that are restored from their history. Without a pause, a checkpoint duplicates the history,
    and writing it would make each turn cost as much as the whole conversation.
    """

    def __init__(self, storage: RunStorage, *, always: bool) -> None:
        """Also save the end of the run if `always`, because it ends the session's current pause."""
        self._storage = storage
        self._always = always
        self._last: WorkflowCheckpoint | None = None

    @property
    def failure(self) -> Exception | None:
        return self._storage.failure

    @property
    def pending(self) -> frozenset[str]:
        """Return the pending requests in the last checkpoint, saved or not."""
        return frozenset() if self._last is None else frozenset(self._last.pending_request_info_events)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        self._last = checkpoint
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return await self._storage.load(checkpoint_id)

    async def save_pause(self) -> None:
        """Save the pause that the session returns to. Call it after the run ends and before it is recorded."""
        last = self._last
        if last is None:
            return
        if last.pending_request_info_events:
            await self._storage.save(last)
        elif self._always:
            # It only says that no request waits any more.
            await self._storage.save(replace(last, messages={}, state={}))


class ReadOnly:
    """Loads one checkpoint and saves none, for a run that is not stored."""

    def __init__(self, checkpoint: WorkflowCheckpoint) -> None:
        self._restored = checkpoint

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return _only(self._restored, checkpoint_id)


def _plain(session_id: str) -> str:
    """Return the digest of a session id, which is safe as a directory name."""
    return digest(session_id)


def _only(checkpoint: WorkflowCheckpoint | None, checkpoint_id: str) -> WorkflowCheckpoint:
    if checkpoint is None or checkpoint.checkpoint_id != checkpoint_id:
        raise WorkflowCheckpointException(f"No checkpoint {checkpoint_id} for this run")
    return checkpoint


class _Memory:
    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("limit must be at least 1")
        self._limit = limit
        self._kept: OrderedDict[CheckpointRef, WorkflowCheckpoint] = OrderedDict()

    async def save(self, session_id: str, checkpoint: WorkflowCheckpoint) -> None:
        ref = CheckpointRef(session_id=session_id, checkpoint_id=checkpoint.checkpoint_id)
        self._kept[ref] = deepcopy(checkpoint)
        self._kept.move_to_end(ref)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    async def load(self, ref: CheckpointRef) -> WorkflowCheckpoint:
        if ref not in self._kept:
            raise WorkflowCheckpointException(f"No checkpoint {ref.checkpoint_id}")
        self._kept.move_to_end(ref)
        return deepcopy(self._kept[ref])

    async def delete(self, ref: CheckpointRef) -> None:
        self._kept.pop(ref, None)


class _Files:
    def __init__(self, root: Path, types: list[str]) -> None:
        self._root = root
        self._types = types

    def _folder(self, session_id: str) -> Path:
        return self._root / _plain(session_id)

    async def _storage(self, session_id: str) -> FileCheckpointStorage:
        # Its constructor creates the directory.
        folder = self._folder(session_id)
        return await asyncio.to_thread(FileCheckpointStorage, folder, allowed_checkpoint_types=self._types)

    async def save(self, session_id: str, checkpoint: WorkflowCheckpoint) -> None:
        storage = await self._storage(session_id)
        await storage.save(checkpoint)
        if not checkpoint.messages:
            # The session returns to it, so it must survive a power cut, as the record does that will name it.
            await asyncio.to_thread(_sync, self._folder(session_id), checkpoint.checkpoint_id)

    async def load(self, ref: CheckpointRef) -> WorkflowCheckpoint:
        # The id may come from a request, and is a file name here.
        named = is_plain_id(ref.checkpoint_id) and len(ref.checkpoint_id) <= _MAX_NAME_LENGTH
        if not named or not await asyncio.to_thread(self._folder(ref.session_id).is_dir):
            raise WorkflowCheckpointException(f"No checkpoint {ref.checkpoint_id}")
        return await (await self._storage(ref.session_id)).load(ref.checkpoint_id)

    async def delete(self, ref: CheckpointRef) -> None:
        await (await self._storage(ref.session_id)).delete(ref.checkpoint_id)


def _sync(folder: Path, checkpoint_id: str) -> None:
    for path in (folder / f"{checkpoint_id}.json", folder, folder.parent):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _InStore:
    def __init__(self, store: HostStateStore) -> None:
        self._store = store

    async def save(self, session_id: str, checkpoint: WorkflowCheckpoint) -> None:
        # The framework encodes checkpoints only to files.
        with TemporaryDirectory(prefix="frontdesk-") as folder:
            await FileCheckpointStorage(folder).save(checkpoint)
            data = await asyncio.to_thread((Path(folder) / f"{checkpoint.checkpoint_id}.json").read_bytes)
        async with self._store.transaction() as transaction:
            transaction.save_checkpoint(session_id, checkpoint.checkpoint_id, data)

    async def load(self, ref: CheckpointRef) -> WorkflowCheckpoint:
        data = await self._store.checkpoints.get(ref.session_id, ref.checkpoint_id)
        # The id may come from a request, and is a file name here.
        if data is None or not is_plain_id(ref.checkpoint_id) or len(ref.checkpoint_id) > _MAX_NAME_LENGTH:
            raise WorkflowCheckpointException(f"No checkpoint {ref.checkpoint_id}")
        with TemporaryDirectory(prefix="frontdesk-") as folder:
            await asyncio.to_thread((Path(folder) / f"{ref.checkpoint_id}.json").write_bytes, data)
            return await FileCheckpointStorage(folder).load(ref.checkpoint_id)

    async def delete(self, ref: CheckpointRef) -> None:
        async with self._store.transaction() as transaction:
            transaction.delete_checkpoint(ref.session_id, ref.checkpoint_id)


class _Shared:
    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage

    async def save(self, session_id: str, checkpoint: WorkflowCheckpoint) -> None:
        await self._storage.save(checkpoint)

    async def load(self, ref: CheckpointRef) -> WorkflowCheckpoint:
        return await self._storage.load(ref.checkpoint_id)

    async def delete(self, ref: CheckpointRef) -> None:
        return


def answers_in(checkpoint: WorkflowCheckpoint) -> Mapping[str, Any]:
    return checkpoint.metadata.get(_ANSWERS, {})


def own_storage(workflow: Any) -> CheckpointStorage | None:
    """Return the storage that a workflow was built with, if any. The framework has no public name for it."""
    context = getattr(workflow, "_runner_context", None)
    return getattr(workflow if context is None else context, "_checkpoint_storage", None)
