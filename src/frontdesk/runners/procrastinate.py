"""Runs tasks on many machines: Procrastinate, on the Postgres of the store, tells them what there is to do.

Rows are the truth: those of the outbox and the inbox, and those of tasks that are kept. A job is a wake-up, deferred
after the commit. One that is lost, or stalled with its worker, costs time and nothing else: every process looks again
and again for what nobody works on. So no job is kept when it has ended, and retries are ours.
"""

import asyncio
import hashlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, LiteralString, Protocol, cast

try:
    import psycopg
    from procrastinate import App, PsycopgConnector
    from procrastinate.exceptions import AlreadyEnqueued, ConnectorException, ProcrastinateException
    from procrastinate.jobs import Job, Status
    from procrastinate.schema import SchemaManager
    from procrastinate.worker import Worker
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool, PoolTimeout
except ImportError as error:
    raise ImportError('ProcrastinateTaskRunner needs Procrastinate: pip install "frontdesk[postgres]"') from error

from frontdesk.abc.runner import TaskStatus
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.codec import decode, encode
from frontdesk.errors import CodecError, StoreUnavailableError
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.names import digest
from frontdesk.loggers import tasks as log
from frontdesk.runners.base import MOST_KNOWN, TaskRunner
from frontdesk.runners.wakes import Wake

_AWAY = (ProcrastinateException, psycopg.Error, PoolTimeout, OSError)
_QUEUE = "frontdesk"
_CALL = "frontdesk.wake"
_POLL = 1.0
_PAUSE = 1.0
_AT_ONCE = 4
_MAKING = 0x66726F6E75
"""The number of the lock under which the tables are made: one process at a time."""


class PostgresAddress(Protocol):
    """Where a database is, and what connections to it are set to."""

    conninfo: str
    connect_settings: dict[str, Any]
    settings: dict[str, Any]


class PostgresStore(HostStateStore, Protocol):
    """A store on Postgres."""

    @property
    def address(self) -> PostgresAddress: ...


class ProcrastinateTaskRunner(TaskRunner):
    """Whoever has room does what any of the processes has scheduled."""

    in_process = False

    def __init__(self, store: PostgresStore, *, pool_size: int = _AT_ONCE, clock: Clock | None = None) -> None:
        """`pool_size` is how many connections it has for jobs, besides the one on which it listens."""
        super().__init__(store, clock=clock)
        self._address = store.address
        self._lease = store.lease_seconds or 30.0
        self._size = pool_size
        self._schema = schema_name()
        self._app = App(connector=PsycopgConnector())
        self._app.task(name=_CALL, queue=_QUEUE)(self._take)
        self._unsent: dict[str, Wake] = {}
        self._news = asyncio.Event()
        self._worker: Worker | None = None
        self._working: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        await super().begin()
        await self._prepare()
        self._pool = AsyncConnectionPool(
            self._address.conninfo,
            min_size=1,
            max_size=self._size,
            open=False,
            timeout=self._address.connect_settings["connect_timeout"],
            name="frontdesk-jobs",
            configure=_commit_each,
            kwargs=self._settings(),
        )
        await self._pool.open()
        await self._app.connector.open_async(self._pool)
        self.wakes.start()
        self._working = [spawn_clean(self._send()), spawn_clean(self._work())]

    def _settings(self) -> dict[str, Any]:
        settings = {name: value for name, value in self._address.settings.items() if name != "autocommit"}
        # A job that a crash of the server takes away is found by a look, so that nobody need wait for its disk.
        mine = f"-c search_path={self._schema} -c synchronous_commit=off"
        return {**settings, "options": f"{settings['options']} {mine}"}

    async def _prepare(self) -> None:
        """Makes the tables of the queue, in a schema of their own; of many processes one does it."""
        try:
            connected = await AsyncConnection.connect(self._address.conninfo, **self._address.connect_settings)
            async with connected as connection, connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
                await connection.execute(_sql(f"CREATE SCHEMA IF NOT EXISTS {self._schema}"))
                await connection.execute(_sql(f"SET LOCAL search_path = {self._schema}"))
                cursor = await connection.execute("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")
                found = await cursor.fetchone()
                if found is None or not found[0]:
                    await connection.execute(SchemaManager.get_schema())
        except psycopg.Error as error:
            log.error("the queue can't be opened: %s", type(error).__name__)
            raise StoreUnavailableError from error

    async def _work(self) -> None:
        """Takes jobs, again and again: a worker ends when its database goes away."""
        while not self.wakes.stopping:
            self._worker = Worker(
                self._app,
                queues=[_QUEUE],
                name=None,
                concurrency=sum(known.most for known in self.registered.values()) or 1,
                fetch_job_polling_interval=_POLL,
                delete_jobs="always",
                install_signal_handlers=False,
                update_heartbeat_interval=self._lease / 4,
                stalled_worker_timeout=self._lease,
            )
            try:
                await self._worker.run()
            except _AWAY as error:
                log.warning("no jobs can be taken at the moment: %s", type(error).__name__)
            if not self.wakes.stopping:
                await asyncio.sleep(_PAUSE)

    async def _take(self, *, name: str, task_id: str, payload: str) -> None:
        """A job: whatever it is about is done here, if there is room; if not, it waits here or is found by another."""
        if name not in self.registered:
            log.warning("there is no task %s here, and what it is about waits for a process that knows it", name)
            return
        try:
            wake = _woken({"name": name, "task_id": task_id, "payload": payload})
        except CodecError as error:
            log.error("a job can't be read: %s", error)
            return
        if self.wakes.wake(wake):
            await self.wakes.settled(wake.task_id)

    def halt(self) -> None:
        super().halt()
        if self._worker is not None:
            self._worker.stop()

    async def end(self, grace: float) -> None:
        if not self._working:
            return
        sending, working = self._working
        self._working = []
        left = await self.wakes.drain(grace)
        await asyncio.wait([working], timeout=_PAUSE)
        await stopped(working, within=_PAUSE)
        await stopped(sending)
        for wake in [*self._unsent.values(), *left]:
            # The others need not wait for a look of theirs.
            if not await self._defer(wake):
                break
        self._unsent.clear()
        await self._pool.close()
        self._app = App(connector=PsycopgConnector())
        self._app.task(name=_CALL, queue=_QUEUE)(self._take)

    def wake(self, wake: Wake, at: float | None) -> None:
        later = at is not None and at > self.clock.now()
        if later or self.wakes.running(wake.task_id):
            self.wakes.wake(wake, at)
        elif len(self._unsent) < MOST_KNOWN:
            self._unsent[wake.task_id] = wake
            self._news.set()

    def remind(self, wake: Wake, at: float | None) -> bool:
        # Here nobody is told: whoever looks and has room does it.
        return self.known(wake, at) or (self.wakes.has_room(wake.name) and self.wakes.wake(wake, at))

    async def _send(self) -> None:
        """Tells everybody what there is to do."""
        while True:
            self._news.clear()
            while self._unsent:
                some = [self._unsent.pop(task_id) for task_id in list(self._unsent)[: self._size]]
                await asyncio.gather(*(self._defer(wake) for wake in some))
            await self._news.wait()

    async def _defer(self, wake: Wake) -> bool:
        lock = digest(wake.task_id)
        job = self._app.configure_task(_CALL, queue=_QUEUE, lock=lock, queueing_lock=lock)
        try:
            await job.defer_async(name=wake.name, task_id=_text(wake.task_id), payload=_text(wake.payload))
        except AlreadyEnqueued:
            return True
        except _AWAY as error:
            log.warning("nobody could be told of task %s, which is found later: %s", wake.name, type(error).__name__)
            return False
        return True

    async def look(self) -> None:
        await super().look()
        try:
            stalled = await self._app.job_manager.get_stalled_jobs(queue=_QUEUE, seconds_since_heartbeat=self._lease)
            for job in stalled:
                await self._take_over(job)
        except _AWAY as error:
            log.warning("it could not be seen whether jobs are stalled: %s", type(error).__name__)

    async def _take_over(self, job: Job) -> None:
        """Ends the job of a worker that is gone, which would keep others from its task, and does it here."""
        if job.id is None:
            return
        try:
            await self._app.job_manager.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
        except ConnectorException:
            # Another process was faster.
            return
        log.warning("job %s is taken over: its worker is gone", job.id)
        await self._defer(_woken(cast("Mapping[str, str]", job.task_kwargs)))

    async def woken(self, task_id: str) -> TaskStatus | None:
        known = await super().woken(task_id)
        if known is not None:
            return known
        if task_id in self._unsent:
            return "pending"
        if not self._working:
            return None
        try:
            jobs = list(await self._app.job_manager.list_jobs_async(queue=_QUEUE, lock=digest(task_id)))
        except _AWAY as error:
            raise StoreUnavailableError from error
        return "running" if any(job.status == "doing" for job in jobs) else "pending" if jobs else None

    async def unwake(self, task_id: str) -> bool:
        unsent = self._unsent.pop(task_id, None) is not None
        known = await super().unwake(task_id) or unsent
        if not self._working:
            return known
        manager, lock = self._app.job_manager, digest(task_id)
        try:
            for job in await manager.list_jobs_async(queue=_QUEUE, queueing_lock=lock, status="todo"):
                if job.id is not None:
                    known |= await manager.cancel_job_by_id_async(job.id, delete_job=True)
        except _AWAY as error:
            raise StoreUnavailableError from error
        return known


def schema_name() -> str:
    """The schema of the queue: one for each form of its tables, so that no version finds those of another.

    Processes of two versions have two queues while one replaces the other, and find each other's work by looking.
    """
    return f"frontdesk_queue_{hashlib.sha256(SchemaManager.get_schema().encode()).hexdigest()[:12]}"


async def _commit_each(connection: "AsyncConnection[Any]") -> None:
    await connection.set_autocommit(True)


def _text(value: Any) -> str:
    # In a form that Postgres takes whatever is in it.
    return b64encode(encode(value)).decode()


def _woken(job: Mapping[str, str]) -> Wake:
    return Wake(job["name"], decode(b64decode(job["task_id"])), decode(b64decode(job["payload"])))


def _sql(text: str) -> LiteralString:
    return cast(LiteralString, text)
