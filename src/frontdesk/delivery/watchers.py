"""Notifies the watchers of run chains: rows in the outbox, and POST requests through the guarded client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from msgspec import json

from frontdesk.auth.sealing import Sealer
from frontdesk.clock import Clock
from frontdesk.delivery.outbox import OutboxSchedule
from frontdesk.errors import (
    DeliveryExistsError,
    InvalidRequestError,
    NotFoundError,
    PushError,
    PushLimitedError,
    PushRefusedError,
    SealError,
    TooManyRequestsError,
)
from frontdesk.hooks import show_result
from frontdesk.ids import Ids
from frontdesk.interfaces.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.interfaces.chat import PushesParts, PushPart, PushTerms, WatchesRuns
from frontdesk.interfaces.runner import DurableTaskRunner, RetryPolicy
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.channel_storage import SealedToken
from frontdesk.models.delivery import Delivery
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import FINAL, ChainStatus, RunChain, RunRecord, RunStatus
from frontdesk.models.watcher import RunNotice, RunWatcher, WatcherRecord
from frontdesk.outbound.client import GuardedClient, check_headers
from frontdesk.outbound.network import AllowedHosts

WATCHERS = "frontdesk-watchers"
"""The channel of the deliveries. No channel of a host has this name."""
TASK = "watch"
CHECK_AFTER_SECONDS = 30.0
"""The delay after which a new watcher's chain is read again.

A process that records a run may learn of a new watcher late, at most after `WATCHERS_FRESH_SECONDS`.
"""
MAX_METADATA_BYTES = 4096
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_RETRY_AFTER_SECONDS = 3600.0
LIFETIME_SECONDS = 30 * 86_400.0
_RETRIED = frozenset({408, 409, 425, 429})
_NO_KEY = "watch: headers need a seal_key; give the host one, or add the watcher without headers"
_NO_WATCHER = "There is no such watcher."


@dataclass(frozen=True)
class WatcherOptions:
    """The settings for watchers of runs."""

    max_per_caller: int = 100
    max_per_run: int = 10
    """The number of watchers of a run and the runs that continue it."""
    allowed_hosts: Sequence[str] = ()
    """Internal hosts that may receive notifications, such as `hooks.corp` or `10.0.0.7:8443`."""
    allow_http: bool = False
    """Whether URLs without TLS are accepted."""

    def findings(self) -> list[str]:
        """Return the validation findings, one line each."""
        counts = {"max_per_caller": self.max_per_caller, "max_per_run": self.max_per_run}
        wrong = [
            f"watchers: {name} must be a whole number of at least 1, got {value!r}"
            for name, value in counts.items()
            if type(value) is not int or value < 1
        ]
        if type(self.allow_http) is not bool:
            wrong.append(f"watchers: allow_http must be True or False, got {self.allow_http!r}")
        try:
            AllowedHosts(self.allowed_hosts)
        except (ValueError, TypeError) as error:
            wrong.append(f"watchers: {error}")
        return wrong


class RunWatchers:
    """The watchers of run chains, and the deliveries for them."""

    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        ids: Ids,
        sealer: Sealer,
        options: WatcherOptions,
        runner: DurableTaskRunner,
        schedule: OutboxSchedule,
    ) -> None:
        self._store, self._clock, self._ids, self._sealer, self._options = store, clock, ids, sealer, options
        self.client = GuardedClient(allowed_hosts=options.allowed_hosts, allow_http=options.allow_http)
        self._runner, self._schedule = runner, schedule

    def register(self) -> None:
        """Register the task that checks the chains of new watchers. Only before the start of the runner."""
        self._runner.register(TASK, self._check)

    async def add(
        self,
        chain: RunChain,
        channel: str,
        identity: ChannelIdentity,
        watcher: RunWatcher,
        *,
        includes_ended: bool = False,
    ) -> str:
        """Store a watcher of a chain. Return its id. With `includes_ended`, notify it of a run that has ended."""
        self.client.check(watcher.url)
        check_headers(watcher.headers)
        try:
            size = len(json.encode(watcher.metadata))
        except (TypeError, ValueError):
            raise InvalidRequestError("The metadata of a watcher must be JSON.", param="metadata") from None
        if size > MAX_METADATA_BYTES:
            limit = f"The metadata of a watcher has {MAX_METADATA_BYTES} bytes at most."
            raise InvalidRequestError(limit, param="metadata")
        watcher_id, now, newest = self._ids.new("watch"), self._clock.now(), chain.newest
        record = WatcherRecord(
            watcher_id=watcher_id,
            owner=chain.root.owner,
            chain_id=chain.root.chain_id,
            channel=channel,
            identity=identity,
            url=watcher.url,
            headers=self._seal(watcher_id, watcher.headers, now + LIFETIME_SECONDS),
            metadata=watcher.metadata,
            seen=newest.run_id if newest.status in FINAL and not includes_ended else "",
            created_at=now,
            expires_at=now + LIFETIME_SECONDS,
        )
        options = self._options
        # Scheduled first: a watcher without its check could miss the end of a run.
        payload, at = {"owner": record.owner, "watcher_id": watcher_id}, now + CHECK_AFTER_SECONDS
        await self._runner.schedule(TASK, payload, task_id=f"{TASK}:{watcher_id}", at=at)
        async with self._store.transaction() as transaction:
            transaction.add_watcher(record, most_of_owner=options.max_per_caller, most_of_chain=options.max_per_run)
        if includes_ended:
            await self._check(payload)
        return watcher_id

    async def list(self, owner: str, chain_id: str) -> Sequence[RunWatcher]:
        found = await self._store.watchers.of_chain(owner, chain_id, now=self._clock.now())
        return [_without_headers(record) for record in found]

    async def remove(self, owner: str, chain_id: str, watcher_id: str) -> None:
        """Remove a watcher. Its waiting notifications are dropped when they are due."""
        record = await self._store.watchers.get(owner, watcher_id)
        if record is None or record.chain_id != chain_id or record.expires_at <= self._clock.now():
            raise NotFoundError(_NO_WATCHER)
        async with self._store.transaction() as transaction:
            transaction.remove_watcher(owner, watcher_id)

    async def list_deliveries(self, run: RunRecord, status: RunStatus, *, asks: bool) -> Sequence[Delivery]:
        """Return the deliveries for a run that ends with a status. `asks` is True if it requests input."""
        if not await self._store.watchers.may_exist():
            return ()
        now = self._clock.now()
        found = await self._store.watchers.of_chain(run.owner, run.chain_id, now=now)
        event: ChainStatus = "input_required" if asks and status == "completed" else status
        return [_build_delivery(record, run, event, now) for record in found]

    async def wake(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            await self._schedule.wake(deliveries)

    async def _check(self, payload: Mapping[str, Any]) -> None:
        """Notify a watcher of the newest run if that ended while the watcher was added."""
        owner = payload["owner"]
        record = await self._store.watchers.get(owner, payload["watcher_id"])
        if record is None:
            return
        newest = await self._store.runs.newest_of_chain(owner, record.chain_id)
        newest = newest or await self._store.runs.get(owner, record.chain_id)
        if newest is None or newest.status not in FINAL or newest.run_id == record.seen:
            return
        questions = await self._store.approvals.of_chain(owner, record.chain_id)
        asked = bool(newest.client_calls) or any(one.run_id == newest.run_id for one in questions)
        status: ChainStatus = "input_required" if asked and newest.status == "completed" else newest.status
        delivery = _build_delivery(record, newest, status, self._clock.now())
        try:
            async with self._store.transaction() as transaction:
                transaction.add_delivery(delivery, once=True)
        except DeliveryExistsError:
            return
        await self.wake([delivery])

    def _seal(self, watcher_id: str, headers: Mapping[str, str], expires_at: float) -> SealedToken | None:
        if not headers:
            return None
        if not self._sealer.has_key:
            raise SealError(_NO_KEY)
        key_id, data = self._sealer.seal(json.encode(dict(headers)), _build_binding(watcher_id))
        return SealedToken(event_id=watcher_id, key_id=key_id, data=data, expires_at=expires_at)

    def open_headers(self, record: WatcherRecord) -> Mapping[str, str]:
        """Return the decrypted headers of a watcher."""
        sealed = record.headers
        if sealed is None:
            return {}
        return json.decode(
            self._sealer.open(sealed.key_id, sealed.data, _build_binding(record.watcher_id)), type=dict[str, str]
        )


def _build_binding(watcher_id: str) -> bytes:
    return json.encode(["watcher headers", watcher_id])


def _without_headers(record: WatcherRecord) -> RunWatcher:
    return RunWatcher(watcher_id=record.watcher_id, url=record.url, metadata=record.metadata)


def _build_delivery(record: WatcherRecord, run: RunRecord, status: ChainStatus, now: float) -> Delivery:
    # The same event always has the same id, so that it is delivered once however it was noticed.
    parts = json.encode([record.watcher_id, run.run_id, status])
    delivery_id = f"dlv_{sha256(parts).hexdigest()[:40]}"
    return Delivery(
        delivery_id=delivery_id,
        answer_id=delivery_id,
        run_id=run.run_id,
        owner=record.owner,
        channel=WATCHERS,
        identity=ChannelIdentity(channel=WATCHERS, native_id=record.watcher_id),
        reference={"owner": record.owner},
        part=0,
        payload={"run_id": run.run_id, "chain_id": record.chain_id, "status": status},
        created_at=now,
        due_at=now,
    )


class WatcherChannel(Channel, PushesParts):
    """Sends the notifications of watchers. It belongs to the outbox alone and has no routes."""

    name = WATCHERS
    path = ""
    push_is_idempotent = True
    # A receiver that fails must not delay the others, so the circuit never opens.
    push_terms = PushTerms(timeout=30.0, retry=RetryPolicy(attempts=8, longest_delay=600.0), failures=2**31)

    def __init__(self, watchers: RunWatchers, store: HostStateStore, channels: Mapping[str, Channel]) -> None:
        self._watchers, self._store, self._channels = watchers, store, channels

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        return ChannelContribution()

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        return ()

    async def push_part(self, part: PushPart) -> str | None:
        """Post a notification to the URL of its watcher."""
        record = await self._store.watchers.get(part.reference["owner"], part.identity.native_id)
        if record is None:
            raise PushRefusedError(code="unwatched")
        channel = self._channels.get(record.channel)
        renders = channel if isinstance(channel, WatchesRuns) else None
        body = await self._render(record, part)
        try:
            headers = {
                **self._watchers.open_headers(record),
                "Content-Type": "application/json" if renders is None else renders.notice_media_type,
                "Idempotency-Key": part.idempotency_key,
            }
        except SealError as error:
            raise PushError(code="unsealable") from error
        post = partial(self._watchers.client.post, record.url, body, headers=headers, caller=record.owner)
        try:
            posted = await post()
        except TooManyRequestsError as error:
            raise PushLimitedError(code="too_many_requests", retry_after=error.retry_after or 1.0) from None
        except InvalidRequestError as error:
            raise PushError(code=error.code) from None
        _raise_unless_accepted(posted.status, posted.retry_after)
        return None

    async def _render(self, record: WatcherRecord, part: PushPart) -> bytes:
        """Return the body of a notification: that of the watcher's channel, or the neutral one."""
        channel, content = self._channels.get(record.channel), part.content
        body: Any = {"id": part.idempotency_key, **content}
        if isinstance(channel, WatchesRuns):
            run = await self._store.runs.get(record.owner, content["run_id"])
            if run is None:
                raise PushRefusedError(code="run_expired")
            notice = RunNotice(
                watcher=_without_headers(record),
                run_id=run.run_id,
                chain_id=record.chain_id,
                status=content["status"],
            )
            body = channel.render_notice(notice, await _show(channel, run, record.identity))
        encoded = json.encode(body)
        if len(encoded) > MAX_BODY_BYTES:
            raise PushRefusedError(code="too_large")
        return encoded


async def _show(channel: Channel, run: RunRecord, identity: ChannelIdentity) -> RunRecord:
    """Apply the response hook of a channel to a run."""
    if channel.response_hook is None or run.result is None:
        return run
    request = ChannelRequest(
        channel=channel.name,
        input=run.input,
        identity=identity,
        run_id=run.run_id,
        metadata=run.metadata,
        attributes=run.details,
    )
    shown = await show_result(channel, HostedRunResult(result=run.result, run=run), request, identity)
    return run.replace(result=shown.result)


def _raise_unless_accepted(status: int, retry_after: float | None) -> None:
    if 200 <= status <= 299:
        return
    code = f"status_{status}"
    if status in (429, 503) and retry_after is not None:
        raise PushLimitedError(code=code, retry_after=min(retry_after, MAX_RETRY_AFTER_SECONDS))
    if status >= 500 or status in _RETRIED:
        raise PushError(code=code)
    raise PushRefusedError(code=code)
