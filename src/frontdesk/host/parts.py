"""The parts of the house, put together once."""

from collections.abc import Mapping

from frontdesk.abc.allowlist import IdentityResolver
from frontdesk.abc.channel import Channel
from frontdesk.abc.linker import IdentityLinker
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.abc.target import Target
from frontdesk.access.allowlists import AllowAll
from frontdesk.access.gate import Gate
from frontdesk.access.identify import IdentityKeys
from frontdesk.approvals.answers import Answers
from frontdesk.clock import Clock
from frontdesk.delivery.outbox import Outbox
from frontdesk.delivery.plan import Planner
from frontdesk.host.background import Background
from frontdesk.host.config import HostConfig
from frontdesk.host.deliveries import Deliveries, Speaker
from frontdesk.host.inbox import InboxWorker
from frontdesk.ids import Ids
from frontdesk.pipeline import Pipeline
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.conversations import Conversations
from frontdesk.sessions.items import TurnItems
from frontdesk.sessions.keeper import LeaseKeeper
from frontdesk.sessions.record import Recorder
from frontdesk.sessions.turns import Turns


class Parts:
    """Everything between the doors and the store."""

    def __init__(
        self,
        *,
        target: Target,
        channels: Mapping[str, Channel],
        store: HostStateStore,
        config: HostConfig,
        clock: Clock,
        ids: Ids,
        resolver: IdentityResolver | None,
        linker: IdentityLinker | None,
        runner: DurableTaskRunner,
    ) -> None:
        self.target, self.channels, self.linker = target, channels, linker
        self.store, self.runner = store, runner
        self.clock, self.ids = clock, ids
        prefixes = {channel.name: channel.run_prefix for channel in channels.values()}
        keys = IdentityKeys(store, ids, clock, resolver)
        self.gate = Gate(keys, ids, clock, AllowAll(), prefixes)
        self.turns = Turns(
            store, ids, session_wait=config.session_wait_seconds, cancel_grace=config.cancel_grace_seconds
        )
        planner = Planner(store, channels, ids, clock, known=keys.identities_of)
        self.outbox = Outbox(store, channels, clock)
        self.deliveries = Deliveries(store, clock, self.outbox)
        self.speaker = Speaker(store, self.gate, self.turns, planner, self.outbox, ids, clock)
        items = TurnItems(channels)
        recorder = Recorder(store, ids, clock, planner.pushing, items, introduces=resolver is not None)
        self.conversations = Conversations(store, self.turns, ids, clock)
        self.active = ActiveRuns(self.turns, recorder, cancel_grace=config.cancel_grace_seconds)
        self.background = Background(store, config, clock, self.active)
        self.keeper = LeaseKeeper(store, self.turns, self.active, self.background.interrupt)
        self.pipeline = Pipeline(
            target=target,
            channels=channels,
            gate=self.gate,
            turns=self.turns,
            active=self.active,
            recorder=recorder,
            answers=Answers(store, clock),
            planner=planner,
            outbox=self.outbox,
            defer=self.background.submit,
        )
        self.background.use(self.pipeline)
        self.inbox = InboxWorker(store, self.pipeline, channels, planner, self.outbox, clock)
        self.outbox.register(runner)
        self.inbox.register(runner)
