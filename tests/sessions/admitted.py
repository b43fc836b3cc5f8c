"""Requests that are past the gate, and a room in which their turns run."""

from functools import partial
from typing import Any

from agent_framework import AgentResponse, Message

from frontdesk.host.conversations.editor import rebuild_history
from frontdesk.models.conversation import Conversation
from frontdesk.models.delivery import Route
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import AdmittedRequest, ChannelRequest, ChannelSession, ConversationScope
from frontdesk.models.run import RunRecord
from frontdesk.sessions.record import Recorder
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import FakeClock, FakeIds


def build_admitted(
    *, owner: str = "alice", run_id: str = "run_0", caller: Caller | None = None, key: str | None = None, **fields: Any
) -> AdmittedRequest:
    """A request that the gate let through."""
    identity = ChannelIdentity(channel="web", native_id=owner)
    session = ChannelSession(key=key) if key is not None else None
    request = ChannelRequest(**{"channel": "web", "input": "hello", "session": session, **fields})
    return AdmittedRequest(
        request=request,
        caller=caller or Caller(identity=identity),
        identity=identity,
        owner=owner,
        run_id=run_id,
        admitted_at=1000.0,
    )


class Room:
    """Turns over an in-memory store."""

    def __init__(self, *, session_wait: float = 0.0, cancel_grace: float = 30.0) -> None:
        self.store = InMemoryStateStore()
        self.ids = FakeIds()
        self.turns = Turns(
            self.store,
            self.ids,
            session_wait=session_wait,
            cancel_grace=cancel_grace,
            rebuild_history=partial(rebuild_history, self.store),
        )
        self.recorder = Recorder(self.store, self.ids, FakeClock())
        self._runs = 0

    async def converse(self, conversation_id: str, *, owner: str = "alice") -> ChannelSession:
        """Makes a conversation, and names it as a request does."""
        made = Conversation(
            conversation_id=conversation_id, owner=owner, created_at=1000.0, session_id=f"ses of {conversation_id}"
        )
        async with self.store.transaction() as transaction:
            transaction.save_conversation(made)
        return ChannelSession(conversation_id=conversation_id)

    async def open(self, *, tracked: ConversationScope | None = None, waits: bool = False, **fields: Any) -> Turn:
        self._runs += 1
        return await self.turns.open(
            build_admitted(**{"run_id": f"run_{self._runs}", **fields}), tracked=tracked, waits=waits
        )

    async def finish(self, turn: Turn, answer: str = "hi") -> RunRecord:
        """Records an answer as the pipeline does, and closes the turn."""
        run = self.recorder.begin(turn)
        said = Message("assistant", [answer])
        turn.staged = [*turn.messages, said]
        record = await self.recorder.record_completed(
            turn, run, AgentResponse(messages=[said]), Route(originating=True), ()
        )
        self.turns.close(turn)
        return record

    async def say(self, text: str, answer: str | None = None, **fields: Any) -> RunRecord:
        """A whole turn."""
        return await self.finish(await self.open(input=text, **fields), answer or f"re: {text}")

    async def texts(self, turn: Turn) -> list[str]:
        """The history that a turn sees."""
        return [message.text for message in await turn.history()]
