"""The parts of the house, put together once."""

from collections.abc import Mapping

from frontdesk.abc.allowlist import IdentityResolver
from frontdesk.abc.channel import Channel, ChannelPush
from frontdesk.abc.linker import IdentityLinker
from frontdesk.abc.store import HostStateStore
from frontdesk.abc.target import Target
from frontdesk.access.allowlists import AllowAll
from frontdesk.access.gate import Gate
from frontdesk.access.identify import IdentityKeys
from frontdesk.approvals.answers import Answers
from frontdesk.clock import Clock
from frontdesk.host.background import Background
from frontdesk.host.config import HostConfig
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
    ) -> None:
        self.target = target
        self.store = store
        self.clock = clock
        self.ids = ids
        self.channels = channels
        self.linker = linker
        prefixes = {channel.name: channel.run_prefix for channel in channels.values()}
        self.gate = Gate(IdentityKeys(store, ids, clock, resolver), ids, clock, AllowAll(), prefixes)
        self.turns = Turns(
            store, ids, session_wait=config.session_wait_seconds, cancel_grace=config.cancel_grace_seconds
        )
        pushing = [one.name for one in channels.values() if isinstance(one, ChannelPush)]
        recorder = Recorder(store, ids, clock, pushing, TurnItems(channels))
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
            defer=self.background.submit,
        )
        self.background.use(self.pipeline)
        self.inbox = InboxWorker(store, self.pipeline)
