"""Builds the components of the host."""

from collections.abc import Mapping
from functools import partial

from frontdesk.access.contacts import Contacts
from frontdesk.access.gate import Authorizer, Gate, RunIds
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
from frontdesk.delivery.outbox import OutboxSchedule, OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.delivery.proactive import DirectNotifier, ProactiveSender
from frontdesk.delivery.push import can_push
from frontdesk.delivery.watchers import WATCHERS, RunWatchers, WatcherChannel
from frontdesk.host.config import HostConfig
from frontdesk.host.conversations.editor import rebuild_history
from frontdesk.host.links.names import command_name
from frontdesk.host.validation.access import Access
from frontdesk.host.validation.configuration import list_chosen_rule_findings
from frontdesk.ids import Ids
from frontdesk.inbox.dependencies import EventDependencies, EventSchedule
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
from frontdesk.pipeline import AdmittedRuns, Pipeline
from frontdesk.runs.background.dispatcher import BackgroundDispatcher, signals_for
from frontdesk.runs.background.followers import Followers
from frontdesk.runs.background.held import HeldRuns
from frontdesk.runs.background.worker import RunWorker
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
    """All components between the channels and the store. Each subject is built from those before it."""

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
        self.leaders, self.storages = Leaders(store), Storages(store, sealer, clock, ids)
        self.check_writable = store.check_writable if isinstance(store, ReportsWriteFailures) else None
        self._build_identities(access)
        self._build_delivery(config, access, sealer)
        self._build_sessions(config)
        self._build_decisions(access)
        self._build_access(access)
        self._build_sending()
        self._build_approvals(config)
        self._build_runs(config)
        self._build_chains(config)
        self._build_inbox()
        self._register_tasks()

    def _build_identities(self, access: Access) -> None:
        store, channels, clock, ids = self.store, self.channels, self.clock, self.ids
        resolves = access.resolver is not None
        self.visitors = UnlinkedVisitors(store, channels)
        self.link_policy = TierPolicy(access.link_policy, channels)
        self.principals = Principals(store, channels, self.link_policy, clock, ids, resolves_itself=resolves)
        self.keys = IdentityKeys(store, ids, clock, access.resolver, self.principals)
        grouped = {
            name
            for name, channel in channels.items()
            if channel.conversation_scope == "per_conversation" and can_push(channel)
        }
        self.contacts = Contacts(store, clock, grouped=grouped, introduces=resolves)
        self._rules = list_rules(channels, access.default_allowlist)
        self._authorizer = Authorizer(self.keys, self._rules, access.linker)

    def _build_delivery(self, config: HostConfig, access: Access, sealer: Sealer) -> None:
        store, channels, clock, ids, keys = self.store, self.channels, self.clock, self.ids, self.keys
        shared = {name for name, channel in channels.items() if channel.shares_inbox_per_person}
        self.planner = Planner(
            store,
            channels,
            ids,
            clock,
            known=lambda owner: keys.list_addresses(owner, shared),
            allow=self._may_deliver,
            active_window=config.seconds.active_window,
            texts=self.texts,
            seen_on=keys.find_alias,
        )
        self.presence = Presence(store, self.planner.pushing, introduces=access.resolver is not None)
        self.aliases, self.names = Aliases(store, channels), PersonNames(store)
        schedule = self._outbox_schedule = OutboxSchedule(self.runner, {*self.planner.pushing, WATCHERS})
        self.watchers = RunWatchers(store, clock, ids, sealer, config.watchers, self.runner, schedule)
        pushing = {**channels, WATCHERS: WatcherChannel(self.watchers, store, channels)}
        self._approval_messages = ApprovalMessageUpdater(
            store, channels, clock, schedule, self.planner, self.aliases, self._authorizer, self.names
        )
        settle = self._approval_messages.rows_at
        self.outbox = OutboxSender(
            store, pushing, clock, self.aliases, self.spans, schedule=schedule, settle_shown=settle
        )
        self.notifier = DirectNotifier(channels, store, self.planner, self.outbox, self.texts)
        # A message that is stopped on its platform ends the event or the run that writes it: built later, asked later.
        self.live = LiveReplies(
            *(store, channels, self.planner, self.outbox, self.aliases, clock, ids),
            stop_event=lambda: self.events.look_for_cancelled(),
            stop_run=lambda owner, run_id: self.background.cancel(owner, run_id),
        )
        self.deliveries = Deliveries(store, clock, self.outbox)

    async def _may_deliver(self, source: str, destination: str) -> bool:
        return await self.link_policy.allows("deliver", source, destination)

    def _build_sessions(self, config: HostConfig) -> None:
        store, ids, grace = self.store, self.ids, config.seconds.cancel_grace
        self.turns = Turns(
            store,
            ids,
            session_wait=config.seconds.session_wait,
            cancel_grace=grace,
            rebuild_history=partial(rebuild_history, store),
            memory=HistoryMemory(config.max_history_bytes),
        )
        snapshots, watching = Snapshots(config.max_session_bytes), self.watchers.list_deliveries
        self.recorder = Recorder(store, ids, self.clock, TurnItems(self.channels), snapshots, watching)
        self._signals = signals_for(store)
        self.active = ActiveRuns(self.turns, self.recorder, cancel_grace=grace, notify=self._signals.notify)

    def _build_decisions(self, access: Access) -> None:
        schemas = self.target if isinstance(self.target, ShowsToolSchemas) else None
        keys = self.keys
        self._voters = VoterLookup(self.store, access.linker, keys.look_up, self._allow_voter, keys.get_principal)
        self.decisions = Decisions(self.store, self.clock, schemas, self._approval_messages, self.spans, self._voters)

    async def _allow_voter(self, caller: Caller) -> Allowed | None:
        """Return the decision that admits a voter on the channel of the account, or None."""
        channel = self.principals.present(caller.identity.channel)
        decision = await self._authorizer.decide(caller, channel) if channel in self.channels else None
        return decision if isinstance(decision, Allowed) else None

    def _build_access(self, access: Access) -> None:
        """Build the gate, and what links a caller at the gate."""
        run_ids = RunIds(self.ids, {channel.name: channel.run_prefix for channel in self.channels.values()})
        self._event_schedule = EventSchedule(self.runner)
        self.stored_requests = StoredRequests(
            self.store,
            self.channels,
            self._authorizer,
            self.keys,
            self.clock,
            max_bytes=access.max_link_request_bytes,
            new_run_id=run_ids.new,
            wake=self._event_schedule.wake,
        )
        self.links = links = self._build_links(access)
        linker, link_by_claims = access.linker, None
        if links is not None and linker is not None and access.link_verified_claims and isinstance(linker, ReadsClaims):
            link_by_claims = partial(links.greet, linker=linker)
        self.gate = Gate(
            self.keys,
            self.ids,
            self.clock,
            self._rules,
            linker=linker,
            link_policy=self.link_policy,
            contacts=self.contacts,
            run_ids=run_ids,
            link_by_claims=link_by_claims,
        )

    def _build_links(self, access: Access) -> Links | None:
        linker = access.linker
        if linker is None:
            return None

        def name_command(channel: str, word: str) -> str | None:
            own = self.channels.get(channel)
            name = None if own is None else command_name(own, word)
            return None if name is None else f"/{name}"

        links = Links(
            self.store,
            self.keys,
            self.ids,
            self.clock,
            policy=self.link_policy,
            messenger=self.notifier,
            questions=self.decisions,
            named=name_command,
            changed=self.notifier.links_changed,
            texts=self.texts,
            public_url=self.public_url,
            requests=self.stored_requests,
        )
        linker.use(links)
        return links

    def _build_sending(self) -> None:
        store, gate = self.store, self.gate
        self.recipients = Recipients(store, gate, self.channels)
        self.sender = ProactiveSender(
            store, gate, self.turns, self.planner, self.outbox, self.ids, self.clock, self.recipients
        )

    def _build_approvals(self, config: HostConfig) -> None:
        options, wake = config.approvals, self._event_schedule.wake
        self.answers = ApprovalAnswers(
            self.store,
            self.clock,
            self.ids,
            self.decisions,
            may_repeat=self.target.info.checkpoints,
            lifetime=options.seconds,
            expire=self._expire,
        )
        self.asking = ApprovalRequester(
            store=self.store,
            channels=self.channels,
            gate=self.gate,
            planner=self.planner,
            answers=self.answers,
            binder=RuleBinder(
                options, lambda rule: list_chosen_rule_findings(rule, self.channels.values()), self.names
            ),
            voters=self._voters,
            names=self.names,
            may_deliver=self._may_deliver,
        )
        self.votes = HttpVotes(
            store=self.store,
            channels=self.channels,
            gate=self.gate,
            keys=self.keys,
            decisions=self.decisions,
            clock=self.clock,
            ids=self.ids,
            texts=self.texts,
            resume=wake,
        )

    async def _expire(self, question: PendingApproval) -> None:
        await self.decisions.expire(question, self.gate.new_run_id, self._event_schedule.wake)

    def open_questions(self, find: FindSession, identity: ChannelIdentity) -> OpenQuestions:
        """Return the open workflow questions of a session from the point of view of one person."""
        return OpenQuestions(
            find, identity, target=self.target, store=self.store, turns=self.turns, clock=self.clock, ids=self.ids
        )

    def _build_runs(self, config: HostConfig) -> None:
        """Build the pipeline, and the background runs that it queues."""
        held = HeldRuns(self.store, self._signals, config.runs)
        routes, branches = Routes(self.planner), Branches(self.store, self.turns, self.ids, self.target.info)
        scopes: Mapping[str, ConversationScope | None] = {
            name: channel.conversation_scope if channel.session_family == "host_tracked" else None
            for name, channel in self.channels.items()
        }
        starter = RunStarter(
            target=self.target,
            turns=self.turns,
            branches=branches,
            active=self.active,
            recorder=self.recorder,
            answers=self.answers,
            idempotent_runs=held,
            routes=routes,
            scopes=scopes,
            check_writable=self.check_writable,
        )
        self.finisher = RunFinisher(
            gate=self.gate,
            starter=starter,
            turns=self.turns,
            branches=branches,
            recorder=self.recorder,
            answers=self.answers,
            planner=self.planner,
            outbox=self.outbox,
            routes=routes,
            asking=self.asking,
            live=self.live,
        )
        self.runs = AdmittedRuns(
            target=self.target,
            channels=self.channels,
            turns=self.turns,
            active=self.active,
            starter=starter,
            finisher=self.finisher,
            spans=self.spans,
        )
        self.background = self._build_background(config, held)
        self.deferral = self._build_deferral(routes, branches, scopes)
        self.pipeline = Pipeline(
            target=self.target,
            channels=self.channels,
            gate=self.gate,
            answers=self.answers,
            deferral=self.deferral,
            starter=starter,
            runs=self.runs,
            stored_requests=self.stored_requests,
            spans=self.spans,
        )

    def _build_deferral(
        self, routes: Routes, branches: Branches, scopes: Mapping[str, ConversationScope | None]
    ) -> Deferral:
        return Deferral(
            turns=self.turns,
            branches=branches,
            active=self.active,
            answers=self.answers,
            presence=self.presence,
            routes=routes,
            enqueue=self.background.submit,
            scopes=scopes,
            check_writable=self.check_writable,
        )

    def _build_background(self, config: HostConfig, held: HeldRuns) -> BackgroundDispatcher:
        followers = Followers(self.store, self._signals)
        worker = RunWorker(
            store=self.store,
            clock=self.clock,
            signals=self._signals,
            followers=followers,
            runs=self.runs,
            finisher=self.finisher,
            live=self.live,
            watchers=self.watchers,
        )
        return BackgroundDispatcher(
            self.store,
            self.active,
            self.presence,
            self.notifier,
            held=held,
            worker=worker,
            followers=followers,
            limits=config.runs,
            on_interrupt=config.on_interrupt,
            cancel_grace=config.seconds.cancel_grace,
            shutdown_grace=config.seconds.shutdown_grace,
        )

    def _build_chains(self, config: HostConfig) -> None:
        self.keeper = LeaseKeeper(self.store, self.turns, self.active, self.background.interrupt)
        self.chains = RunChains(
            store=self.store,
            clock=self.clock,
            active=self.active,
            background=self.background,
            decisions=self.decisions,
            open_questions=self.open_questions,
            cancel_grace=config.seconds.cancel_grace,
            watchers=self.watchers,
        )

    def _build_inbox(self) -> None:
        self.events = Events(
            EventDependencies(
                store=self.store,
                channels=self.channels,
                clock=self.clock,
                ids=self.ids,
                texts=self.texts,
                aliases=self.aliases,
                gate=self.gate,
                presence=self.presence,
                planner=self.planner,
                outbox=self.outbox,
                live=self.live,
                active=self.active,
                pipeline=self.pipeline,
                deferral=self.deferral,
                runs=self.runs,
                finisher=self.finisher,
                stored_requests=self.stored_requests,
                schedule=self._event_schedule,
                spans=self.spans,
            )
        )

    def _register_tasks(self) -> None:
        self.outbox.register(self.runner)
        self.watchers.register()
        self.events.register(self.runner)
        ApprovalExpiry(self.store, self._expire, self.clock, self.asking, self._outbox_schedule).register(self.runner)

    async def ask_store(self) -> None:
        await self.store.identities.find(_NOBODY, fresh=True)
