"""`frontdesk move-state`: moves all state of a host to another database."""

from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from frontdesk.cli.state_paths import locate
from frontdesk.cli.terminal import CommandError
from frontdesk.clock import SystemClock
from frontdesk.errors import StateDirectoryError, StoreError
from frontdesk.errors.base import install_hint
from frontdesk.state_dir.lock import lock_directory
from frontdesk.stores.sql.move.endpoints import MoveEndpoint, SqliteEnd, move


def run(arguments: Namespace) -> int:
    """Move the state. No host can be started on either side meanwhile."""
    source = locate("--from", arguments.source, arguments.source_env)
    target = locate("--to", arguments.target, arguments.target_env)
    if isinstance(source, Path) and not source.is_file():
        raise CommandError(f"--from: file {source} not found")
    if isinstance(source, Path) and isinstance(target, Path) and source.resolve() == target.resolve():
        raise CommandError(f"--to: {target} is the current state")
    counts = _Counts()
    try:
        with ExitStack() as stack:
            for directory in sorted({place.resolve().parent for place in (source, target) if isinstance(place, Path)}):
                stack.enter_context(lock_directory(directory, SystemClock()))
            moved = move(_end(source), _end(target), counts)
    except (StateDirectoryError, StoreError) as error:
        raise CommandError(str(error)) from None
    print(f"All {moved} rows are moved. The source is as it was: remove it when the new place has proved itself.")
    if isinstance(source, Path) and (checkpoints := source.parent / "checkpoints").is_dir():
        print(f"The checkpoints of workflows stay in {checkpoints}: name it with checkpoint_location=.")
    if isinstance(target, Path) and counts.of.get("checkpoints"):
        print("The checkpoints of workflows are in the database: open it with store=SqliteStateStore(...).")
    return 0


def _end(place: Path | str) -> MoveEndpoint:
    if isinstance(place, Path):
        return SqliteEnd(place)
    try:
        from frontdesk.stores.sql.move.postgres import PostgresEnd
    except ImportError:
        raise CommandError(f"Postgres needs psycopg: {install_hint('postgres')}") from None
    return PostgresEnd(place)


class _Counts:
    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    def __call__(self, table: str, moved: int, total: int) -> None:
        self.of[table] = total
        print(f"  {table}: {moved} of {total}", flush=True)
