"""Results and streams of runs. They contain the unchanged output of the target."""

from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from frontdesk.models.approval import PendingApproval
from frontdesk.models.base import StoredRecord
from frontdesk.models.run import RunRecord

T = TypeVar("T")


class HostedRunResult(StoredRecord, Generic[T], frozen=True, kw_only=True):
    """The target's unchanged output (`AgentResponse` or `WorkflowRunResult`), with the record of its run."""

    result: T
    run: RunRecord
    locale: str | None = None
    """The language of the person whom it is sent to, if the platform has said it."""
    questions: tuple[PendingApproval, ...] = ()
    """The questions of the result that others decide too, for those who render it."""

    @property
    def session_key(self) -> str | None:
        return self.run.session_key


class HostedStreamResult(Generic[T]):
    """The stream of a run: iterate it for the updates, then call `final` for the result.

    The run advances only while it is iterated, in the task that started it. Iterate it to the end or close it. Closing
    early cancels the run and records it as cancelled. Use it as an async context manager.
    """

    __slots__ = ("_close", "_outcome", "_updates", "run")

    def __init__(
        self,
        run: RunRecord,
        updates: AsyncIterator[Any],
        outcome: list[HostedRunResult[T]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.run = run
        self._updates = updates
        self._outcome = outcome
        self._close = close

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._updates

    def final(self) -> HostedRunResult[T]:
        """Return the result. Valid once the iteration has ended."""
        return self._outcome[0]

    async def aclose(self) -> None:
        """End the run if it has not ended."""
        await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()
