"""Chains of runs: a run, the runs that continue it, and the questions between them."""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from frontdesk.approvals.answers import AbandonedSession, FindSession, OpenQuestions
from frontdesk.approvals.decisions import Decisions
from frontdesk.chat.i18n.en import ENGLISH
from frontdesk.clock import Clock
from frontdesk.delivery.watchers import RunWatchers
from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.errors.requests import NO_RUN
from frontdesk.framework.workflow_requests import REQUEST_INFO
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.result import HostedStreamResult
from frontdesk.models.run import FINAL, RunChain, RunPosition, RunRecord
from frontdesk.models.session import SessionRecord
from frontdesk.runs.background.dispatcher import BackgroundDispatcher
from frontdesk.runs.background.followers import Show
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.record import CANCELLED
from frontdesk.sessions.scope import SHARED
from frontdesk.sessions.session_list import list_questions

MAX_ROUNDS = 20
"""The number of times that a cancellation looks for the next run of a chain that goes on meanwhile."""


MAX_CURSOR_LENGTH = 2048
MAX_RUNS_OF_CHAIN = 200
"""The number of runs of a chain that are listed, besides its newest."""


def write_run_cursor(position: RunPosition) -> str:
    return urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def read_run_cursor(cursor: str) -> RunPosition:
    """Decode the cursor of a list of runs. It has no owner: another caller's cursor reads the caller's own list."""
    wrong = InvalidRequestError("Invalid cursor for runs. Use the cursor of the previous page.", param="cursor")
    if len(cursor) > MAX_CURSOR_LENGTH or not cursor.isascii():
        raise wrong
    try:
        end, run_id = msgspec.json.decode(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=tuple[float, str])
    except ValueError:
        raise wrong from None
    # Postgres can't compare with a text that has a NUL.
    if "\0" in run_id:
        raise wrong
    return end, run_id


class RunChains:
    """Finds, follows and cancels the runs of an owner and their chains."""

    def __init__(
        self,
        *,
        store: HostStateStore,
        clock: Clock,
        active: ActiveRuns,
        background: BackgroundDispatcher,
        decisions: Decisions,
        open_questions: Callable[[FindSession, ChannelIdentity], OpenQuestions],
        cancel_grace: float,
        watchers: RunWatchers,
    ) -> None:
        """Wait at most `cancel_grace` seconds for the run of a decision, when its chain is cancelled."""
        self._store, self._clock, self._active, self._background = store, clock, active, background
        self._decisions, self._open_questions, self._cancel_grace = decisions, open_questions, cancel_grace
        self._followers, self.watchers = background.followers, watchers

    async def find_run(self, owner: str, run_id: str) -> RunRecord | None:
        """Return an active or stored run of an owner."""
        active = self._active
        before = active.get(owner, run_id)
        if before is not None and self._store.lease_seconds is None:
            return before.record
        # If this process stood still, another may have ended a run that is still listed as active here.
        stored = await self._store.runs.get(owner, run_id)
        if before is None or (stored is not None and stored.status in FINAL):
            return stored
        # A run that has ended here meanwhile is stored by now.
        return before.record if active.get(owner, run_id) is before else await self._store.runs.get(owner, run_id)

    async def find(self, owner: str, run_id: str) -> RunChain | None:
        """Return the chain of a run. If the first run has expired, the given one is returned as the root."""
        run = await self.find_run(owner, run_id)
        if run is None:
            return None
        chain_id = run.chain_id
        root = run if run.run_id == chain_id else await self.find_run(owner, chain_id) or run
        # A run of this process may not be stored before its end.
        active = self._active.of_chain(owner, chain_id)
        newest = active.record if active is not None else await self._store.runs.newest_of_chain(owner, chain_id)
        questions = await self._store.approvals.of_chain(owner, chain_id)
        return RunChain(root=root, newest=newest or root, questions=tuple(questions))

    async def list_runs(self, chain: RunChain) -> Sequence[RunRecord]:
        """Return the runs of a chain in their order, at most `MAX_RUNS_OF_CHAIN` from the first one and the newest."""
        runs, newest = [chain.root], chain.newest
        while runs[-1].run_id != newest.run_id and len(runs) < MAX_RUNS_OF_CHAIN:
            following = await self._store.runs.next_of_chain(newest.owner, newest.chain_id, runs[-1])
            if following is None or following.run_id == newest.run_id:
                break
            runs.append(following)
        return runs if runs[-1].run_id == newest.run_id else [*runs, newest]

    def follow(self, run: RunRecord, show: Show) -> HostedStreamResult[Any]:
        """Return the stream of a run: its stored updates, or its whole output once it has ended."""
        if run.background and run.stream:
            return self._followers.stream(run, show)
        return self._followers.replay(run, show, self._wait_for_end)

    async def _wait_for_end(self, run: RunRecord) -> RunRecord:
        active = self._active.get(run.owner, run.run_id)
        if active is None or active.record.background:
            return await self._followers.wait_for_end(run)
        # It may be stored only when it has ended.
        ended = await active.wait() or await self._store.runs.get(run.owner, run.run_id)
        if ended is None:
            raise NotFoundError(NO_RUN)
        return ended

    async def follow_chain(
        self, run: RunRecord, show: Show, *, waits: bool
    ) -> AsyncGenerator[HostedStreamResult[Any], None]:
        """Yield the stream of a run, then those of the runs that continue it.

        With `waits`, wait while a question of the chain is open. Each stream must be read to its end.
        """
        following: RunRecord | None = run
        while following is not None:
            yield self.follow(following, show)
            following = await self._next(following, waits=waits)

    async def _next(self, before: RunRecord, *, waits: bool) -> RunRecord | None:
        """Return the run that continues a chain after a run that has ended, or None if the chain has ended."""
        owner, chain_id = before.owner, before.chain_id
        async with self._followers.signals.subscribe(chain_id) as signal:
            while True:
                signal.clear()
                ended = await self.find_run(owner, before.run_id)
                chain = None if ended is None else await self.find(owner, before.run_id)
                if ended is None or chain is None or ended.status not in FINAL:
                    return ended
                following = await self._store.runs.next_of_chain(owner, chain_id, ended)
                if following is not None or chain.newest.run_id != before.run_id:
                    return following or chain.newest
                if not (chain.status == "queued" or (waits and chain.status == "input_required")):
                    return None
                await signal.wait()

    async def cancel(self, owner: str, run_id: str, identity: ChannelIdentity) -> RunRecord | None:
        """Cancel a run, and what waits for an answer to it. Return None if there is no such run."""
        active = self._active.get(owner, run_id)
        if active is not None and not active.record.background:
            await self._active.cancel(active)
        elif active is not None or await self._store.runs.get(owner, run_id) is not None:
            await self._background.cancel(owner, run_id)
        record = await self.find_run(owner, run_id)
        if record is None:
            return None
        asked = await list_questions(self._store, record)
        await self._decisions.close(asked, reason=ENGLISH["reason.run_cancelled"])
        requests = any(call.name == REQUEST_INFO for call in record.client_calls)
        if record.status != "completed" or not (asked or requests):
            return record
        return await self._end_waiting(record, identity, requests=requests)

    async def cancel_chain(self, owner: str, run_id: str, identity: ChannelIdentity) -> RunChain | None:
        """Cancel the newest run of a chain and all open questions of the chain. Return the chain afterwards."""
        chain = await self.find(owner, run_id)
        if chain is None:
            return None
        async with self._followers.signals.subscribe(chain.root.chain_id) as signal:
            for _ in range(MAX_ROUNDS):
                signal.clear()
                await self._decisions.close(chain.questions, reason=ENGLISH["reason.run_cancelled"])
                await self.cancel(owner, chain.newest.run_id, identity)
                before, chain = chain, await self.find(owner, run_id) or chain
                if chain.newest.run_id != before.newest.run_id:
                    continue
                if chain.status != "queued":
                    break
                # A decision was recorded, and its run is about to be stored.
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._cancel_grace):
                        await signal.wait()
                chain = await self.find(owner, run_id) or chain
        return chain

    async def _end_waiting(self, record: RunRecord, identity: ChannelIdentity, *, requests: bool) -> RunRecord:
        """Record a completed run that waits for answers as cancelled, unless its chain goes on."""
        session = await self._session(record) if requests else None
        if session is None or session.checkpoint != record.checkpoint:
            return await self._save_cancelled(record, None)
        find = partial(self._store.sessions.get, session.owner, session.session_id)
        async with self._open_questions(find, identity).abandon() as left:
            return await self._save_cancelled(record, left)

    async def _save_cancelled(self, record: RunRecord, left: AbandonedSession | None) -> RunRecord:
        chain = await self.find(record.owner, record.run_id)
        if chain is None or chain.newest.run_id != record.run_id or chain.newest.status != "completed":
            return record
        asked = [question for question in chain.questions if question.run_id == record.run_id]
        if any(question.status != "cancelled" for question in asked):
            # A decision was earlier, and its run follows.
            return record
        cancelled = record.replace(
            status="cancelled",
            failure=CANCELLED,
            finished_at=self._clock.now(),
            client_calls=tuple(call for call in record.client_calls if call.name != REQUEST_INFO),
            checkpoint=record.checkpoint if left is None else left.record.checkpoint,
        )
        deliveries = await self.watchers.list_deliveries(cancelled, "cancelled", asks=False)
        async with self._store.transaction() as transaction:
            if left is not None:
                left.note(transaction)
            transaction.save_run(cancelled)
            for delivery in deliveries:
                transaction.add_delivery(delivery)
        await self.watchers.wake(deliveries)
        self._followers.signals.notify(record.chain_id)
        return cancelled

    async def _session(self, record: RunRecord) -> SessionRecord | None:
        if record.session_id is None:
            return None
        for owner in (record.owner, SHARED):
            session = await self._store.sessions.get(owner, record.session_id)
            if session is not None:
                return session
        return None
