"""Runs tasks on many machines, woken by Procrastinate jobs in the Postgres database of the store.

The source of truth are rows of the outbox, the inbox and stored tasks. A job is only a wake-up, deferred after the
commit. A lost or stalled job only costs time, because every process sweeps for unclaimed work. So jobs are deleted when
they end, and retries are implemented here.
"""

import asyncio
import hashlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, LiteralString, Protocol, cast

from frontdesk.errors.base import install_hint

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
    raise ImportError(f"ProcrastinateTaskRunner needs Procrastinate: {install_hint('postgres')}") from error

from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import ChannelConfigurationError, CodecError, StoreUnavailableError
from frontdesk.identifiers import digest
from frontdesk.interfaces.runner import TaskStatus
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import tasks as log
from frontdesk.runners.base import MAX_KNOWN, TaskRunner
from frontdesk.runners.wakes import Wake
from frontdesk.serialization.codec import decode, encode

_AWAY = (ProcrastinateException, psycopg.Error, PoolTimeout, OSError)
_QUEUE = "frontdesk"
_CALL = "frontdesk.wake"
_POLL = 1.0
_POLL_INTERVAL_SECONDS = 1.0
_MAX_CONCURRENT = 4
_MAKING = 0x66726F6E75
"""The number of the advisory lock under which the tables are created."""


class PostgresAddress(Protocol):
    conninfo: str
    connect_settings: dict[str, Any]
    settings: dict[str, Any]


class PostgresStore(HostStateStore, Protocol):
    @property
    def address(self) -> PostgresAddress: ...


class ProcrastinateTaskRunner(TaskRunner):
    """Runs a task on any process with free capacity, whichever process scheduled it."""

    in_process = False

    def __init__(self, store: PostgresStore, *, pool_size: int = _MAX_CONCURRENT, clock: Clock | None = None) -> None:
        """Use the database of a store, with `pool_size` connections for jobs and one for listening."""
        if not hasattr(store, "address"):
            raise ChannelConfigurationError(
                f"runner: ProcrastinateTaskRunner needs a PostgresStateStore, got {type(store).__name__}; pass one to "
                "both the host and the runner, or leave out runner= to run tasks in the process"
            )
        super().__init__(store, clock=clock)
        self._address = store.address
        self._lease = store.lease_seconds or 30.0
        self._size = pool_size
        self._schema = schema_name()
        self._app = App(connector=PsycopgConnector())
        self._app.task(name=_CALL, queue=_QUEUE)(self._take)
        self._unsent: dict[str, Wake] = {}
        self._wakeup = asyncio.Event()
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
        # The sweep replaces a job that a crash of the server loses, so jobs need not wait for the disk.
        mine = f"-c search_path={self._schema} -c synchronous_commit=off"
        return {**settings, "options": f"{settings['options']} {mine}"}

    async def _prepare(self) -> None:
        """Create the queue's tables in their own schema. Only one of several processes does it."""
        try:
            connected = await AsyncConnection.connect(self._address.conninfo, **self._address.connect_settings)
            async with connected as connection, connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
                await connection.execute(_sql(f"CREATE SCHEMA IF NOT EXISTS {self._schema}"))
                await connection.execute(_sql(f"SET LOCAL search_path = {self._schema}"))
                cursor = await connection.execute("SELECT to_regclass('procrastinate_jobs') IS NOT NULL")
                row = await cursor.fetchone()
                if row is None or not row[0]:
                    await connection.execute(SchemaManager.get_schema())
        except psycopg.Error as error:
            log.error("failed to open the queue: %s", type(error).__name__)
            raise StoreUnavailableError from error

    async def _work(self) -> None:
        """Run a worker, and restart it when it ends because the database is unavailable."""
        while not self.wakes.stopping:
            self._worker = Worker(
                self._app,
                queues=[_QUEUE],
                name=None,
                concurrency=sum(registered.most for registered in self.registered.values()) or 1,
                fetch_job_polling_interval=_POLL,
                delete_jobs="always",
                install_signal_handlers=False,
                update_heartbeat_interval=self._lease / 4,
                stalled_worker_timeout=self._lease,
            )
            try:
                await self._worker.run()
            except _AWAY as error:
                log.warning("failed to fetch jobs, retrying: %s", type(error).__name__)
            if not self.wakes.stopping:
                await asyncio.sleep(_POLL_INTERVAL_SECONDS)

    async def _take(self, *, name: str, task_id: str, payload: str) -> None:
        """Run a job's task, or keep it waiting for capacity. Beyond that limit, a sweep finds it."""
        if name not in self.registered:
            log.warning("unknown task, leaving it to another process: name=%s", name)
            return
        try:
            wake = _parse_wake({"name": name, "task_id": task_id, "payload": payload})
        except CodecError as error:
            log.error("job cannot be decoded: %s", error)
            return
        if self.wakes.wake(wake):
            await self.wakes.wait_for(wake.task_id)

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
        await asyncio.wait([working], timeout=_POLL_INTERVAL_SECONDS)
        await cancel_and_wait(working, within=_POLL_INTERVAL_SECONDS)
        await cancel_and_wait(sending)
        for wake in [*self._unsent.values(), *left]:
            # So that other processes need not wait for their next sweep.
            if not await self._defer(wake):
                break
        self._unsent.clear()
        await self._pool.close()
        self._app = App(connector=PsycopgConnector())
        self._app.task(name=_CALL, queue=_QUEUE)(self._take)

    def wake(self, wake: Wake, at: float | None) -> None:
        later = at is not None and at > self.clock.now()
        if later or self.wakes.find_running(wake.task_id):
            self.wakes.wake(wake, at)
        elif len(self._unsent) < MAX_KNOWN:
            self._unsent[wake.task_id] = wake
            self._wakeup.set()

    def remind(self, wake: Wake, at: float | None) -> bool:
        # Without a job: each process that sweeps and has room runs the task.
        return self.is_known(wake, at) or (self.wakes.has_capacity(wake) and self.wakes.wake(wake, at))

    async def _send(self) -> None:
        """Defer a job for each wake-up."""
        while True:
            self._wakeup.clear()
            while self._unsent:
                batch = [self._unsent.pop(task_id) for task_id in list(self._unsent)[: self._size]]
                await asyncio.gather(*(self._defer(wake) for wake in batch))
            await self._wakeup.wait()

    async def _defer(self, wake: Wake) -> bool:
        lock = digest(wake.task_id)
        job = self._app.configure_task(_CALL, queue=_QUEUE, lock=lock, queueing_lock=lock)
        try:
            await job.defer_async(name=wake.name, task_id=_text(wake.task_id), payload=_text(wake.payload))
        except AlreadyEnqueued:
            return True
        except _AWAY as error:
            log.warning("failed to defer a job: task_id=%s: %s", wake.name, type(error).__name__)
            return False
        return True

    async def look(self) -> None:
        await super().look()
        try:
            stalled = await self._app.job_manager.get_stalled_jobs(queue=_QUEUE, seconds_since_heartbeat=self._lease)
            for job in stalled:
                await self._take_over(job)
        except _AWAY as error:
            log.warning("failed to look up stalled jobs: %s", type(error).__name__)

    async def _take_over(self, job: Job) -> None:
        """Delete the job of a dead worker, which would block its task, and defer it again."""
        if job.id is None:
            return
        try:
            await self._app.job_manager.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
        except ConnectorException:
            # Another process was faster.
            return
        log.warning("job taken over from a lost worker: job_id=%s", job.id)
        await self._defer(_parse_wake(cast("Mapping[str, str]", job.task_kwargs)))

    async def wake_status(self, task_id: str) -> TaskStatus | None:
        status = await super().wake_status(task_id)
        if status is not None:
            return status
        if task_id in self._unsent:
            return "pending"
        if not self._working:
            return None
        try:
            jobs = list(await self._app.job_manager.list_jobs_async(queue=_QUEUE, lock=digest(task_id)))
        except _AWAY as error:
            raise StoreUnavailableError from error
        return "running" if any(job.status == "doing" for job in jobs) else "pending" if jobs else None

    async def cancel_wake(self, task_id: str) -> bool:
        unsent = self._unsent.pop(task_id, None) is not None
        was_known = await super().cancel_wake(task_id) or unsent
        if not self._working:
            return was_known
        manager, lock = self._app.job_manager, digest(task_id)
        try:
            for job in await manager.list_jobs_async(queue=_QUEUE, queueing_lock=lock, status="todo"):
                if job.id is not None:
                    was_known |= await manager.cancel_job_by_id_async(job.id, delete_job=True)
        except _AWAY as error:
            raise StoreUnavailableError from error
        return was_known


def schema_name() -> str:
    """Return the schema of the queue. Each table format has its own, so that versions do not share tables.

    During an upgrade there are two queues, and each finds the other's work by its sweep.
    """
    return f"frontdesk_queue_{hashlib.sha256(SchemaManager.get_schema().encode()).hexdigest()[:12]}"


async def _commit_each(connection: "AsyncConnection[Any]") -> None:
    await connection.set_autocommit(True)


def _text(value: Any) -> str:
    # Base64, because Postgres does not take every text.
    return b64encode(encode(value)).decode()


def _parse_wake(job: Mapping[str, str]) -> Wake:
    return Wake(job["name"], decode(b64decode(job["task_id"])), decode(b64decode(job["payload"])))


def _sql(text: str) -> LiteralString:
    return cast(LiteralString, text)
