"""Opens the session of a request for one turn, and closes it again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from agent_framework import Message

from frontdesk.abc.store import HostStateStore
from frontdesk.data.request import AdmittedRequest, ChannelRequest, ConversationScope
from frontdesk.data.run import RunRecord
from frontdesk.data.session import ClientCall, ForkPoint, Lease, SessionName, SessionRecord
from frontdesk.errors import NotFoundError, SessionBusyError, SessionRequiredError
from frontdesk.ids import Ids
from frontdesk.kit.aio.large import off_loop
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.lineage import continued_by
from frontdesk.loggers import runs as log
from frontdesk.sessions.items import find_conversation
from frontdesk.sessions.locks import SessionLocks
from frontdesk.sessions.scope import SHARED, tracked_name
from frontdesk.sessions.snapshot import restore
from frontdesk.sessions.turn import Turn

RebuildHistory = Callable[[str, str], Awaitable[tuple[Sequence[Message], tuple[ClientCall, ...]]]]
"""Reads the messages that an owner's conversation stands for, and the calls in it that wait for an output."""

_NO_RUN = "There is no such run to continue."
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.25
_MOST_CONTINUATIONS = 100


class Turns:
    """Opens and closes turns: in one session, one at a time and in order of arrival."""

    def __init__(
        self,
        store: HostStateStore,
        ids: Ids,
        *,
        session_wait: float,
        cancel_grace: float,
        rebuild_history: RebuildHistory,
    ) -> None:
        self._store = store
        self._rebuild_history = rebuild_history
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
        """Open the session that a request belongs to; wait for it without a limit if `waits`.

        `tracked` is the scope of a channel whose sessions the host keeps track of; `new_id` is the id of a new session,
        if it has to be a certain one.
        """
        request = admitted.request
        if request.session_mode == "disabled":
            return Turn(self._store, admitted, None, None)
        self.check(admitted, tracked)
        name = self.name_of(admitted, tracked)
        is_named = request.previous_run_id is not None or _names_its_own(request)
        if name is None and new_id is None and request.store and not is_named:
            turn = self._take(admitted, fresh_session(admitted, self._ids.new("ses")))
            turn.new = True
            return turn
        return await self._restored(await self._find(admitted, name, None if waits else self._session_wait, new_id))

    async def open_past(
        self, admitted: AdmittedRequest, session_id: str, *, tracked: ConversationScope | None = None
    ) -> Turn:
        """Open the session that the name of a request stood for before; without a name, the request's own."""
        name = self.name_of(admitted, tracked)
        if name is None or not admitted.request.store:
            return await self.open(admitted, tracked=tracked, waits=True)
        record = fresh_session(admitted, session_id, name.value or name.conversation_id or session_id)
        return await self._restored(await self._enter(admitted, record.replace(owner=name.owner), None))

    async def _restored(self, turn: Turn) -> Turn:
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
        """Open a turn in a session that exists, or that has a name."""
        request = admitted.request
        if request.previous_run_id is not None:
            if request.store and request.session is not None and request.session.key is not None:
                return await self._branch_named(admitted, request.previous_run_id, request.session.key, wait)
            return await self._continue(admitted, request.previous_run_id)
        if request.session is not None and request.session.session_id is not None:
            return await self._reopen(admitted, request.session.session_id, wait)
        if request.session is not None and request.session.openai_conversation_id is not None:
            return await self._converse(admitted, request.session.openai_conversation_id, wait)
        if not request.store:
            record = None if name is None else await self._store.sessions.find(name)
            # With nothing to read and nothing to store there is no session: in one that is dropped, the framework
            # would defer calls of the host's own tools to a turn that never comes.
            return Turn(self._store, admitted, None, None) if record is None else self._unkept(admitted, record)
        if name is not None:
            return await self._resume(admitted, name, wait)
        # Its caller got its id when the run was deferred, and may have used it since.
        return await self._enter(admitted, fresh_session(admitted, new_id or self._ids.new("ses")), wait)

    def name_of(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> SessionName | None:
        """Return the name of the session that a request belongs to; `None` if it has none, or names it by an id."""
        request = admitted.request
        if request.session_mode == "disabled" or request.previous_run_id is not None or _names_its_own(request):
            return None
        return _name(admitted, tracked)

    def new_id(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> str | None:
        """Return an id for the new session of a request; `None` if it makes no new one."""
        request = admitted.request
        if request.session_mode == "disabled" or request.previous_run_id is not None or _names_its_own(request):
            return None
        return self._ids.new("ses") if _name(admitted, tracked) is None else None

    def check(self, admitted: AdmittedRequest, tracked: ConversationScope | None) -> None:
        """Refuse a request that needs a session and names none."""
        request = admitted.request
        if request.session_mode != "required" or request.previous_run_id is not None:
            return
        if not _names_its_own(request) and _name(admitted, tracked) is None:
            raise SessionRequiredError

    async def check_previous(self, admitted: AdmittedRequest) -> None:
        """Refuse a request to be deferred if the run that it continues does not exist."""
        previous = admitted.request.previous_run_id
        if previous is not None and await self._store.runs.get(admitted.owner, previous) is None:
            raise NotFoundError(_NO_RUN, param="previous_run_id")

    async def _resume(self, admitted: AdmittedRequest, name: SessionName, wait: float | None) -> Turn:
        return await self._enter(admitted, await self.locate(admitted, name), wait)

    async def locate(self, admitted: AdmittedRequest, name: SessionName) -> SessionRecord:
        """Find the session of a name or reserve one, and return the record it has if it was never stored."""
        record = await self._store.sessions.find(name)
        if record is not None:
            session_id = record.session_id
        elif name.kind == "named" and not admitted.caller.may_name_sessions:
            raise NotFoundError("There is no such session.", param="session_id")
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
        raise NotFoundError("There is no such session.", param="session_id")

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
        """Rebuild the history of a turn from its conversation, if the session's own no longer counts."""
        record = turn.record
        if record is None or record.openai_conversation_id is None:
            return turn
        # Read again, because it may have been deleted while the turn waited.
        await find_conversation(self._store, record.owner, record.openai_conversation_id)
        if record.messages == record.ignored:
            turn.rebuilt_history, calls = await self._rebuild_history(record.owner, record.openai_conversation_id)
            turn.record = record.replace(client_calls=calls)
        return turn

    async def _enter(self, admitted: AdmittedRequest, record: SessionRecord, wait: float | None) -> Turn:
        """Wait for a session and open it as it is then; use `record` if it was never stored."""
        session_id = record.session_id
        lease = await self._hold(session_id, wait)
        try:
            # Read under the lease: until then another process may have changed it.
            stored = await self._store.sessions.get(record.owner, session_id)
            return self._opened(await self._with_conversation(Turn(self._store, admitted, stored or record, lease)))
        except BaseException:
            self._release(lease)
            raise

    async def rejoin(self, turn: Turn, home: SessionRecord) -> None:
        """Take the session that a branch has left, as it is now, for the end of its run."""
        lease = await self._hold(home.session_id, None)
        try:
            stored = await self._store.sessions.get(home.owner, home.session_id)
        except BaseException:
            self._release(lease)
            raise
        if turn.is_ending():
            # It was ended meanwhile by a call that did not wait for its session.
            self._release(lease)
            return
        fresh = fresh_session(turn.admitted, home.session_id, home.key).replace(owner=home.owner)
        turn.record, turn.lease, turn.closed = stored or fresh, lease, False
        self._opened(turn)

    async def announce(self, turn: Turn) -> None:
        """Store a new session before its caller learns its id, where another process may get the next request."""
        if turn.new and turn.record is not None and turn.lease is not None and self._leased is not None:
            async with self._store.transaction() as transaction:
                transaction.save_session(turn.record, turn.lease, keep=True)

    @asynccontextmanager
    async def held(self, session_id: str) -> AsyncGenerator[Lease]:
        """Hold a session for work that is not a turn, and release it again."""
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
        """Claim a session, and wait while another process holds it."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._store.sessions.claim(session_id)
            except SessionBusyError:
                if until is not None and asyncio.get_running_loop().time() + pause > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _branch_named(self, admitted: AdmittedRequest, run_id: str, key: str, wait: float | None) -> Turn:
        """Open the session of a key; one that has had no turn begins as a branch of a run, and is never its own."""
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
        """Return the run that went on with a run after others decided its question, once it has ended; or the run."""
        for _ in range(_MOST_CONTINUATIONS):
            later = await continued_by(self._store, run)
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
            return self._opened(Turn(self._store, admitted, record, lease))
        self._store.sessions.release(lease)
        return None

    def _opened(self, turn: Turn) -> Turn:
        if turn.lease is not None and self._leased is not None:
            self._leased[turn.lease.session_id] = turn
        return turn

    def _unkept(self, admitted: AdmittedRequest, record: SessionRecord) -> Turn:
        """Return a turn that is not stored: it needs no lock, because nothing of it is written."""
        turn = Turn(self._store, admitted, record, None)
        turn.closed = True
        return turn

    async def _of_run(self, run: RunRecord) -> SessionRecord | None:
        return None if run.session_id is None else await self._store.sessions.get(run.owner, run.session_id)

    def _take(self, admitted: AdmittedRequest, record: SessionRecord) -> Turn:
        session_id = record.session_id
        self._locks.try_take(session_id)
        try:
            lease = self._store.sessions.begin(record.owner, session_id)
            return self._opened(Turn(self._store, admitted, record, lease))
        except BaseException:
            self._locks.release(session_id)
            raise

    def _branch(self, admitted: AdmittedRequest, run: RunRecord, parent: SessionRecord) -> SessionRecord:
        return fresh_session(admitted, self._ids.new("ses")).replace(
            state=run.state or {},
            messages=run.messages,
            ignored=parent.ignored_at(run.messages),
            client_calls=run.client_calls,
            checkpoint=run.checkpoint,
            parent=ForkPoint(session_id=parent.session_id, messages=run.messages),
        )

    async def rotate(self, name: SessionName) -> str:
        """Point a name at a new session; the old one and its history stay."""
        session_id = self._ids.new("ses")
        async with self._store.transaction() as transaction:
            transaction.name_session(name, session_id)
        return session_id

    def close(self, turn: Turn) -> None:
        """Close a turn; while threads of its run are still at work, hold its session for up to `cancel_grace`."""
        if turn.record is None or turn.closed:
            return
        turn.closed = True
        session_id = turn.record.session_id
        if not turn.is_busy() or turn.home is not None:
            # Threads of a branch do not touch the session that the branch has left.
            self._free(turn, session_id)
            return
        self.spawn(self._linger(turn, session_id))

    async def expel(self, turn: Turn) -> None:
        """Take the session away from a turn that does not end; its later writes are refused."""
        if turn.record is None or turn.closed:
            return
        turn.closed = True
        # If another process has claimed it, it is taken away already.
        with suppress(SessionBusyError):
            self._store.sessions.release(await self._store.sessions.claim(turn.record.session_id, force=True))
        self._free(turn, turn.record.session_id)
        log.warning("run %s did not end when it was cancelled; its session was released", turn.admitted.run_id)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in a task of its own."""
        task = spawn_clean(work)
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)

    async def _linger(self, turn: Turn, session_id: str) -> None:
        if not await turn.work.wait(self._cancel_grace):
            log.warning("run %s still works %s s after its end", turn.admitted.run_id, self._cancel_grace)
        self._free(turn, session_id)

    def _free(self, turn: Turn, session_id: str) -> None:
        if self._leased is not None:
            self._leased.pop(session_id, None)
        if turn.lease is not None:
            self._store.sessions.release(turn.lease)
        self._locks.release(session_id)

    @property
    def leased(self) -> Sequence[Turn]:
        """Return the open turns whose leases have to be renewed."""
        return () if self._leased is None else list(self._leased.values())


def fresh_session(admitted: AdmittedRequest, session_id: str, key: str | None = None) -> SessionRecord:
    """Make the record of a session that has no turn yet; without a key its id is its name."""
    now = admitted.admitted_at
    return SessionRecord(
        session_id=session_id,
        owner=admitted.owner,
        key=session_id if key is None else key,
        created_at=now,
        updated_at=now,
    )


def _names_its_own(request: ChannelRequest) -> bool:
    """Tell whether a request names its session or its conversation by an id."""
    session = request.session
    return session is not None and (session.session_id is not None or session.openai_conversation_id is not None)


def _name(admitted: AdmittedRequest, tracked: ConversationScope | None) -> SessionName | None:
    request, session = admitted.request, admitted.request.session
    if session is not None and session.key is not None:
        return SessionName(owner=admitted.owner, kind="named", value=session.key)
    if tracked is not None or (session is not None and session.isolation_key is not None):
        return tracked_name(
            tracked or "per_user",
            owner=admitted.owner,
            channel=request.channel,
            conversation_id=request.conversation_id,
            group=request.group,
        )
    return None
