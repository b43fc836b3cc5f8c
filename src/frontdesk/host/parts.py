"""Builds the parts of the host, once."""

from collections.abc import Mapping
from functools import partial

from frontdesk.abc.channel import Channel
from frontdesk.abc.linker import ReadsClaims
from frontdesk.abc.runner import DurableTaskRunner
from frontdesk.abc.store import HostStateStore
from frontdesk.abc.target import ShowsToolSchemas, Target
from frontdesk.abc.telemetry import Telemetry
from frontdesk.access.contacts import Contacts
from frontdesk.access.gate import Gate
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.link_policy import TierPolicy
from frontdesk.access.links import Links
from frontdesk.access.policy import as_rule, rules_of
from frontdesk.admin.deliveries import Deliveries
from frontdesk.approvals.answers import ApprovalAnswers
from frontdesk.approvals.binding import RuleBinder
from frontdesk.approvals.decisions import Decisions
from frontdesk.approvals.voting import FindKey
from frontdesk.clock import Clock
from frontdesk.data.approval import PendingApproval
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.request import ConversationScope
from frontdesk.delivery.live.replies import LiveReplies
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.delivery.push import can_push
from frontdesk.host.approvals import ApprovalExpiry, PlaceSettler
from frontdesk.host.background.dispatcher import BackgroundDispatcher
from frontdesk.host.channel_state.leadership import Leaders
from frontdesk.host.channel_state.storage import Storages
from frontdesk.host.checks.access import Access
from frontdesk.host.config import HostConfig
from frontdesk.host.conversations.history import rebuild_history
from frontdesk.host.deliveries import ProactiveSender
from frontdesk.host.direct_notifier import DirectNotifier
from frontdesk.host.events.dependencies import EventDependencies
from frontdesk.host.events.events import Events
from frontdesk.host.links.names import command_name
from frontdesk.ids import Ids
from frontdesk.kit.auth.sealing import Sealer
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.chat.texts import Texts
from frontdesk.kit.telemetry import Spans
from frontdesk.pipeline import Pipeline
from frontdesk.runs.asking import Asking
from frontdesk.runs.deferral import Deferral
from frontdesk.runs.finisher import RunFinisher
from frontdesk.runs.routes import Routes
from frontdesk.runs.starter import RunStarter
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.branches import Branches
from frontdesk.sessions.items import TurnItems
from frontdesk.sessions.leases import LeaseKeeper
from frontdesk.sessions.record import Recorder
from frontdesk.sessions.snapshot import Snapshots
from frontdesk.sessions.turns import Turns


class Parts:
    """All parts between the channels and the store."""

    def __init__(
        self,
        *,
        target: Target,
        channels: Mapping[str, Channel],
        store: HostStateStore,
        config: HostConfig,
        clock: Clock,
        ids: Ids,
        access: Access,
        runner: DurableTaskRunner,
        sealer: Sealer,
        texts: Texts,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.spans = Spans(telemetry, channels)
        self.target, self.channels, self.linker, self.texts = target, channels, access.linker, texts
        self.store, self.runner, self.clock, self.ids = store, runner, clock, ids
        self.leaders, self.storages = Leaders(store), Storages(store, sealer, clock, ids)
        self.link_policy = TierPolicy(access.link_policy, channels)
        self.keys, self.contacts = IdentityKeys(store, ids, clock, access.resolver), self._contacted(access)
        self.gate = self._gated(self.keys, access)
        planner = self._planning(self.keys, config)
        presence = Presence(store, planner.pushing, introduces=access.resolver is not None)
        self.aliases = Aliases(store, channels)
        self.outbox = OutboxSender(store, channels, clock, self.aliases, self.spans)
        self.notifier = DirectNotifier(channels, store, planner, self.outbox, texts)
        waits, grace = config.seconds.session_wait, config.seconds.cancel_grace
        rebuild = partial(rebuild_history, store)
        self.turns = Turns(store, ids, session_wait=waits, cancel_grace=grace, rebuild_history=rebuild)
        self.deliveries = Deliveries(store, clock, self.outbox)
        self.sender = ProactiveSender(store, self.gate, self.turns, planner, self.outbox, ids, clock)
        self.recorder = Recorder(store, ids, clock, TurnItems(channels), Snapshots(config.max_session_bytes))
        self.active = ActiveRuns(self.turns, self.recorder, cancel_grace=grace)
        self.background = BackgroundDispatcher(store, config, clock, self.active)
        self.keeper = LeaseKeeper(store, self.turns, self.active, self.background.interrupt)
        self._approve(access, config, planner)
        self.links = self._linked(self.keys, access)
        self.live = LiveReplies(store, channels, planner, self.outbox, self.aliases, clock, ids)
        self.pipeline = self._flow(planner, presence)
        self.background.use(self.pipeline, presence, self.notifier)
        self.events = self._answering(planner, presence)
        self.outbox.register(runner)
        self.events.register(runner)
        ApprovalExpiry(store, self._expire, clock, self.asking, self.outbox).register(runner)

    def _approve(self, access: Access, config: HostConfig, planner: Planner) -> None:
        """Make the parts that ask questions and decide them."""
        store, clock, target, options = self.store, self.clock, self.target, config.approvals
        schemas = target if isinstance(target, ShowsToolSchemas) else None
        places = PlaceSettler(store, self.channels, clock, self.outbox, planner, self.aliases, self.gate)
        self.outbox.settle_shown = places.rows_at
        find_key = self._finds_keys(access)
        self.decisions = Decisions(store, clock, schemas, places, self.spans, find_key)
        repeats = target.info.checkpoints
        lifetime = None if options is None else options.seconds
        self.answers = ApprovalAnswers(
            store, clock, self.ids, self.decisions, may_repeat=repeats, lifetime=lifetime, expire=self._expire
        )
        self.asking = Asking(
            store=store,
            channels=self.channels,
            gate=self.gate,
            planner=planner,
            answers=self.answers,
            binder=RuleBinder(options),
            find_key=find_key,
            may_deliver=self._may_deliver,
        )

    async def _expire(self, question: PendingApproval) -> None:
        await self.decisions.expire(question, self.gate.new_run_id, self.events.intake.wake)

    def _answering(self, planner: Planner, presence: Presence) -> Events:
        given = EventDependencies(
            store=self.store,
            channels=self.channels,
            clock=self.clock,
            ids=self.ids,
            texts=self.texts,
            aliases=self.aliases,
            gate=self.gate,
            presence=presence,
            planner=planner,
            outbox=self.outbox,
            live=self.live,
            active=self.active,
            pipeline=self.pipeline,
            spans=self.spans,
        )
        return Events(given)

    def _flow(self, planner: Planner, presence: Presence) -> Pipeline:
        target, turns, active = self.target, self.turns, self.active
        answers, routes = self.answers, Routes(planner)
        branches = Branches(self.store, turns, self.ids, target.info)
        scopes = self._scopes()
        deferral = Deferral(
            turns=turns,
            branches=branches,
            active=active,
            presence=presence,
            routes=routes,
            enqueue=self.background.submit,
            scopes=scopes,
        )
        starter = RunStarter(
            target=target,
            turns=turns,
            branches=branches,
            active=active,
            recorder=self.recorder,
            answers=answers,
            idempotent_runs=self.background,
            routes=routes,
            scopes=scopes,
        )
        finisher = RunFinisher(
            target=target,
            gate=self.gate,
            starter=starter,
            branches=branches,
            recorder=self.recorder,
            answers=answers,
            planner=planner,
            outbox=self.outbox,
            routes=routes,
            asking=self.asking,
        )
        return Pipeline(
            target=target,
            channels=self.channels,
            gate=self.gate,
            answers=answers,
            turns=turns,
            active=active,
            deferral=deferral,
            starter=starter,
            finisher=finisher,
            live=self.live,
            spans=self.spans,
        )

    def _finds_keys(self, access: Access) -> FindKey:
        """Return what knows the isolation key of an account, as the gate would give it."""

        async def key_of(identity: ChannelIdentity) -> str | None:
            link = None if access.linker is None else await access.linker.resolve(identity)
            return await self.keys.look_up(identity) if link is None else link.isolation_key

        return key_of

    def _scopes(self) -> Mapping[str, ConversationScope | None]:
        """Return the scopes of the sessions that the host tracks, by channel."""
        return {
            name: channel.conversation_scope if channel.session_family == "host_tracked" else None
            for name, channel in self.channels.items()
        }

    def _planning(self, keys: IdentityKeys, config: HostConfig) -> Planner:
        shared = {name for name, channel in self.channels.items() if channel.one_place_per_person}
        return Planner(
            self.store,
            self.channels,
            self.ids,
            self.clock,
            known=lambda owner: keys.places_of(owner, shared),
            allow=self._may_deliver,
            active_window=config.seconds.active_window,
            texts=self.texts,
        )

    async def _may_deliver(self, source: str, destination: str) -> bool:
        return await self.link_policy.allows("deliver", source, destination)

    def _contacted(self, access: Access) -> Contacts:
        shared = {
            name
            for name, channel in self.channels.items()
            if channel.conversation_scope == "per_conversation" and can_push(channel)
        }
        return Contacts(self.store, self.clock, grouped=shared, introduces=access.resolver is not None)

    def _gated(self, keys: IdentityKeys, access: Access) -> Gate:
        return Gate(
            keys,
            self.ids,
            self.clock,
            rules_of(self.channels, access.default_allowlist),
            default=as_rule(access.default_allowlist),
            linker=access.linker,
            link_policy=self.link_policy,
            contacts=self.contacts,
            run_prefixes={channel.name: channel.run_prefix for channel in self.channels.values()},
        )

    def _linked(self, keys: IdentityKeys, access: Access) -> Links | None:
        linker = access.linker
        if linker is None:
            return None

        def named(channel: str, word: str) -> str | None:
            own = self.channels.get(channel)
            name = None if own is None else command_name(own, word)
            return None if name is None else f"/{name}"

        policy, messenger = self.link_policy, self.notifier
        links = Links(
            self.store,
            keys,
            self.ids,
            self.clock,
            policy=policy,
            messenger=messenger,
            questions=self.decisions,
            named=named,
            changed=self.notifier.links_changed,
            texts=self.texts,
        )
        linker.use(links)
        if access.link_verified_claims and isinstance(linker, ReadsClaims):
            self.gate.link_by_claims = lambda caller: links.greet(caller, linker)
        return links
