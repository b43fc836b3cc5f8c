"""The machine: which core is whose, and the facts that a figure means nothing without."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import sqlite3
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

PACKAGES = ("uvicorn", "uvloop", "httptools", "starlette", "msgspec", "agent-framework-core", "psycopg")


@dataclass(frozen=True, slots=True)
class Cores:
    """The server's core and the generator's; None where they can't be chosen or there is only one."""

    server: int | None
    generator: int | None
    database: tuple[int, ...] = ()
    """A database's: those that are left, or the generator's if none is. Never the server's: it has that for itself."""

    def database_text(self) -> str:
        if not self.database:
            return "on any core"
        cores = f"on core{'s' if len(self.database) > 1 else ''} {', '.join(map(str, self.database))}"
        return f"{cores}, with the generator" if self.generator in self.database else cores


def choose_cores() -> Cores:
    if not hasattr(os, "sched_getaffinity"):
        return Cores(None, None)
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        return Cores(None, None)
    server, *left, generator = allowed
    return Cores(server=server, generator=generator, database=tuple(left) or (generator,))


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """On uvloop, where there is one: the generator must not be the slower side."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def pin(core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})


@contextmanager
def pin_while(cores: Sequence[int]) -> Iterator[None]:
    """What is started meanwhile runs on these cores."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def filesystem(path: Path) -> str:
    """The kind of the file system that a path is on, such as ext4; tmpfs is memory."""
    import psutil

    mounts = {one.mountpoint: one.fstype for one in psutil.disk_partitions(all=True)}
    found = (mounts[str(parent)] for parent in (path, *path.parents) if str(parent) in mounts)
    return next(found, "an unknown file system")


def allow_many_files(wanted: int = 8192) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def package_versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def facts(cores: Cores) -> dict[str, str]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count()),
        "pinned": "no" if cores.server is None else f"server to {cores.server}, generator to {cores.generator}",
        "load before": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **package_versions(),
    }
