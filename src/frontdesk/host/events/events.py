"""Builds the parts that handle events, once."""

from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.host.events.answering import EventAnswering
from frontdesk.host.events.awaited import AwaitedReplies
from frontdesk.host.events.cancelling import Cancellations
from frontdesk.host.events.dependencies import EventDependencies
from frontdesk.host.events.finishing import Finishing
from frontdesk.host.events.gathering import Gathering
from frontdesk.host.events.held import HeldEvents
from frontdesk.host.events.intake import EventIntake
from frontdesk.host.events.limits import EventLimiter
from frontdesk.host.events.replies import EventReplies
from frontdesk.host.events.worker import InboxWorker


class Events:
    """The parts that handle events: `intake` and `cancellations` for channels, `worker` for the runner.

    `look_for_cancelled` is for whoever has cancelled events otherwise than by an event.
    """

    def __init__(self, given: EventDependencies) -> None:
        store, channels, clock = given.store, given.channels, given.clock
        held = HeldEvents(store, given.active)
        replies = EventReplies(store, given.planner, given.outbox, given.aliases, held)
        awaited = AwaitedReplies(store, channels, given.outbox, clock, given.aliases)
        gathering = Gathering(store, channels, clock)
        finishing = Finishing(given.gate, given.presence)
        limiter = EventLimiter(store, channels, clock, replies.add, given.texts)
        answering = EventAnswering(given, held, replies, finishing)
        self.intake = EventIntake(given, held, replies, awaited, gathering, limiter)
        self.cancellations = Cancellations(given, held, replies, finishing)
        self.look_for_cancelled = held.look
        self.worker = InboxWorker(store, clock, held, gathering, awaited, answering, given.spans)

    def register(self, runner: DurableTaskRunner) -> None:
        """Register with the runner that works through events; once, before it starts."""
        self.worker.register(runner)
        self.intake.use(runner)
