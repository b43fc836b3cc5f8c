"""The components that event processing depends on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from frontdesk.access.gate import Gate
from frontdesk.access.stored_requests import StoredRequests
from frontdesk.chat.aliases import Aliases
from frontdesk.chat.i18n.texts import Texts
from frontdesk.clock import Clock
from frontdesk.delivery.live.replies import LiveReplies
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.ids import Ids
from frontdesk.interfaces.access import Allowed
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.delivery import EventKind, InboxItem, WaitingEvent
from frontdesk.pipeline import AdmittedRuns, Pipeline
from frontdesk.runs.finisher import RunFinisher
from frontdesk.runs.starter import Deferral
from frontdesk.sessions.active import ActiveRuns
from frontdesk.telemetry.spans import NO_SPANS, Spans

TASKS: Mapping[EventKind, str] = {"turn": "answer", "control": "control", "resume": "resume"}
"""The names of the tasks that work through the events of each kind."""


def task_id(kind: EventKind, channel: str, conversation_id: str) -> str:
    # The length keeps two conversations apart whatever is in their names.
    return f"{TASKS[kind]}:{len(channel)}:{channel}:{conversation_id}"


def task_payload(event: InboxItem | WaitingEvent) -> Mapping[str, Any]:
    return {"channel": event.channel, "conversation_id": event.conversation_id}


class EventSchedule:
    """Schedules the processing of conversations with waiting events."""

    def __init__(self, runner: DurableTaskRunner) -> None:
        self._runner = runner

    async def wake(self, item: InboxItem) -> None:
        await self.wake_conversation(item.kind, item.channel, item.conversation_id, at=item.not_before)

    async def wake_conversation(
        self, kind: EventKind, channel: str, conversation_id: str, *, at: float | None = None
    ) -> None:
        payload = {"channel": channel, "conversation_id": conversation_id}
        await self._runner.schedule(TASKS[kind], payload, task_id=task_id(kind, channel, conversation_id), at=at)


@dataclass(frozen=True, kw_only=True)
class EventDependencies:
    store: HostStateStore
    channels: Mapping[str, Channel]
    clock: Clock
    ids: Ids
    texts: Texts
    aliases: Aliases
    gate: Gate
    presence: Presence
    planner: Planner
    outbox: OutboxSender
    live: LiveReplies
    active: ActiveRuns
    pipeline: Pipeline
    deferral: Deferral
    runs: AdmittedRuns
    finisher: RunFinisher
    stored_requests: StoredRequests
    schedule: EventSchedule
    spans: Spans = NO_SPANS


class EventFinisher:
    """Finishes events without a run. Runs record the location of their caller themselves."""

    def __init__(self, gate: Gate, presence: Presence) -> None:
        self._gate = gate
        self._presence = presence

    async def build_finish(self, item: InboxItem) -> Callable[[StateTransaction], None]:
        """Return the write that marks an event as done and records where the sender of a command was seen."""
        owner = await self._command_owner(item)

        def note(transaction: StateTransaction) -> None:
            if owner is not None:
                here = item.request.conversation_id
                self._presence.note_place(transaction, owner, item.caller.identity, here, item.received_at)
            transaction.finish(item)

        return note

    async def _command_owner(self, item: InboxItem) -> str | None:
        """Return the owner of a command, or None for other events and unknown senders."""
        if item.request.operation != "command" or not self._presence.matters:
            return None
        decision = await self._gate.decide(item.caller, item.channel)
        return decision.isolation_key if isinstance(decision, Allowed) else None
