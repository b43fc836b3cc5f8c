"""Gives up the questions with which the workflow of a session waits."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from frontdesk.abc.store import StateTransaction
from frontdesk.abc.target import GivesUpQuestions
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Value
from frontdesk.data.session import Lease, SessionName, SessionRecord
from frontdesk.errors import SessionBusyError
from frontdesk.host.parts import Parts
from frontdesk.kit.framework.messages import stamped
from frontdesk.sessions.snapshot import rewritten


class AbandonedSession(Value, frozen=True, kw_only=True):
    """A session without its questions, to be written while it is held."""

    questions: int
    record: SessionRecord
    lease: Lease
    messages: Sequence[Any]

    def note(self, transaction: StateTransaction) -> None:
        """Write the session together with the event that gives its questions up."""
        transaction.save_session(self.record, self.lease)
        transaction.append_history(self.record.session_id, self.messages)


class OpenQuestions:
    """The open questions of one tracked session, as one person sees them."""

    def __init__(self, parts: Parts, name: SessionName, identity: ChannelIdentity) -> None:
        self._parts, self._name, self._identity = parts, name, identity

    @asynccontextmanager
    async def abandoned(self) -> AsyncGenerator[AbandonedSession | None]:
        """Hold the session, and give it without its questions; `None` if it has none, or is busy with a turn."""
        target, before = self._parts.target, await self._parts.store.sessions.find(self._name)
        if not isinstance(target, GivesUpQuestions) or before is None or before.checkpoint is None:
            yield None
            return
        async with AsyncExitStack() as stack:
            lease = None
            with suppress(SessionBusyError):
                lease = await stack.enter_async_context(self._parts.turns.held(before.session_id))
            yield None if lease is None else await self._without_questions(target, before, lease)

    async def _without_questions(
        self, target: GivesUpQuestions, before: SessionRecord, lease: Lease
    ) -> AbandonedSession | None:
        record = await self._parts.store.sessions.get(before.owner, before.session_id)
        # A turn that came meanwhile has answered, and may have asked something else.
        if record is None or record.checkpoint != before.checkpoint:
            return None
        given_up = await target.give_up(record)
        if given_up is None:
            return None
        ids, now = self._parts.ids, self._parts.clock.now()
        identity = {"channel": self._identity.channel, "native_id": self._identity.native_id}
        hosting = {"channel": self._identity.channel, "identity": identity}
        messages = [stamped(message, hosting, ids.new("msg")) for message in given_up.messages]
        changed = record.replace(
            checkpoint=given_up.checkpoint,
            messages=record.messages + len(messages),
            updated_at=now,
            state=await rewritten(record.state),
        )
        return AbandonedSession(questions=given_up.questions, record=changed, lease=lease, messages=messages)
