"""The state store on a SQL database."""

from collections.abc import Callable
from pathlib import Path

from frontdesk.abc.store import OnChange
from frontdesk.clock import Clock
from frontdesk.data.expiry import Expiry
from frontdesk.data.file import FileLimits
from frontdesk.stores.sql.approvals import SqlApprovals, SqlAudit
from frontdesk.stores.sql.background import LOCAL, LeaseSql, SqlBackground
from frontdesk.stores.sql.channel_values import SqlChannelValues
from frontdesk.stores.sql.conversation_aliases import SqlConversationAliases
from frontdesk.stores.sql.conversations import SqlConversations
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.files import SqlFiles
from frontdesk.stores.sql.inbox import SqlInbox
from frontdesk.stores.sql.leaderships import SqlLeaderships
from frontdesk.stores.sql.ledger import SqlLedger
from frontdesk.stores.sql.live import SqlLiveAnswers
from frontdesk.stores.sql.nonces import SqlNonces
from frontdesk.stores.sql.outbox import SqlOutbox
from frontdesk.stores.sql.people import SqlIdentities
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.runs import SqlCheckpoints, SqlRuns
from frontdesk.stores.sql.sessions import Leases, SqlSessions
from frontdesk.stores.sql.sweep import Sweep
from frontdesk.stores.sql.tasks import SqlTasks
from frontdesk.stores.sql.transaction import SqlTransaction
from frontdesk.stores.sql.upkeep import Upkeep


class SqlStateStore:
    """All drawers over one database."""

    durable = True
    lease_seconds: float | None = None
    directory: Path | None = None

    def __init__(
        self,
        engine: Engine,
        leases: Leases,
        *,
        expiry: Expiry,
        clock: Clock,
        lease_sql: LeaseSql = LOCAL,
        refuse: Callable[[], None] | None = None,
        identities_fresh_for: float | None = None,
        file_limits: FileLimits | None = None,
    ) -> None:
        """Put the drawers together; `refuse` is called if another process migrates to a schema that is too new."""
        self._engine = engine
        self._clock = clock
        self._expiry = expiry
        self._lease_sql = lease_sql
        self._records = Records(engine, clock)
        self._upkeep = Upkeep(engine, refuse)
        self._sweep = Sweep(engine, expiry, clock, leases.taken)
        self.sessions = SqlSessions(engine, self._records, leases)
        self.identities = SqlIdentities(
            engine, self._records, clock, fresh_for=identities_fresh_for, seen_every=expiry.seen_every
        )
        self.runs = SqlRuns(engine, self._records)
        self.background = SqlBackground(engine, self._records, lease_sql)
        self.approvals = SqlApprovals(engine, self._records)
        self.audit = SqlAudit(engine)
        self.inbox = SqlInbox(engine, self._records, lease_sql)
        self.outbox = SqlOutbox(engine, self._records, lease_sql)
        self.live = SqlLiveAnswers(engine, self._records)
        self.tasks = SqlTasks(engine, self._records, lease_sql)
        self.conversations = SqlConversations(engine, self._records)
        self.checkpoints = SqlCheckpoints(engine)
        self.nonces = SqlNonces(engine)
        self.leaderships = SqlLeaderships(engine, lease_sql)
        self.channel_values = SqlChannelValues(engine)
        self.files = SqlFiles(engine, clock, (file_limits or FileLimits()).checked())
        self.conversation_aliases = SqlConversationAliases(engine)
        self.ledger = SqlLedger(engine)

    @property
    def set_aside(self) -> int:
        return self._records.set_aside

    @property
    def unreadable(self) -> int:
        return self._records.unreadable

    def transaction(self) -> SqlTransaction:
        return SqlTransaction(
            self._engine,
            self._clock,
            self._lease_sql,
            self.identities.forget,
            self.files,
            grants_for=self._expiry.grants,
        )

    def listen(self, on_change: OnChange) -> None:
        """Do nothing: no other process writes here."""

    async def open(self) -> None:
        await self._engine.open()
        self._sweep.start()
        self._upkeep.start()

    async def close(self) -> None:
        await self._upkeep.stop()
        await self._sweep.stop()
        await self._engine.close()
