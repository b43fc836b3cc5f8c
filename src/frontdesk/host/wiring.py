"""Builds the components of the host."""

from collections.abc import Mapping
from functools import partial

from frontdesk.access.contacts import Contacts
from frontdesk.access.gate import Gate
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.links import Links
from frontdesk.access.policy import TierPolicy, list_rules
from frontdesk.access.principals import Principals
from frontdesk.access.recipients import Recipients
from frontdesk.access.stored_requests import StoredRequests
from frontdesk.access.visitors import UnlinkedVisitors
from frontdesk.admin.deliveries import Deliveries
from frontdesk.approvals.answers import ApprovalAnswers, FindSession, OpenQuestions
from frontdesk.approvals.decisions import Decisions
from frontdesk.approvals.http_votes import HttpVotes
from frontdesk.approvals.message_updates import ApprovalExpiry, ApprovalMessageUpdater
from frontdesk.approvals.names import PersonNames
from frontdesk.approvals.policy import RuleBinder
from frontdesk.approvals.requester import ApprovalRequester
from frontdesk.approvals.voters import VoterLookup
from frontdesk.auth.sealing import Sealer
from frontdesk.channel_storage.leadership import Leaders
from frontdesk.channel_storage.values import Storages
from frontdesk.chat.aliases import Aliases
from frontdesk.chat.i18n.texts import Texts
from frontdesk.clock import Clock
from frontdesk.delivery.live.replies import LiveReplies
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.delivery.proactive import DirectNotifier, ProactiveSender
from frontdesk.delivery.push import can_push
from frontdesk.delivery.watchers import WATCHERS, RunWatchers, WatcherChannel
from frontdesk.host.config import HostConfig
from frontdesk.host.conversations.editor import rebuild_history
from frontdesk.host.links.names import command_name
from frontdesk.host.validation.access import Access
from frontdesk.host.validation.configuration import chosen_rule_findings
from frontdesk.ids import Ids
from frontdesk.inbox.dependencies import EventDependencies
from frontdesk.inbox.worker import Events
from frontdesk.interfaces.access import Allowed
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.context import ReportsWriteFailures
from frontdesk.interfaces.linker import ReadsClaims
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store import HostStateStore
from frontdesk.interfaces.target import ShowsToolSchemas, Target
from frontdesk.interfaces.telemetry import Telemetry
from frontdesk.models.approval import PendingApproval
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ConversationScope
from frontdesk.pipeline import Pipeline
from frontdesk.runs.background.dispatcher import BackgroundDispatcher, signals_for
from frontdesk.runs.background.followers import RunSignals
from frontdesk.runs.chains import RunChains
from frontdesk.runs.finisher import RunFinisher
from frontdesk.runs.starter import Deferral, Routes, RunStarter
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.branches import Branches
from frontdesk.sessions.items import TurnItems
from frontdesk.sessions.leases import LeaseKeeper
from frontdesk.sessions.memory import HistoryMemory
from frontdesk.sessions.record import Recorder
from frontdesk.sessions.snapshot import Snapshots
from frontdesk.sessions.turns import Turns
from frontdesk.telemetry.spans import Spans

_NOBODY = ChannelIdentity(channel="readyz", native_id="nobody")


class Components:
    """All components between the channels and the store."""

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
        self.public_url = config.public_url
        self.visitors = UnlinkedVisitors(store, channels)
        self.leaders, self.storages = Leaders(store), Storages(store, sealer, clock, ids)
        self.link_policy = TierPolicy(access.link_policy, channels)
        resolves = access.resolver is not None
        self.principals = Principals(store, channels, self.link_policy, clock, ids, resolves_itself=resolves)
        self.keys = IdentityKeys(store, ids, clock, access.resolver, self.principals)
        self.contacts = self._contacted(access)
        self.gate = self._gated(self.keys, access)
        planner = self._planning(self.keys, config)
        presence = Presence(store, planner.pushing, introduces=access.resolver is not None)
        self.aliases = Aliases(store, channels)
        self.watchers = RunWatchers(store, clock, ids, sealer, config.watchers)
        pushing = {**channels, WATCHERS: WatcherChannel(self.watchers, store, channels)}
        self.outbox = OutboxSender(store, pushing, clock, self.aliases, self.spans)
        self.notifier = DirectNotifier(channels, store, planner, self.outbox, texts)
        waits, grace = config.seconds.session_wait, config.seconds.cancel_grace
        rebuild = partial(rebuild_history, store)
        memory = HistoryMemory(config.max_history_bytes)
        self.turns = Turns(store, ids, session_wait=waits, cancel_grace=grace, rebuild_history=rebuild, memory=memory)
        self.deliveries = Deliveries(store, clock, self.outbox)
        self.recipients = Recipients(store, self.gate, channels)
        self.sender = ProactiveSender(store, self.gate, self.turns, planner, self.outbox, ids, clock, self.recipients)
        snapshots, watching = Snapshots(config.max_session_bytes), self.watchers.list_deliveries
        self.recorder = Recorder(store, ids, clock, TurnItems(channels), snapshots, watching)
        signals = signals_for(store)
        self.active = ActiveRuns(self.turns, self.recorder, cancel_grace=grace, notify=signals.notify)
        self.background = self._build_background(config, presence, signals)
        self.keeper = LeaseKeeper(store, self.turns, self.active, self.background.interrupt)
        self._approve(access, config, planner)
        self.chains = self._build_chains(grace)
        self.stored_requests = self._store_requests(access)
        self.links = self._linked(self.keys, access)
        self.live = self._build_live(planner)
        self.pipeline = self._flow(planner, presence)
        self.background.use(self.pipeline)
        self.events = self._answering(planner, presence)
        self.votes = self._build_votes()
        self._register_tasks()

    def _build_chains(self, cancel_grace: float) -> RunChains:
        return RunChains(
            store=self.store,
            clock=self.clock,
            active=self.active,
            background=self.background,
            decisions=self.decisions,
            open_questions=self.open_questions,
            cancel_grace=cancel_grace,
            watchers=self.watchers,
        )

    def _approve(self, access: Access, config: HostConfig, planner: Planner) -> None:
        store, clock, target, options = self.store, self.clock, self.target, config.approvals
        schemas = target if isinstance(target, ShowsToolSchemas) else None
        self.names = PersonNames(store)
        places = ApprovalMessageUpdater(
            store, self.channels, clock, self.outbox, planner, self.aliases, self.gate, self.names
        )
        self.outbox.settle_shown = places.rows_at
        voters = VoterLookup(store, access.linker, self.keys.look_up, self._allow_voter, self.keys.get_principal)
        self.decisions = Decisions(store, clock, schemas, places, self.spans, voters)
        repeats = target.info.checkpoints
        self.answers = ApprovalAnswers(
            store, clock, self.ids, self.decisions, may_repeat=repeats, lifetime=options.seconds, expire=self._expire
        )
        self.asking = ApprovalRequester(
            store=store,
            channels=self.channels,
            gate=self.gate,
            planner=planner,
            answers=self.answers,
            binder=RuleBinder(options, lambda rule: chosen_rule_findings(rule, self.channels.values()), self.names),
            voters=voters,
            names=self.names,
            may_deliver=self._may_deliver,
        )

    async def _expire(self, question: PendingApproval) -> None:
        await self.decisions.expire(question, self.gate.new_run_id, self.events.intake.wake)

    def _register_tasks(self) -> None:
        self.outbox.register(self.runner)
        self.watchers.register(self.runner, self.outbox)
        self.events.register(self.runner)
        ApprovalExpiry(self.store, self._expire, self.clock, self.asking, self.outbox).register(self.runner)

    def _build_background(self, config: HostConfig, presence: Presence, signals: RunSignals) -> BackgroundDispatcher:
        return BackgroundDispatcher(
            self.store,
            self.clock,
            self.active,
            presence,
            self.notifier,
            limits=config.runs,
            on_interrupt=config.on_interrupt,
            cancel_grace=config.seconds.cancel_grace,
            shutdown_grace=config.seconds.shutdown_grace,
            signals=signals,
        )

    def _store_requests(self, access: Access) -> StoredRequests:
        return StoredRequests(
            self.store,
            self.channels,
            self.gate,
            self.keys,
            self.clock,
            max_bytes=access.max_link_request_bytes,
            wake=lambda item: self.events.intake.wake(item),
        )

    def _build_votes(self) -> HttpVotes:
        return HttpVotes(
            store=self.store,
            channels=self.channels,
            gate=self.gate,
            keys=self.keys,
            decisions=self.decisions,
            clock=self.clock,
            ids=self.ids,
            texts=self.texts,
            resume=self.events.intake.wake,
        )

    def open_questions(self, find: FindSession, identity: ChannelIdentity) -> OpenQuestions:
        """Return the open workflow questions of a session from the point of view of one person."""
        return OpenQuestions(
            find, identity, target=self.target, store=self.store, turns=self.turns, clock=self.clock, ids=self.ids
        )

    def _build_live(self, planner: Planner) -> LiveReplies:
        return LiveReplies(
            self.store,
            self.channels,
            planner,
            self.outbox,
            self.aliases,
            self.clock,
            self.ids,
            stop_event=lambda: self.events.look_for_cancelled(),
            stop_run=lambda owner, run_id: self.background.cancel(owner, run_id),
        )

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
            stored_requests=self.stored_requests,
            spans=self.spans,
        )
        return Events(given)

    async def ask_store(self) -> None:
        await self.store.identities.find(_NOBODY, fresh=True)

    def check_writable(self) -> None:
        """Raise `StoreUnavailableError` while the store is known to reject writes."""
        if isinstance(self.store, ReportsWriteFailures):
            self.store.check_writable()

    def _flow(self, planner: Planner, presence: Presence) -> Pipeline:
        target, turns, active, answers, routes = self.target, self.turns, self.active, self.answers, Routes(planner)
        branches, scopes = Branches(self.store, turns, self.ids, target.info), self._scopes()
        deferral = Deferral(
            turns=turns,
            branches=branches,
            active=active,
            answers=answers,
            presence=presence,
            routes=routes,
            enqueue=self.background.submit,
            scopes=scopes,
            check_writable=self.check_writable,
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
            check_writable=self.check_writable,
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
            watchers=self.watchers,
            stored_requests=self.stored_requests,
            spans=self.spans,
        )

    async def _allow_voter(self, caller: Caller) -> Allowed | None:
        """Return the decision that admits a voter on the channel of the account, or None."""
        channel = self.principals.present(caller.identity.channel)
        decision = await self.gate.decide(caller, channel) if channel in self.channels else None
        return decision if isinstance(decision, Allowed) else None

    def _scopes(self) -> Mapping[str, ConversationScope | None]:
        """Return the conversation scopes of tracked sessions by channel."""
        return {
            name: channel.conversation_scope if channel.session_family == "host_tracked" else None
            for name, channel in self.channels.items()
        }

    def _planning(self, keys: IdentityKeys, config: HostConfig) -> Planner:
        shared = {name for name, channel in self.channels.items() if channel.shares_inbox_per_person}
        return Planner(
            self.store,
            self.channels,
            self.ids,
            self.clock,
            known=lambda owner: keys.list_addresses(owner, shared),
            allow=self._may_deliver,
            active_window=config.seconds.active_window,
            texts=self.texts,
            seen_on=keys.seen_on,
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
            list_rules(self.channels, access.default_allowlist),
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
            public_url=self.public_url,
            requests=self.stored_requests,
        )
        linker.use(links)
        if access.link_verified_claims and isinstance(linker, ReadsClaims):
            self.gate.link_by_claims = lambda caller: links.greet(caller, linker)
        return links
