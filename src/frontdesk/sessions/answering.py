"""The answers that a turn acts on, from their decision until a tool begins."""

import asyncio
from collections.abc import Sequence

from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.data.approval import ApprovalAnswer
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.kit.aio.retry import until_available
from frontdesk.loggers import runs as log
from frontdesk.sessions.job import Job

_PAUSE = 1.0
_TRIES = 3


class Answering:
    """One attempt to act on answers. Until it has begun, the same answers can be given to another attempt.

    An attempt is not a run: a run that is begun again, or retried under the same id, makes another attempt.
    """

    begun = False
    failure: BaseException | None = None
    """The error with which the beginning could not be written; then the attempt does nothing."""

    def __init__(self, store: HostStateStore, owner: str, answers: Sequence[ApprovalAnswer], attempt: str) -> None:
        self._store = store
        self._owner = owner
        self._answers = answers
        self._attempt = attempt
        self._beginning = asyncio.Lock()

    async def begin(self, job: Job | None) -> None:
        """Write that the answers are used up, before they are; of a background run, together with its own beginning."""
        # Of several tools at once, none goes ahead before it is written, nor after that has failed.
        async with self._beginning:
            if self.failure is not None:
                raise self.failure
            if self.begun:
                return
            try:
                await self._write(job)
            except BaseException as error:
                self.failure = error
                raise
            self.begun = True

    async def _write(self, job: Job | None) -> None:
        if job is not None and job.guarded:
            await job.begin(self.use_up)
            return
        async with self._store.transaction() as transaction:
            self.use_up(transaction)

    def use_up(self, transaction: StateTransaction) -> None:
        """Add to a transaction that the answers are used up; it fails if another attempt has them."""
        for answer in self._answers:
            transaction.begin_approval(self._owner, answer.approval_id, self._attempt)

    async def give_back(self) -> None:
        """Give the answers back if it is not known whether a failed beginning was written."""
        if self.failure is None or isinstance(self.failure, StoreError):
            return
        tries = iter(range(1, _TRIES))

        async def write() -> None:
            async with self._store.transaction() as transaction:
                for answer in self._answers:
                    transaction.release_approval(self._owner, answer.approval_id, self._attempt)

        try:
            await until_available(write, pause=_PAUSE, give_up=lambda: next(tries, None) is None)
        except StoreUnavailableError:
            log.error("an answer that was not acted on could not be given back, and may count as used up")
