"""Opens the session of a request for one turn, and closes it afterwards."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from agent_framework import Message

from frontdesk.concurrency.offload import off_loop
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.errors import NotFoundError, SessionBusyError, SessionRequiredError
from frontdesk.ids import Ids
from frontdesk.interfaces.store import HostStateStore
from frontdesk.interfaces.store_sessions import Charge
from frontdesk.loggers import runs as log
from frontdesk.models.request import AdmittedRequest, ChannelRequest, ConversationScope
from frontdesk.models.run import RunRecord
from frontdesk.models.session import ClientCall, ForkPoint, Lease, SessionName, SessionRecord
from frontdesk.sessions.items import find_conversation
from frontdesk.sessions.memory import HistoryMemory
from frontdesk.sessions.scope import SHARED, build_tracked_name
from frontdesk.sessions.session_list import find_continued_by
from frontdesk.sessions.snapshot import restore
from frontdesk.sessions.turn import Turn


class SessionLocks:
    """A fair lock for each session id."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]] | None] = {}

    def held(self, session_id: str) -> bool:
        return session_id in self._waiting

    def try_take(self, session_id: str) -> bool:
        """Take the lock if it is free. Return True on success."""
        if session_id in self._waiting:
            return False
        # Hardly any session is waited for, so the queue is made for the first waiter.
        self._waiting[session_id] = None
        return True

    async def take(self, session_id: str, wait: float | None) -> None:
        """Wait for the lock, in order of arrival, without a limit if `wait` is `None`."""
        if self.try_take(session_id):
            return
        waiter = asyncio.get_running_loop().create_future()
        queue = self._waiting[session_id]
        if queue is None:
            queue = self._waiting[session_id] = deque()
        queue.append(waiter)
        try:
            async with asyncio.timeout(wait):
                await waiter
        except BaseException as error:
            self._give_up(session_id, waiter)
            if isinstance(error, TimeoutError):
                raise SessionBusyError(retry_after=1.0) from None
            raise

    def _give_up(self, session_id: str, waiter: "asyncio.Future[None]") -> None:
        if waiter.done() and not waiter.cancelled():
            # The lock was handed over in the moment in which we stopped waiting.
            self.release(session_id)
        elif waiter in (queue := self._waiting.get(session_id) or deque()):
            # If it is not there, a release has passed over it already.
            queue.remove(waiter)

    def release(self, session_id: str) -> None:
        """Pass the lock to the next waiter."""
        queue = self._waiting[session_id]
        while queue:
            waiter = queue.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        del self._waiting[session_id]


RebuildHistory = Callable[[str, str, Charge], Awaitable[tuple[Sequence[Message], tuple[ClientCall, ...]]]]
"""Reads the messages that an owner's conversation stands for, and the calls in it that wait for an output."""

_NO_RUN = "Run to continue not found."
_INITIAL_DELAY_SECONDS = 0.01
_MAX_DELAY_SECONDS = 0.25
_MAX_CONTINUATIONS = 100


class Turns:
    """Opens and closes turns: one at a time per session, in order of arrival."""

    def __init__(
        self,
        store: HostStateStore,
        ids: Ids,
        *,
        session_wait: float,
        cancel_grace: float,
        rebuild_history: RebuildHistory,
        memory: HistoryMemory | None = None,
    ) -> None:
        self._store = store
        self._rebuild_history = rebuild_history
        self.memory = memory or HistoryMemory()
        self._ids = ids
        self._locks = SessionLocks()
        self._session_wait = session_wait
        self._cancel_grace = cancel_grace
        self._lingering: set[asyncio.Task[None]] = set()
        self._leased: dict[str, Turn] | None = None if store.lease_seconds is None else {}

    async def open(
        self,
        admitted: AdmittedRequest,
        *,
        tracked: ConversationScope | None = None,
        waits: bool = False,
        new_id: str | None = None,
    ) -> Turn:
        """Open the session of a request. Wait for it without a limit if `waits`.

        `tracked` is the scope of a channel whose sessions the host tracks. `new_id` is a fixed id for a new session.
        """
        request = admitted.request
        if request.session_mode == "disabled":
            return Turn(self._store, admitted, None, None)
        names_nothing = request.session is None and request.previous_run_id is None and tracked is None
        if names_nothing and new_id is None and request.store and request.session_mode != "required":
            # Most requests without a name begin a session of their own, and skip the look-up.
            return self._begin(admitted)
        self.check(admitted, tracked)
        name = self.get_name(admitted, tracked)
        is_named = request.previous_run_id is not None or _names_its_own(request)
        if name is None and new_id is None and request.store and not is_named:
            return self._begin(admitted)
        return await self._restore(await self._find(admitted, name, None if waits else self._session_wait, new_id))

    def _begin(self, admitted: AdmittedRequest) -> Turn:
        session_id, owner, now = self._ids.new("ses"), admitted.owner, admitted.admitted_at
        record = SessionRecord(session_id=session_id, owner=owner, key=session_id, created_at=now, updated_at=now)
        turn = self._take(admitted, record)
        turn.new = True
        return turn

    async def open_past(
        self, admitted: AdmittedRequest, session_id: str, *, tracked: ConversationScope | None = None
    ) -> Turn:
        """Open an earlier session of the request's name. Without a name, open the request's own session."""
        name = self.get_name(admitted, tracked)
        if name is None or not admitted.request.store:
            return await self.open(admitted, tracked=tracked, waits=True)
        record = fresh_session(admitted, session_id, name.value or name.conversation_id or session_id)
        return await self._restore(await self._enter(admitted, record.replace(owner=name.owner), None))

    async def _restore(self, turn: Turn) -> Turn:
        if turn.unrestored and turn.record is not None:
            try:
                turn.session = await off_loop(restore, turn.record)
            except BaseException:
                self.close(turn)
                raise
        return turn

    async def _find(
        self, admitted: AdmittedRequest, name: SessionName | None, wait: float | None, new_id: str | None
    ) -> Turn:
        request = admitted.request
        if request.previous_run_id is not None:
            if request.store and request.session is not None and request.session.key is not None:
                return await self._branch_named(admitted, request.previous_run_id, request.session.key, wait)
            return await self._continue(admitted, request.previous_run_id)
        if request.session is not None and request.session.session_id is not None:
            return await self._reopen(admitted, request.session.session_id, wait)
        if request.session is not None and request.session.conversation_id is not None:
            return await self._converse(admitted, request.session.conversation_id, wait)
        if not request.store:
            record = None if name is None else await self._store.sessions.find(name)
            # With nothing to read and nothing to store there is no session: in one that is dropped, the framework
            # would defer calls of the host's own tools to a turn that never comes.
            return Turn(self._store, admitted, None, None) if record is None else self._unkept(admitted, record)
        if name is not None:
            return await self._resume(admitted, name, wait)
        # Its caller got its id when the run was deferred, and may have used it since.
        return await self._enter(admitted, fresh_session(admitted, new_id or self._ids.new("ses")), wait)

    def get_name(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> SessionName | None:
        """Return the session name of a request, or `None` if it has none or uses a session id."""
        request = admitted.request
        if request.session_mode == "disabled" or request.previous_run_id is not None or _names_its_own(request):
            return None
        return _name(admitted, tracked)

    def new_id(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> str | None:
        """Return an id for the new session of a request, or `None` if it creates none."""
        request = admitted.request
        if request.session_mode == "disabled" or request.previous_run_id is not None or _names_its_own(request):
            return None
        return self._ids.new("ses") if _name(admitted, tracked) is None else None

    def check(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> None:
        request = admitted.request
        if request.session_mode != "required" or request.previous_run_id is not None:
            return
        if not _names_its_own(request) and _name(admitted, tracked) is None:
            raise SessionRequiredError

    async def check_previous(self, admitted: AdmittedRequest) -> None:
        """Reject a deferrable request if the run that it continues does not exist."""
        previous = admitted.request.previous_run_id
        if previous is not None and await self._store.runs.get(admitted.owner, previous) is None:
            raise NotFoundError(_NO_RUN, param="previous_run_id")

    async def open_calls(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> tuple[ClientCall, ...]:
        """Return the calls that wait for outputs in the session of a request, without opening it."""
        request, sessions = admitted.request, self._store.sessions
        if request.previous_run_id is not None:
            run = await self._store.runs.get(admitted.owner, request.previous_run_id)
            return () if run is None else run.client_calls
        if request.session is not None and request.session.session_id is not None:
            record = await sessions.get(admitted.owner, request.session.session_id)
        else:
            name = self.get_name(admitted, tracked)
            record = None if name is None else await sessions.find(name)
        return () if record is None else record.client_calls

    async def _resume(self, admitted: AdmittedRequest, name: SessionName, wait: float | None) -> Turn:
        return await self._enter(admitted, await self.locate(admitted, name), wait)

    async def locate(self, admitted: AdmittedRequest, name: SessionName) -> SessionRecord:
        """Return the session record of a name. Reserve a new one if it was never stored."""
        record = await self._store.sessions.find(name)
        if record is not None:
            session_id = record.session_id
        elif name.kind == "named" and not admitted.caller.may_name_sessions:
            raise NotFoundError("Session not found.", param="session_id")
        else:
            session_id = await self._store.sessions.reserve(name, self._ids.new("ses"))
        key = name.value or name.conversation_id or session_id
        return fresh_session(admitted, session_id, key).replace(owner=name.owner)

    async def _reopen(self, admitted: AdmittedRequest, session_id: str, wait: float | None) -> Turn:
        # A group's session is opened by its id only with the answer to a question that it has asked this owner;
        # that is checked before anything of the session is read.
        owners = (admitted.owner, SHARED) if admitted.request.approvals else (admitted.owner,)
        for owner in owners:
            record = await self._store.sessions.get(owner, session_id)
            if record is not None:
                return await self._enter(admitted, record, wait)
        raise NotFoundError("Session not found.", param="session_id")

    async def _converse(self, admitted: AdmittedRequest, conversation_id: str, wait: float | None) -> Turn:
        conversation = await find_conversation(self._store, admitted.owner, conversation_id)
        fresh = fresh_session(admitted, conversation.session_id, conversation_id)
        fresh = fresh.replace(openai_conversation_id=conversation_id)
        if admitted.request.store:
            return await self._enter(admitted, fresh, wait)
        record = await self._store.sessions.get(admitted.owner, conversation.session_id)
        turn = await self._with_conversation(self._unkept(admitted, record or fresh))
        # As in `_find`: with nothing to read there is no session.
        return turn if record is not None or turn.rebuilt_history else Turn(self._store, admitted, None, None)

    async def _with_conversation(self, turn: Turn) -> Turn:
        """Rebuild the history of a turn from its conversation, if the session's own is obsolete."""
        record = turn.record
        if record is None or record.openai_conversation_id is None:
            return turn
        # Read again, because it may have been deleted while the turn waited.
        await find_conversation(self._store, record.owner, record.openai_conversation_id)
        if record.messages == record.ignored:
            try:
                rebuilt = await self._rebuild_history(record.owner, record.openai_conversation_id, turn.charge)
            except BaseException:
                turn.release_memory()
                raise
            turn.rebuilt_history, calls = rebuilt
            turn.record = record.replace(client_calls=calls)
        return turn

    async def _enter(self, admitted: AdmittedRequest, record: SessionRecord, wait: float | None) -> Turn:
        """Wait for a session and open its state at that time. Use `record` if it was never stored."""
        session_id = record.session_id
        lease = await self._hold(session_id, wait)
        try:
            # Read under the lease: until then another process may have changed it.
            stored = await self._store.sessions.get(record.owner, session_id)
            return self._register(
                await self._with_conversation(Turn(self._store, admitted, stored or record, lease, memory=self.memory))
            )
        except BaseException:
            self._release(lease)
            raise

    async def rejoin(self, turn: Turn, home: SessionRecord) -> None:
        """Take the current state of the session that a branch has left, for the end of its run."""
        lease = await self._hold(home.session_id, None)
        try:
            stored = await self._store.sessions.get(home.owner, home.session_id)
        except BaseException:
            self._release(lease)
            raise
        if turn.outcome.is_ending():
            # It was ended meanwhile by a call that did not wait for its session.
            self._release(lease)
            return
        fresh = fresh_session(turn.admitted, home.session_id, home.key).replace(owner=home.owner)
        turn.record, turn.lease, turn.closed = stored or fresh, lease, False
        self._register(turn)

    async def announce(self, turn: Turn) -> None:
        """Store a new session before its caller learns the id, if another process may get the next request."""
        if turn.new and turn.record is not None and turn.lease is not None and self._leased is not None:
            async with self._store.transaction() as transaction:
                transaction.save_session(turn.record, turn.lease, keep=True)

    @asynccontextmanager
    async def hold(self, session_id: str) -> AsyncGenerator[Lease]:
        """Hold a session for work that is not a turn."""
        lease = await self._hold(session_id, self._session_wait)
        try:
            yield lease
        finally:
            self._release(lease)

    async def _hold(self, session_id: str, wait: float | None) -> Lease:
        until = None if wait is None else asyncio.get_running_loop().time() + wait
        await self._locks.take(session_id, wait)
        try:
            return await self._claim(session_id, until)
        except BaseException:
            self._locks.release(session_id)
            raise

    def _release(self, lease: Lease) -> None:
        self._store.sessions.release(lease)
        self._locks.release(lease.session_id)

    async def _claim(self, session_id: str, until: float | None) -> Lease:
        """Claim a session. Wait while another process holds it."""
        pause = _INITIAL_DELAY_SECONDS
        while True:
            try:
                return await self._store.sessions.claim(session_id)
            except SessionBusyError:
                if until is not None and asyncio.get_running_loop().time() + pause > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_DELAY_SECONDS)

    async def _branch_named(self, admitted: AdmittedRequest, run_id: str, key: str, wait: float | None) -> Turn:
        """Open the session of a key. Without earlier turns it starts as a branch of a run, never as the run's own."""
        name = SessionName(owner=admitted.owner, kind="named", value=key)
        if await self._store.sessions.find(name) is not None:
            return await self._resume(admitted, name, wait)
        run, parent = await self._run_to_continue(admitted, run_id)
        fresh = await self.locate(admitted, name)
        branch = self._branch(admitted, run, parent).replace(session_id=fresh.session_id, key=fresh.key)
        return await self._enter(admitted, branch, wait)

    async def _run_to_continue(self, admitted: AdmittedRequest, run_id: str) -> tuple[RunRecord, SessionRecord]:
        run = await self._store.runs.get(admitted.owner, run_id)
        if run is not None and not admitted.request.approvals:
            run = await self._latest(run)
        record = None if run is None or run.session_id is None else await self._of_run(run)
        if run is None or record is None:
            raise NotFoundError(_NO_RUN, param="previous_run_id")
        return run, record

    async def _continue(self, admitted: AdmittedRequest, previous_run_id: str) -> Turn:
        run, record = await self._run_to_continue(admitted, previous_run_id)
        if not admitted.request.store:
            return self._unkept(admitted, self._branch(admitted, run, record))
        # A run that continues a response of a conversation gets a branch: it is no turn of the conversation.
        if record.openai_conversation_id is None and self._locks.try_take(record.session_id):
            try:
                turn = await self._go_on(admitted, run, record)
            except BaseException:
                self._locks.release(record.session_id)
                raise
            if turn is not None:
                return turn
            self._locks.release(record.session_id)
        return self._take(admitted, self._branch(admitted, run, record))

    async def _latest(self, run: RunRecord) -> RunRecord:
        """Return the ended run that continued this one after others decided its approval, or this run."""
        for _ in range(_MAX_CONTINUATIONS):
            later = await find_continued_by(self._store, run)
            ended = None if later is None else await self._store.runs.get(run.owner, later)
            if ended is None or ended.status != "completed":
                break
            run = ended
        return run

    async def _go_on(self, admitted: AdmittedRequest, run: RunRecord, record: SessionRecord) -> Turn | None:
        """Open the next turn of a run's own session, unless the session has had other turns since."""
        try:
            lease = await self._store.sessions.claim(record.session_id)
        except SessionBusyError:
            return None
        # Read again under the lease, because it may have had another turn before.
        record = await self._of_run(run) or record
        if record.messages == run.messages and record.checkpoint == run.checkpoint:
            return self._register(Turn(self._store, admitted, record, lease, memory=self.memory))
        self._store.sessions.release(lease)
        return None

    def _register(self, turn: Turn) -> Turn:
        if turn.lease is not None and self._leased is not None:
            self._leased[turn.lease.session_id] = turn
        return turn

    def _unkept(self, admitted: AdmittedRequest, record: SessionRecord) -> Turn:
        """Return a turn that is not stored. It needs no lock, because nothing is written."""
        turn = Turn(self._store, admitted, record, None, memory=self.memory)
        turn.closed = True
        return turn

    async def _of_run(self, run: RunRecord) -> SessionRecord | None:
        return None if run.session_id is None else await self._store.sessions.get(run.owner, run.session_id)

    def _take(self, admitted: AdmittedRequest, record: SessionRecord) -> Turn:
        session_id = record.session_id
        self._locks.try_take(session_id)
        try:
            lease = self._store.sessions.begin(record.owner, session_id)
            turn = Turn(self._store, admitted, record, lease, memory=self.memory)
            return turn if self._leased is None else self._register(turn)
        except BaseException:
            self._locks.release(session_id)
            raise

    def _branch(self, admitted: AdmittedRequest, run: RunRecord, parent: SessionRecord) -> SessionRecord:
        return fresh_session(admitted, self._ids.new("ses")).replace(
            state=run.state or {},
            messages=run.messages,
            ignored=parent.count_ignored(run.messages),
            client_calls=run.client_calls,
            checkpoint=run.checkpoint,
            shared_state=run.shared_state,
            parent=ForkPoint(session_id=parent.session_id, messages=run.messages),
        )

    async def rotate(self, name: SessionName) -> str:
        """Point a name at a new session. The old session and its history stay."""
        session_id = self._ids.new("ses")
        async with self._store.transaction() as transaction:
            transaction.name_session(name, session_id)
        return session_id

    def close(self, turn: Turn) -> None:
        """Close a turn. While threads of its run still work, hold its session for up to `cancel_grace`."""
        if turn.release is not None:
            turn.release_memory()
        if turn.record is None or turn.closed:
            return
        turn.closed = True
        session_id = turn.record.session_id
        # Threads of a branch do not touch the session that the branch has left.
        if turn.parent_session is not None or not turn.is_busy():
            self._free(turn, session_id)
            return
        self.spawn(self._linger(turn, session_id))

    async def expel(self, turn: Turn) -> None:
        """Revoke the session of a turn that does not end. Its later writes are rejected."""
        turn.release_memory()
        if turn.record is None or turn.closed:
            return
        turn.closed = True
        # If another process has claimed it, it is taken away already.
        with suppress(SessionBusyError):
            self._store.sessions.release(await self._store.sessions.claim(turn.record.session_id, force=True))
        self._free(turn, turn.record.session_id)
        log.warning("run did not end after its cancellation, session released: run_id=%s", turn.admitted.run_id)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = spawn_clean(work)
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)

    async def _linger(self, turn: Turn, session_id: str) -> None:
        if not await turn.work.wait(self._cancel_grace):
            log.warning(
                "run still active after its end: run_id=%s seconds=%s", turn.admitted.run_id, self._cancel_grace
            )
        self._free(turn, session_id)

    def _free(self, turn: Turn, session_id: str) -> None:
        if self._leased is not None:
            self._leased.pop(session_id, None)
        if turn.lease is not None:
            self._store.sessions.release(turn.lease)
        self._locks.release(session_id)

    @property
    def leased(self) -> Sequence[Turn]:
        return () if self._leased is None else list(self._leased.values())


def fresh_session(admitted: AdmittedRequest, session_id: str, key: str | None = None) -> SessionRecord:
    """Create the record of a session without turns. Without a key, its id is its name."""
    now = admitted.admitted_at
    return SessionRecord(
        session_id=session_id,
        owner=admitted.owner,
        key=session_id if key is None else key,
        created_at=now,
        updated_at=now,
    )


def _names_its_own(request: ChannelRequest) -> bool:
    session = request.session
    return session is not None and (session.session_id is not None or session.conversation_id is not None)


def _name(admitted: AdmittedRequest, tracked: ConversationScope | None) -> SessionName | None:
    request, session = admitted.request, admitted.request.session
    if session is not None and session.key is not None:
        return SessionName(owner=admitted.owner, kind="named", value=session.key)
    if tracked is not None or (session is not None and session.isolation_key is not None):
        return build_tracked_name(
            tracked or "per_user",
            owner=admitted.owner,
            channel=request.channel,
            conversation_id=request.conversation_id,
            group=request.group,
        )
    return None
