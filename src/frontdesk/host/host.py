"""`AgentFrameworkHost`: serves one target on all channels."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from agent_framework import CheckpointStorage, Message
from starlette.applications import Starlette
from starlette.middleware import Middleware

from frontdesk.admin.deliveries import Deliveries
from frontdesk.approvals.policy import ApprovalOptions
from frontdesk.auth.sealing import Sealer
from frontdesk.chat.i18n.texts import Texts, text_findings
from frontdesk.clock import Clock, SystemClock
from frontdesk.concurrency.begun import Begun
from frontdesk.concurrency.loop_lag import LoopLag
from frontdesk.concurrency.threads import TrackingExecutor
from frontdesk.delivery.watchers import WatcherOptions
from frontdesk.errors import ChannelConfigurationError, InvalidRequestError, StateDirectoryError
from frontdesk.history.staged import HistoryChoice, install_history
from frontdesk.hooks import fill_empty
from frontdesk.host.admin_socket import OperatorSocket
from frontdesk.host.app import (
    Readiness,
    Step,
    build_app,
    host_contribution_findings,
    list_contributions,
    run_all,
    well_known_findings,
)
from frontdesk.host.config import (
    AdminSocketPlace,
    HostConfig,
    RuntimeMode,
    SealKeys,
    Seconds,
    bind_address,
    build_config,
    detect_runtime_mode,
    foundry_answers,
    is_in_foundry,
    seal_keys,
    show_environment,
)
from frontdesk.host.context.groups import HostRuns
from frontdesk.host.context.host_context import HostContext
from frontdesk.host.links.commands import link_commands, require_unique_names
from frontdesk.host.validation.access import Access
from frontdesk.host.validation.channels import channel_findings, channel_warnings, usable_channels
from frontdesk.host.validation.configuration import (
    DesignNames,
    Spelling,
    approval_findings,
    argument_findings,
    as_list,
    bind_findings,
    checks_names,
    contribution_findings,
    get_origin_rule,
    history_findings,
    interrupt_findings,
    list_polling_warnings,
    memory_warnings,
    origin_warnings,
    push_findings,
    require_instances,
    runner_findings,
    runtime_findings,
    runtime_warnings,
    seal_findings,
    socket_findings,
    store_findings,
    worker_findings,
)
from frontdesk.host.wiring import Components
from frontdesk.http.server_limits import ServerLimits
from frontdesk.ids import Ids, RandomIds
from frontdesk.interfaces.access import Allowlist, Decision, IdentityResolver, LinkPolicy
from frontdesk.interfaces.channel import Channel, ChannelCommand, ChannelContribution
from frontdesk.interfaces.context import ReportsReadiness
from frontdesk.interfaces.host import HostContribution
from frontdesk.interfaces.linker import IdentityLinker
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store import HostStateStore
from frontdesk.interfaces.target import RequiresApprovals, Target, TargetInfo
from frontdesk.interfaces.telemetry import Telemetry
from frontdesk.loggers import host as log
from frontdesk.models.delivery import Delivery
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ChannelRequest, OnInterrupt
from frontdesk.models.run import ContinuationToken, RunRecord, id_of_token
from frontdesk.models.session import SessionName
from frontdesk.runners.base import InProcessTaskRunner
from frontdesk.runs.limits import RunLimits
from frontdesk.state_dir.paths import HostState, StateDir, choose_store, offer_nonces
from frontdesk.targets.binding import list_providers
from frontdesk.targets.detect import adapt
from frontdesk.telemetry.spans import telemetry_findings

Callback = Callable[[], Awaitable[None]]


class Extras(Spelling):
    """The settings of a host besides `HostConfig`."""

    def __init__(
        self,
        names: DesignNames,
        linker: IdentityLinker | None,
        runner: DurableTaskRunner | None,
        texts: Mapping[str, Mapping[str, str]] | None,
        telemetry: Telemetry | None,
        seal_key: SealKeys | None,
        contributions: Sequence[HostContribution],
        on_startup: Sequence[Callback],
        on_shutdown: Sequence[Callback],
    ) -> None:
        super().__init__(names, linker, runner)
        self.texts, self.telemetry = texts, telemetry
        self.sealer = Sealer(seal_keys(seal_key), is_required=seal_key is not None)
        self.contributions = tuple(contributions)
        # As they were given, to be checked.
        self.on_startup, self.on_shutdown = on_startup, on_shutdown


_LIMITS = ServerLimits()


class AgentFrameworkHost:
    """Serves one agent, workflow or function on every channel."""

    app: Starlette
    runtime_mode: RuntimeMode

    @checks_names("AgentFrameworkHost", DesignNames.__annotations__)
    def __init__(
        self,
        target: Any,
        *,
        channels: Sequence[Channel],
        history: HistoryChoice | None = None,
        store: HostStateStore | None = None,
        state_dir: StateDir | None = None,
        checkpoint_location: str | Path | CheckpointStorage | None = None,
        runner: DurableTaskRunner | None = None,
        linker: IdentityLinker | None = None,
        identity_resolver: IdentityResolver | None = None,
        default_allowlist: Allowlist | None = None,
        link_policy: LinkPolicy | None = None,
        link_verified_claims: bool = True,
        max_link_request_bytes: int | None = None,
        middleware: Sequence[Middleware] = (),
        on_startup: Sequence[Callback] = (),
        on_shutdown: Sequence[Callback] = (),
        runtime_mode: RuntimeMode | None = None,
        allow_in_process_runner: bool = False,
        allow_anonymous: bool = False,
        allow_unsafe_state_dir: bool = False,
        session_wait_seconds: float = Seconds.session_wait,
        cancel_grace_seconds: float = Seconds.cancel_grace,
        shutdown_grace_seconds: float = Seconds.shutdown_grace,
        max_background_runs: int = RunLimits.max_background_runs,
        max_background_runs_per_caller: int = RunLimits.max_background_runs_per_caller,
        max_waiting_background_runs: int = RunLimits.max_waiting_background_runs,
        on_interrupt: OnInterrupt = HostConfig.on_interrupt,
        max_session_bytes: int = HostConfig.max_session_bytes,
        max_history_bytes: int = HostConfig.max_history_bytes,
        active_window_seconds: float = Seconds.active_window,
        approvals: ApprovalOptions | None = None,
        seal_key: SealKeys | None = None,
        texts: Mapping[str, Mapping[str, str]] | None = None,
        admin_socket: AdminSocketPlace = None,
        public_url: str | None = None,
        watchers: WatcherOptions | None = None,
        telemetry: Telemetry | None = None,
        contributions: Sequence[HostContribution] = (),
        clock: Clock | None = None,
        ids: Ids | None = None,
        **names: Unpack[DesignNames],
    ) -> None:
        mode, sizes = (runtime_mode, allow_in_process_runner, allow_anonymous), (max_session_bytes, max_history_bytes)
        seconds = Seconds(session_wait_seconds, cancel_grace_seconds, shutdown_grace_seconds, active_window_seconds)
        runs = RunLimits(max_background_runs, max_background_runs_per_caller, max_waiting_background_runs)
        self._config = build_config(
            mode, seconds, runs, on_interrupt, sizes, approvals, admin_socket, public_url, watchers
        )
        self._extras = Extras(names, linker, runner, texts, telemetry, seal_key, contributions, on_startup, on_shutdown)
        linking = (link_policy, link_verified_claims, max_link_request_bytes)
        access = Access(identity_resolver, self._extras.linker, default_allowlist, *linking)
        self._state = HostState(state_dir, checkpoint_location, store, access.linker, allow_unsafe_state_dir)
        self._assemble(target, history, as_list(channels), store, access, middleware, clock or SystemClock(), ids)

    def _assemble(
        self,
        target: Any,
        history: HistoryChoice | None,
        channels: Sequence[Channel],
        store: HostStateStore | None,
        access: Access,
        middleware: Sequence[Middleware],
        clock: Clock,
        ids: Ids | None,
    ) -> None:
        if wrong := argument_findings(self._extras, store, clock, ids, middleware):
            raise ChannelConfigurationError([*wrong, *self._config.findings(), *channel_findings(channels)])
        self.runtime_mode, self._mode_reason = detect_runtime_mode(self._config.runtime_mode)
        self._target = self._check(target, history, channels, store, access)
        self._parts = self._put_together(channels, store, access, clock, ids)
        self._operators = OperatorSocket(self._parts, self._config.admin_socket)
        self._middleware = tuple(middleware)
        self._allows_origin = get_origin_rule(self._middleware)
        self.app = self._build(channels)

    def _check(
        self,
        target: Any,
        history: HistoryChoice | None,
        channels: Sequence[Channel],
        store: HostStateStore | None,
        access: Access,
    ) -> Target:
        runner = self._extras.runner
        require_instances(store=store, runner=runner, linker=access.linker, default_allowlist=access.default_allowlist)
        usable = usable_channels(channels)
        findings = self._config.findings() + channel_findings(channels) + access.findings(usable)
        findings += runtime_findings(self.runtime_mode, self._mode_reason, runner, self._config)
        findings += store_findings(store)
        findings += runner_findings(runner, store) + self._state.findings + self._extras.findings
        findings += socket_findings(self._config.admin_socket, store, self._state.database)
        findings += self._extras.sealer.findings() + seal_findings(usable, has_key=self._extras.sealer.has_key)
        findings += text_findings(self._extras.texts) + telemetry_findings(self._extras.telemetry)
        by_name = {channel.name: channel for channel in usable}
        findings += host_contribution_findings(self._extras.contributions, by_name)
        adapted: Target | None = None
        try:
            install = partial(
                install_history, chosen=history, is_shared=store is not None and store.lease_seconds is not None
            )
            adapted = adapt(target, install, self._state.choose_checkpoints())
            findings += adapted.findings + interrupt_findings(self._config, adapted.info)
            findings += history_findings(history, adapted.info)
            findings += push_findings(usable, adapted.info)
            findings += approval_findings(self._config.approvals, usable, adapted, linked=access.linker is not None)
        except ChannelConfigurationError as error:
            findings += error.findings
        if findings or adapted is None:
            raise ChannelConfigurationError(findings)
        if isinstance(adapted, RequiresApprovals):
            adapted.require_approvals(set(self._config.approvals.tools), set(self._config.approvals.dynamic_tools))
        self._state.offer_links()
        return adapted

    def _put_together(
        self,
        channels: Sequence[Channel],
        store: HostStateStore | None,
        access: Access,
        clock: Clock,
        ids: Ids | None,
    ) -> Components:
        show_environment([*(channel.auth for channel in channels), *list_providers(self._target.native)])
        chosen = choose_store(store, self._state.database, clock)
        return Components(
            target=self._target,
            channels={channel.name: channel for channel in channels},
            store=chosen,
            runner=self._extras.runner or InProcessTaskRunner(chosen, clock=clock),
            config=self._config,
            clock=clock,
            ids=ids or RandomIds(),
            access=access,
            sealer=self._extras.sealer,
            texts=Texts(self._extras.texts),
            telemetry=self._extras.telemetry,
        )

    def _contribute(self, channels: Sequence[Channel]) -> list[tuple[Channel, ChannelContribution]]:
        contexts = [self._get_context(channel.name) for channel in channels]
        made = [(channel, channel.contribute(context)) for channel, context in zip(channels, contexts, strict=True)]
        findings = [
            finding for channel, contribution in made for finding in contribution_findings(channel.name, contribution)
        ]
        if findings:
            raise ChannelConfigurationError(findings)
        if findings := well_known_findings(made):
            raise ChannelConfigurationError(findings)
        for (channel, contribution), context in zip(made, contexts, strict=True):
            self._offer(channel, contribution.commands, context)
        return made

    def _offer(self, channel: Channel, commands: Sequence[ChannelCommand], context: HostContext) -> None:
        """Register the commands of a channel, and the link commands if there is a linker."""
        context.add_commands(commands)
        self._parts.notifier.offer(channel.name, commands)
        if self._parts.links is not None:
            added = link_commands(channel, context.links, self._parts.notifier, self._parts.texts)
            require_unique_names(channel.name, commands, added)
            context.add_commands(added, before_link=True)

    def _build(self, channels: Sequence[Channel]) -> Starlette:
        self._contributions = self._contribute(channels)
        self._lag = LoopLag()
        self._readiness = Readiness(self._parts.ask_store, self._parts.check_writable)
        self._others = list_contributions(self._parts.linker, self._extras.contributions, self._parts.channels)
        return build_app(
            self._contributions,
            others=self._others,
            middleware=self._middleware,
            lifespan=self.lifespan,
            readiness=self._readiness,
            channels_ready=self._channels_ready,
            answers=foundry_answers(),
            before_cancel=self._parts.active.stop_requests,
        )

    def _channels_ready(self) -> dict[str, bool]:
        return {
            channel.name: self._readiness.is_serving and channel.is_ready()
            for channel in self.channels
            if isinstance(channel, ReportsReadiness)
        }

    def _get_context(self, channel: str) -> HostContext:
        return HostContext(
            channel,
            self._target.info,
            self._parts,
            anonymous_allowed=self._config.allow_anonymous,
            adopts_ids=is_in_foundry() and self._parts.store.lease_seconds is None,
            allows_origin=self._allows_origin,
        )

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(channel for channel, _ in self._contributions)

    @property
    def target(self) -> TargetInfo:
        return self._target.info

    @property
    def warnings(self) -> list[str]:
        """Return warnings about settings that work, but not optimally."""
        return [
            *self._target.warnings,
            *self._state.warnings(self._kind_of_state),
            *channel_warnings(self.channels, durable=self._parts.store.durable),
            *(f"{other.name}: {warning}" for other in self._others for warning in other.warnings),
            *origin_warnings(self._middleware, self.channels),
            *self._parts.storages.warnings(),
            *runtime_warnings(self.runtime_mode, self._parts.runner),
            *memory_warnings(self.runtime_mode, self._parts.store),
            *list_polling_warnings(self.runtime_mode, self.channels),
        ]

    def _describe(self) -> list[str]:
        """Return a summary of the host for the startup log, one line for each component."""
        target, parts = self._target.info, self._parts
        runner, store = type(parts.runner).__name__, type(parts.store).__name__
        return [
            f"target {target.name!r} ({target.kind}), state in {store}, runner {runner}",
            *(
                f"channel {channel.name!r} ({type(channel).__name__}) at {channel.path or '/'}"
                for channel in self.channels
            ),
        ]

    @property
    def _kind_of_state(self) -> str:
        """Return the kind of target by its state. An agent with checkpoints counts as a workflow."""
        return "workflow" if self._target.info.checkpoints else self._target.info.kind

    async def authorize(
        self,
        who: Caller | ChannelIdentity,
        *,
        require_link: bool | None = None,
        allowlist: Allowlist | None = None,
        verified_claims: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Evaluate the access rule of the caller's channel, or another rule, without side effects.

        A caller has its own claims. Those of an identity are given as `verified_claims` by code that has verified them.
        """
        return await self._parts.gate.ask(who, require_link, allowlist, verified_claims)

    def reset_session(self, isolation_key: str) -> Begun[str]:
        """Start a new tracked session for a person and keep the old one with its history. Await it for the new id.

        It starts immediately. A command that does not await it ends when it is done.
        """
        given: Any = isolation_key
        if not isinstance(given, str) or not given:
            raise ValueError(f"isolation_key must be a non-empty string, got {given!r}")
        return Begun(self._parts.turns.rotate(SessionName(owner=isolation_key, kind="tracked")))

    @property
    def deliveries(self) -> Deliveries:
        """Return the API to list, retry and drop deliveries."""
        return self._parts.deliveries

    async def deliver(
        self, to: str | ChannelIdentity, message: str | Message, *, idempotency_key: str | None = None
    ) -> Sequence[Delivery]:
        """Send a message to a person, by isolation key or identity. The same idempotency key sends it only once."""
        return await self._parts.sender.deliver(to, message, idempotency_key)

    async def run_in_background(self, request: ChannelRequest, *, identity: ChannelIdentity) -> ContinuationToken:
        """Start a background run for a person. The request comes from the operator, so it may name any person."""
        if request.channel not in self._parts.channels:
            raise InvalidRequestError(f"The host has no channel named {request.channel!r}.", param="channel")
        run = await self._parts.pipeline.submit(fill_empty(request).replace(background=True), Caller(identity=identity))
        return ContinuationToken(run_id=run.run_id)

    async def get_continuation(self, token: ContinuationToken | str, *, identity: ChannelIdentity) -> RunRecord:
        """Return the state of a background run, given its token as object or text."""
        return await HostRuns(identity.channel, self._parts).get(Caller(identity=identity), id_of_token(token))

    async def cancel(self, token: ContinuationToken | str, *, identity: ChannelIdentity) -> RunRecord:
        """Cancel a background run, given its token as object or text."""
        return await HostRuns(identity.channel, self._parts).cancel(Caller(identity=identity), id_of_token(token))

    def serve(
        self,
        host: str | None = None,
        port: int | None = None,
        *,
        limits: ServerLimits | None = _LIMITS,
        **uvicorn_options: Any,
    ) -> None:
        """Run the server and return when it has stopped. The default address is that of `bind_address`."""
        from frontdesk.server.uvicorn_server import run

        host, port = bind_address(host, port)
        self.check_bind(host)
        # Without a limit the server would wait for the last open stream to end by itself.
        uvicorn_options.setdefault("timeout_graceful_shutdown", round(self._config.seconds.shutdown_grace))
        # Anybody can send the headers of a proxy, and a check by address must see the real peer.
        uvicorn_options.setdefault("proxy_headers", False)
        run(self.app, limits, host=host, port=port, **uvicorn_options)

    def check_bind(self, address: str) -> None:
        """Reject a bind address that is reachable by others without credentials."""
        findings = bind_findings(address, self.channels, self._config)
        if findings:
            raise ChannelConfigurationError(findings)

    def check_state(self) -> None:
        """Reject a state location in which this process can't write."""
        findings = self._state.unwritable(self._kind_of_state)
        if findings:
            raise ChannelConfigurationError(findings)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Process stored work during the block without serving: answer pending events and send deliveries."""
        findings = worker_findings(self._parts.store)
        if findings:
            raise ChannelConfigurationError(findings)
        async with self._live(serving=False):
            yield

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Run the host for the duration of the block. Use it as `lifespan` of an app that mounts the host."""
        async with self._live(serving=True):
            yield

    @asynccontextmanager
    async def _live(self, *, serving: bool) -> AsyncGenerator[None]:
        executor = TrackingExecutor(thread_name_prefix="frontdesk")
        asyncio.get_running_loop().set_default_executor(executor)
        log.info("runtime mode: %s (%s)", self.runtime_mode, self._mode_reason)
        for line in self._describe():
            log.info(line)
        for warning in self.warnings:
            log.warning(warning)
        try:
            with self._readiness.run(), self._state.lock(self._kind_of_state, self._parts.clock):
                async with self._start(serving):
                    yield
        except StateDirectoryError as error:
            log.error("failed to start the state: %s", error)
            raise

    @asynccontextmanager
    async def _start(self, serving: bool) -> AsyncGenerator[None]:
        # Without the store nothing else can begin.
        await run_all("start-up", [("store", self._parts.store.open)])
        try:
            offer_nonces((channel.auth for channel in self.channels), self._parts.store)
            await run_all("start-up", self._list_start_steps(serving))
            self._readiness.is_serving = True
            yield
        except BaseException:
            self._readiness.is_serving = False
            # The first failure is the one to raise, and `run_all` logs the others.
            with suppress(Exception):
                await run_all("shut-down", self._list_stop_steps())
            raise
        self._readiness.is_serving = False
        await run_all("shut-down", self._list_stop_steps())

    def _list_start_steps(self, serving: bool) -> list[Step]:
        parts = self._parts
        steps: list[Step] = [("loop lag", self._lag.start), ("leases", parts.keeper.start)]
        steps += [("principals", parts.principals.start), ("storages", parts.storages.start)]
        steps += [("aliases", parts.aliases.start), ("background", parts.background.start)]
        steps += [(other.name, callback) for other in self._others for callback in other.on_startup]
        for channel, contribution in self._contributions:
            steps += [(f"channel {channel.name}", callback) for callback in contribution.on_startup]
        steps += [(_name(callback), callback) for callback in self._extras.on_startup]
        # Events of an earlier process are taken up once the channels can send, and before they receive new ones.
        steps += [("inbox", parts.events.worker.start), ("runner", parts.runner.start)]
        for channel, contribution in self._contributions if serving else ():
            steps += [(f"channel {channel.name}", callback) for callback in contribution.on_serving]
        for other in self._others if serving else ():
            steps += [(other.name, callback) for callback in other.on_serving]
        return [*steps, ("admin socket", self._operators.start)] if serving else steps

    def _list_stop_steps(self) -> list[Step]:
        grace, parts = self._config.seconds.shutdown_grace, self._parts
        steps: list[Step] = [("admin socket", self._operators.stop)]
        steps += [(_name(callback), callback) for callback in self._extras.on_shutdown]
        steps += [("inbox", parts.events.worker.halt), ("background", parts.background.drain)]
        # Deliveries that are still to be sent need their channel.
        steps += [("runner", lambda: parts.runner.drain(grace)), ("inbox", parts.events.worker.stop)]
        steps.append(("runs", parts.active.stop_all))
        for channel, contribution in reversed(self._contributions):
            steps += [(f"channel {channel.name}", callback) for callback in contribution.on_shutdown]
        for other in reversed(self._others):
            steps += [(other.name, callback) for callback in other.on_shutdown]
        steps += [("leases", parts.keeper.stop), ("leaderships", parts.leaders.stop), ("aliases", parts.aliases.stop)]
        steps += [("principals", parts.principals.stop), ("loop lag", self._lag.stop)]
        steps.append(("store", parts.store.close))
        return steps


def _name(callback: Callback) -> str:
    return getattr(callback, "__qualname__", repr(callback))
