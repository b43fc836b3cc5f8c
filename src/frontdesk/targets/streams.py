"""Streams of a target, which are closed in every case."""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

from agent_framework import AgentResponse, ResponseStream

from frontdesk.framework.types import is_generator, is_response_stream

Done = Callable[[Any], Any]
"""A function that records the result, and returns it."""


class FrameworkStream:
    """A `ResponseStream`, which collects its updates and builds the result itself."""

    __slots__ = ("_done", "_scope", "_stream")

    def __init__(self, stream: ResponseStream[Any, Any], done: Done, scope: AsyncExitStack | None = None) -> None:
        self._stream = stream
        self._done = done
        self._scope = scope

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._stream

    async def final(self) -> Any:
        return self._done(await self._stream.get_final_response())

    async def close(self) -> None:
        try:
            await self._stream.close()
        finally:
            if self._scope is not None:
                await self._scope.aclose()


class PlainStream:
    """Any other async iterable of updates. The result is built from them."""

    __slots__ = ("_done", "_iterator", "_scope", "_updates")

    def __init__(self, stream: AsyncIterable[Any], done: Done, scope: AsyncExitStack | None = None) -> None:
        self._iterator = stream.__aiter__()
        self._done = done
        self._scope = scope
        self._updates: list[Any] = []

    async def __aiter__(self) -> AsyncIterator[Any]:
        updates = self._updates
        async for update in self._iterator:
            updates.append(update)
            yield update

    async def final(self) -> Any:
        return self._done(AgentResponse.from_updates(self._updates))

    async def close(self) -> None:
        try:
            if is_generator(self._iterator):
                await self._iterator.aclose()
        finally:
            if self._scope is not None:
                await self._scope.aclose()


def as_stream(
    stream: AsyncIterable[Any], done: Done, scope: AsyncExitStack | None = None
) -> FrameworkStream | PlainStream:
    if is_response_stream(stream):
        return FrameworkStream(stream, done, scope)
    return PlainStream(stream, done, scope)
