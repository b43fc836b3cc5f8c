"""Runs that go on after their request has been answered, in this process."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.codec import encode
from frontdesk.data.request import AdmittedRequest
from frontdesk.data.run import FINAL, RunEvent, RunFailure, RunRecord
from frontdesk.errors import NotFoundError, RequestError, RunExistsError, TooManyRequestsError
from frontdesk.host.config import HostConfig
from frontdesk.kit.framework import is_event
from frontdesk.loggers import runs as log
from frontdesk.pipeline import Pipeline

_CANCELLED = RunFailure(code="cancelled", message="The run was cancelled before it began.")


class Background:
    """Takes admitted requests and runs them one after another per session, within limits."""

    def __init__(self, store: HostStateStore, config: HostConfig, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._by_owner: Counter[str] = Counter()
        self._news: dict[tuple[str, str], asyncio.Event] = {}
        self._pipeline: Pipeline | None = None

    def use(self, pipeline: Pipeline) -> None:
        """Told once, when the host is built."""
        self._pipeline = pipeline

    async def submit(self, admitted: AdmittedRequest) -> RunRecord:
        """Writes the run down and starts it."""
        if len(self._tasks) >= self._config.max_background_runs:
            raise TooManyRequestsError("Too many runs are in the background.", retry_after=5)
        if self._by_owner[admitted.owner] >= self._config.max_background_runs_per_caller:
            raise TooManyRequestsError("Too many of your runs are in the background.", retry_after=5)
        request = admitted.request
        record = RunRecord(
            run_id=admitted.run_id,
            owner=admitted.owner,
            channel=request.channel,
            status="queued",
            created_at=admitted.admitted_at,
            session_key=None if request.session is None else request.session.key,
            previous_run_id=request.previous_run_id,
            background=True,
            stream=request.stream,
            metadata=request.metadata,
            details=request.details,
        )
        key = (admitted.owner, admitted.run_id)
        if key in self._news:
            raise RunExistsError
        # Taken before the first wait, so that of two with one id only one gets any further.
        self._news[key] = asyncio.Event()
        self._by_owner[admitted.owner] += 1
        try:
            if request.run_id is not None and await self._store.runs.get(*key) is not None:
                raise RunExistsError
            async with self._store.transaction() as transaction:
                transaction.save_run(record)
        except BaseException:
            self._forget(key)
            raise
        task = self._tasks[key] = asyncio.get_running_loop().create_task(self._work(admitted, record))
        task.add_done_callback(lambda _: self._forget(key))
        return record

    def _forget(self, key: tuple[str, str]) -> None:
        self._tasks.pop(key, None)
        self._by_owner[key[0]] -= 1
        if self._by_owner[key[0]] <= 0:
            del self._by_owner[key[0]]
        self._news.pop(key).set()

    async def _work(self, admitted: AdmittedRequest, record: RunRecord) -> None:
        pipeline = self._pipeline
        if pipeline is None:
            raise RuntimeError("the background was not given its pipeline")
        try:
            if admitted.request.stream:
                await self._follow(pipeline, admitted)
            else:
                await pipeline.run_admitted(admitted, patient=True)
        except RequestError as error:
            await self._ended_early(record, "failed", RunFailure(code=error.code, message=error.message))
        except asyncio.CancelledError:
            await self._ended_early(record, "cancelled", _CANCELLED)
        except Exception as error:
            log.error("background run %s failed", record.run_id, exc_info=error)
            await self._ended_early(record, "failed", RunFailure(code="internal_error", message="The run failed."))

    async def _follow(self, pipeline: Pipeline, admitted: AdmittedRequest) -> None:
        number = 0
        async with await pipeline.stream_admitted(admitted, patient=True) as stream:
            async for update in stream:
                if is_event(update) and update.type not in ("output", "intermediate"):
                    # What a workflow tells about itself is for its operator; it has no stored form.
                    continue
                number += 1
                event = RunEvent(owner=admitted.owner, run_id=admitted.run_id, number=number, data=encode(update))
                async with self._store.transaction() as transaction:
                    transaction.add_events([event])
                self._tell(admitted)

    def _tell(self, admitted: AdmittedRequest) -> None:
        key = (admitted.owner, admitted.run_id)
        self._news[key].set()
        self._news[key] = asyncio.Event()

    async def _ended_early(self, record: RunRecord, status: str, failure: RunFailure) -> None:
        known = await self._store.runs.get(record.owner, record.run_id)
        if known is None or known.status not in FINAL:
            async with self._store.transaction() as transaction:
                transaction.save_run(record.replace(status=status, failure=failure, finished_at=self._clock.now()))

    async def events(self, owner: str, run_id: str, after: int) -> AsyncIterator[RunEvent]:
        """The events of a run, from the past and then live."""
        if await self._store.runs.get(owner, run_id) is None:
            raise NotFoundError
        while True:
            # Asked for before the look into the store: what is written after that look sets it.
            news = self._news.get((owner, run_id))
            found = await self._store.runs.events(owner, run_id, after=after)
            for event in found:
                after = event.number
                yield event
            if not found:
                if news is None:
                    return
                await news.wait()

    async def cancel(self, owner: str, run_id: str) -> bool:
        """Cancels a run that has not begun to run."""
        task = self._tasks.get((owner, run_id))
        if task is None:
            return False
        task.cancel()
        await asyncio.wait([task])
        return True

    async def drain(self) -> None:
        """Lets the runs end for a while, then cancels them."""
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=self._config.shutdown_grace_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
