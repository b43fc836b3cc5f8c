"""The paths of a host's state, read from its arguments once, and the selection of the store."""

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from frontdesk.clock import Clock
from frontdesk.interfaces.argument_types import type_finding
from frontdesk.interfaces.auth import UsesNonces
from frontdesk.interfaces.linker import IdentityLinker, SupportsLinkStorePath
from frontdesk.interfaces.store import HostStateStore
from frontdesk.state_dir.lock import lock_directory, make_private, warn_readable
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.targets.checkpoints import Checkpoints

DATABASE = "frontdesk.db"
_STORAGE = ("save", "load", "delete", "get_latest", "list_checkpoints", "list_checkpoint_ids")


@dataclass(frozen=True, kw_only=True)
class HostStatePaths:
    """The paths of the parts of the state. A part that is not named is not kept on disk."""

    runner: str | Path | None = None
    """The database of the work that is scheduled; the one of the sessions, since transactions span both."""
    sessions: str | Path | None = None
    """The database of everything else."""
    checkpoints: str | Path | None = None
    """The directory of the checkpoints of workflows."""
    links: str | Path | None = None
    """The path for a linker that keeps its own store."""

    def findings(self) -> list[str]:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        wrong = [_no_path(f"state_dir: {name}", path) for name, path in named.items() if not _is_path(path)]
        if wrong:
            return wrong
        if self.runner is not None and self.sessions is not None and _full(self.runner) != _full(self.sessions):
            wrong.append(
                f"state_dir: runner names {self.runner} and sessions {self.sessions}; they must name one database, "
                "because one transaction writes a session and what is to be done for it later"
            )
        for name in ("runner", "sessions"):
            if named[name] is not None and os.path.isdir(named[name]):
                wrong.append(f"state_dir: {name} names the directory {named[name]}; it must name a database file")
        return wrong


StateDir = str | Path | HostStatePaths | Mapping[str, str | Path | None]


class HostState:
    """The locations of this host's state, and the settings without effect."""

    def __init__(
        self,
        state_dir: StateDir | None,
        checkpoint_location: Any,
        store: HostStateStore | None,
        linker: IdentityLinker | None,
        allow_unsafe: bool = False,
    ) -> None:
        """Read the settings. With `allow_unsafe`, locations that other users could change are used anyway."""
        self._allow_unsafe = allow_unsafe
        self._store = store
        self._linker = linker
        self._location = checkpoint_location
        self._paths, self.findings = _read(state_dir)
        if finding := type_finding("allow_unsafe_state_dir", allow_unsafe, bool):
            self.findings.append(finding)
        if not (_is_path(checkpoint_location) or _is_storage(checkpoint_location)):
            self.findings.append(_no_path("checkpoint_location", checkpoint_location, " or a CheckpointStorage"))
        self._directory = _full(state_dir) if isinstance(state_dir, (str, Path)) and not self.findings else None

    @property
    def database(self) -> Path | None:
        named = self._paths.sessions or self._paths.runner
        return None if named is None or self._store is not None else _full(named)

    def choose_checkpoints(self) -> Checkpoints | None:
        if self._location is not None and not isinstance(self._location, (str, Path)):
            return Checkpoints.of(self._location)
        root = self.checkpoints
        # A directory for everything chooses no place for the checkpoints of a workflow that has one already.
        gives_way = self._location is None and self._directory is not None
        if root is not None:
            return Checkpoints.under(root, gives_way=gives_way)
        # The checkpoint of a pause must last as long as the store's record of it.
        return Checkpoints.in_store(self._store) if self._store is not None and self._store.durable else None

    @property
    def checkpoints(self) -> Path | None:
        chosen = self._paths.checkpoints if self._location is None else self._location
        return _full(chosen) if isinstance(chosen, (str, Path)) else None

    def offer_links(self) -> None:
        """Pass its path to a linker that keeps its own store."""
        if self._paths.links is not None and isinstance(self._linker, SupportsLinkStorePath):
            self._linker.use_link_store(str(_full(self._paths.links)))

    def warnings(self, kind: str) -> list[str]:
        reasons = self._reasons(kind)
        warnings: list[str] = []
        if self._directory is not None:
            if self._is_idle(kind):
                warnings.append(f"state_dir has no effect: {'; '.join(dict.fromkeys(reasons.values()))}")
            elif self._location is not None and kind == "workflow":
                warnings.append(f"state_dir: checkpoints has no effect: {reasons['checkpoints']}")
        else:
            named = [name for name in reasons if getattr(self._paths, name) is not None]
            warnings += [f"state_dir: {name} has no effect: {reasons[name]}" for name in named]
        if self._location is not None and kind != "workflow":
            warnings.append("checkpoint_location has no effect: the target is not a workflow")
        return warnings

    def _reasons(self, kind: str) -> dict[str, str]:
        reasons: dict[str, str] = {}
        if self._store is not None:
            reasons |= dict.fromkeys(("runner", "sessions"), "store= is given")
        if kind != "workflow":
            reasons["checkpoints"] = "the target is not a workflow"
        elif self._location is not None:
            reasons["checkpoints"] = "checkpoint_location= is given"
        if not isinstance(self._linker, SupportsLinkStorePath):
            reasons["links"] = "there is no linker that keeps its own store"
        return reasons

    def unwritable(self, kind: str) -> list[str]:
        """List the locations that this process cannot write, one line each. Create nothing to check that."""
        places = self._list_directories(kind)
        if kind == "workflow" and self.checkpoints is not None:
            places.append(self.checkpoints)
        blocked = {place: _find_block(place) for place in dict.fromkeys(places)}
        return [f"state: {place} can't be written: {reason}" for place, reason in blocked.items() if reason is not None]

    @contextmanager
    def lock(self, kind: str, clock: Clock) -> Generator[None]:
        """Lock the state for this host for the duration of the block."""
        with ExitStack() as held:
            for directory in self._list_directories(kind):
                files = self._files(directory)
                held.enter_context(lock_directory(directory, clock, files=files, allow_unsafe=self._allow_unsafe))
                warn_readable(*files)
            if kind == "workflow" and self.checkpoints is not None:
                make_private(self.checkpoints, allow_unsafe=self._allow_unsafe)
                warn_readable(self.checkpoints)
            yield

    def _files(self, directory: Path) -> list[Path]:
        database = self.database
        if database is None or database.parent != directory:
            return []
        return [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]

    def _list_directories(self, kind: str) -> list[Path]:
        own = self._directory or (None if self.database is None else self.database.parent)
        of_store = None if self._store is None else self._store.directory
        directories = [None if self._is_idle(kind) else own, None if of_store is None else _full(of_store)]
        return sorted({directory for directory in directories if directory is not None})

    def _is_idle(self, kind: str) -> bool:
        return len(self._reasons(kind)) == len(fields(self._paths))


def choose_store(store: HostStateStore | None, database: Path | None, clock: Clock) -> HostStateStore:
    """Return the operator's own store, the database if it has a path, or the memory store."""
    if store is not None:
        return store
    if database is None:
        return InMemoryStateStore(clock=clock)
    # It takes a while to import, and a host in memory does not need it.
    from frontdesk.stores.sql.sqlite.engine import SqliteStateStore

    return SqliteStateStore(database, clock=clock)


def offer_nonces(auths: Iterable[object], store: HostStateStore) -> None:
    """Pass the store's nonces to the authenticators with single-use credentials."""
    for auth in auths:
        if isinstance(auth, UsesNonces):
            auth.use_nonces(store.nonces, durable=store.durable)


def _find_block(place: Path) -> str | None:
    there = next(parent for parent in (place, *place.parents) if parent.exists())
    if not there.is_dir():
        return f"{there} is not a directory"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"this process may not write in {there}"
    return None


def _read(state_dir: Any) -> tuple[HostStatePaths, list[str]]:
    if state_dir is None:
        return HostStatePaths(), []
    if isinstance(state_dir, HostStatePaths):
        return _check(state_dir)
    if isinstance(state_dir, Mapping):
        given = cast("Mapping[str, Any]", state_dir)
        names = [field.name for field in fields(HostStatePaths)]
        wrong = [f"state_dir: {name!r} is not one of {', '.join(names)}" for name in given if name not in names]
        paths, more = _check(HostStatePaths(**{name: given[name] for name in names if name in given}))
        return paths, wrong + more
    if not _is_path(state_dir):
        return HostStatePaths(), [_no_path("state_dir", state_dir, ", a HostStatePaths or a mapping")]
    root = _full(state_dir)
    if os.path.exists(root) and not os.path.isdir(root):
        return HostStatePaths(), [f"state_dir: {root} is not a directory"]
    database = root / DATABASE
    return _check(
        HostStatePaths(runner=database, sessions=database, checkpoints=root / "checkpoints", links=root / "links")
    )


def _check(paths: HostStatePaths) -> tuple[HostStatePaths, list[str]]:
    wrong = paths.findings()
    return (HostStatePaths() if wrong else paths), wrong


def _is_path(value: Any) -> bool:
    return value is None or (isinstance(value, (str, Path)) and value != "" and "\0" not in str(value))


def _is_storage(value: Any) -> bool:
    return all(callable(getattr(value, name, None)) for name in _STORAGE)


def _no_path(name: str, value: Any, otherwise: str = "") -> str:
    return f"{name}: {repr(value) if isinstance(value, str) else type(value).__name__} is not a path{otherwise}"


def _full(path: str | Path) -> Path:
    return Path(os.path.realpath(path))
