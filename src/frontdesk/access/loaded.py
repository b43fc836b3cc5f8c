"""A list of ids that is fixed, or loaded from time to time; a loader that fails never allows anybody."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, cast

from frontdesk.clock import Clock, SystemClock
from frontdesk.kit.aio.calls import maybe_await
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.loggers import access as log

Ids = Collection[str] | Awaitable[Collection[str]]

LOAD_SECONDS = 10.0
"""The seconds that a loader may take."""
RETRY_SECONDS = 1.0
"""The seconds before a loader that has failed is called again."""


class LoadedIds:
    """The current ids. There is one load at a time, and callers wait for it.

    Only while the loader fails, and an earlier list is there, do they not wait.
    """

    def __init__(self, ids: Collection[str] | Callable[[], Ids], cache_seconds: float, clock: Clock | None) -> None:
        if cache_seconds <= 0:
            raise ValueError("cache_seconds must be positive")
        self._loader = ids if callable(ids) else None
        self._ids: frozenset[str] = frozenset() if callable(ids) else checked(ids)
        self._cache_seconds = cache_seconds
        self._clock = clock or SystemClock()
        self._loaded_at: float | None = None
        self._tried_at: float | None = None
        self._failing = False
        self._loading: asyncio.Task[None] | None = None

    @property
    def fixed(self) -> frozenset[str] | None:
        """Return the ids if they are fixed; `None` if they are loaded."""
        return self._ids if self._loader is None else None

    async def present(self) -> frozenset[str]:
        """Return the ids as they were loaded last, at most `cache_seconds` ago if the loader works."""
        if self._loader is not None and self._is_due():
            if self._loading is None or self._loading.done():
                self._loading = spawn_clean(self._load(self._loader))
            if not self._failing or self._loaded_at is None:
                # One caller may be cancelled while others still wait.
                await asyncio.shield(self._loading)
        return self._ids

    def _is_due(self) -> bool:
        now = self._clock.now()
        # A clock that was set back must not keep an old list valid.
        fresh = self._loaded_at is not None and 0 <= now - self._loaded_at < self._cache_seconds
        tried = self._tried_at is not None and 0 <= now - self._tried_at < min(RETRY_SECONDS, self._cache_seconds)
        return not fresh and not tried

    async def _load(self, loader: Callable[[], Ids]) -> None:
        work = spawn_clean(_loaded(loader))
        try:
            await asyncio.wait([work], timeout=LOAD_SECONDS)
        finally:
            work.cancel()
        self._tried_at = self._clock.now()
        failure = work.exception() if work.done() and not work.cancelled() else TimeoutError("it takes too long")
        self._failing = failure is not None
        if failure is None:
            self._ids, self._loaded_at = work.result(), self._tried_at
        elif self._loaded_at is None:
            log.error("an allowlist could not be loaded, and allows nobody", exc_info=failure)
        else:
            log.warning("an allowlist could not be loaded again, and stays as it was", exc_info=failure)


async def _loaded(loader: Callable[[], Ids]) -> frozenset[str]:
    return checked(await maybe_await(loader()))


def checked(ids: Any) -> frozenset[str]:
    """Return ids as a set; refuse a single text, which would count letter by letter, and ids that are no texts."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Collection):
        raise TypeError(f"native ids must be a list or set of texts, not {type(ids).__name__}")
    listed = cast("Collection[Any]", ids)
    for native_id in listed:
        if not isinstance(native_id, str) or not native_id:
            raise TypeError(f"a native id must be a text that is not empty, not {native_id!r}")
    return frozenset(listed)
