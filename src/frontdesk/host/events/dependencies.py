"""The parts of the host with which events are handled."""

from collections.abc import Mapping
from dataclasses import dataclass

from frontdesk.abc.channel import Channel
from frontdesk.abc.store import HostStateStore
from frontdesk.access.gate import Gate
from frontdesk.clock import Clock
from frontdesk.delivery.live.replies import LiveReplies
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.ids import Ids
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.chat.texts import Texts
from frontdesk.kit.telemetry import NO_SPANS, Spans
from frontdesk.pipeline import Pipeline
from frontdesk.sessions.active import ActiveRuns


@dataclass(frozen=True, kw_only=True)
class EventDependencies:
    """The parts of the host that those of this package are built with."""

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
    spans: Spans = NO_SPANS
