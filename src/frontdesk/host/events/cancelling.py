"""Cancels the turns before an event, in one transaction with the end of the event and its reply."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from frontdesk.abc.store import StateTransaction
from frontdesk.data.delivery import Cancelled, InboxItem
from frontdesk.data.reply import Reply
from frontdesk.data.session import SessionName
from frontdesk.host.events.dependencies import EventDependencies
from frontdesk.host.events.finishing import Finishing
from frontdesk.host.events.held import HeldEvents
from frontdesk.host.events.replies import EventReplies


class Abandoned(Protocol):
    """A session that gives up its questions, to be written with the event that asks for it."""

    @property
    def questions(self) -> int: ...

    def note(self, transaction: StateTransaction) -> None: ...


Abandon = Callable[[], AbstractAsyncContextManager[Abandoned | None]]


class Cancellations:
    """Cancels turns, and tells those that this process works on."""

    def __init__(self, given: EventDependencies, held: HeldEvents, replies: EventReplies, finishing: Finishing) -> None:
        self._store, self._ids = given.store, given.ids
        self._aliases, self._outbox = given.aliases, given.outbox
        self._held = held
        self._replies = replies
        self._finishing = finishing

    async def cancel_turns(
        self,
        item: InboxItem,
        *,
        anyone: bool = False,
        rotate: SessionName | None = None,
        reply: Callable[[Cancelled], Reply | str] | None = None,
        questions: Abandon | None = None,
    ) -> Cancelled:
        """Cancel the turns before an event, start the session of a name anew, and finish the event with a reply.

        If there is no turn to cancel, the session gives up the `questions` with which it waits.
        """
        # The channel knows the conversation by its current name.
        item = await self._aliases.inward(item)
        cancelled = await self._store.inbox.count_earlier(item, anyone=anyone)
        if questions is None or cancelled.running or cancelled.dropped:
            return await self._cancel(item, cancelled, anyone, rotate, reply)
        async with questions() as abandoned:
            if abandoned is not None:
                cancelled = cancelled.replace(questions=abandoned.questions)
            return await self._cancel(item, cancelled, anyone, rotate, reply, abandoned)

    async def _cancel(
        self,
        item: InboxItem,
        cancelled: Cancelled,
        anyone: bool,
        rotate: SessionName | None,
        reply: Callable[[Cancelled], Reply | str] | None,
        abandoned: Abandoned | None = None,
    ) -> Cancelled:
        left = ""
        if rotate is not None and cancelled.running:
            left = await self._store.sessions.reserve(rotate, self._ids.new("ses"))
        held, rows = self._held.get(item), await self._replies.collected_rows(item)
        if reply is not None:
            rows += await self._replies.cancel_rows(item, reply(cancelled))
        finish = await self._finishing.finished(item)
        async with self._store.transaction() as transaction:
            transaction.cancel_earlier(item, anyone=anyone, session_id=left)
            if rotate is not None:
                transaction.name_session(rotate, self._ids.new("ses"))
            if abandoned is not None:
                abandoned.note(transaction)
            finish(transaction)
            for row in rows:
                transaction.add_delivery(row)
        if held is not None:
            held.finished = True
        await self._held.look(item)
        await self._outbox.wake(rows)
        return cancelled
