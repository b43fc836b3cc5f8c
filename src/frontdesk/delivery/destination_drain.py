"""Sends the due parts of one destination in order, and records each attempt.

Records contain the wall-clock time. Waits use the monotonic clock, because the wall clock may be set meanwhile.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Literal, NamedTuple

from frontdesk.chat.aliases import Aliases
from frontdesk.clock import Clock, Moment
from frontdesk.concurrency.timeouts import until_available
from frontdesk.delivery.awaited import INTERRUPTED
from frontdesk.delivery.limits import Ages, Circuit, SendLimits, Waits, pause
from frontdesk.delivery.push import (
    add_attempt,
    after_error,
    before_call,
    build_receipt,
    build_reference,
    call_channel,
    look_up,
    push_seconds,
    read_payload,
    send,
)
from frontdesk.errors import CodecError, LostDeliveryError, PushError, StoreUnavailableError
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import SharesRates, SupportsPushLookup
from frontdesk.interfaces.runner import RetryPolicy
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import deliveries as log
from frontdesk.models.approval import ApprovalPlace
from frontdesk.models.base import FrozenStruct
from frontdesk.models.delivery import Delivery, DeliveryStatus, Destination
from frontdesk.telemetry.spans import NO_SPANS, Spans, classify_outcome

NEVER = float("inf")


class Retry(FrozenStruct, frozen=True, kw_only=True):
    """Try again after a number of seconds."""

    after: float
    counts: bool = True
    """Whether the try counts as an attempt; one that the platform has deferred does not."""


class Dead(FrozenStruct, frozen=True, kw_only=True):
    """Do not try again."""

    reason: str


class Unknown(FrozenStruct, frozen=True, kw_only=True):
    """The part may have arrived."""


Next = Retry | Dead | Unknown


def decide(error: PushError, *, attempts: int, policy: RetryPolicy, jitter: float, left: float = NEVER) -> Next:
    """Decide how to handle an error. `jitter` is between 0 and 1. After `left` seconds no more attempts are made.

    A delay requested by the platform is always obeyed, however long it is. It does not count as an attempt, because a
    rate limit gives no information about whether the part can be delivered.
    """
    if error.permanent:
        return Dead(reason=error.code)
    if error.unknown:
        return Unknown()
    if error.retry_after is not None:
        after = max(error.retry_after, 0.0) + jitter * policy.first_delay * 0.1
        return Retry(after=after, counts=False) if after <= left else Dead(reason=f"{error.code}: too old")
    if attempts >= policy.attempts:
        return Dead(reason=f"{error.code}: {attempts} attempts")
    after = delay(policy, attempts, jitter)
    return Retry(after=after) if after <= left else Dead(reason=f"{error.code}: too old")


def delay(policy: RetryPolicy, attempts: int, jitter: float) -> float:
    """Return the delay after this many attempts: between half of the policy's delay and all of it."""
    return policy.delay(attempts) * (0.5 + 0.5 * jitter)


def after_unknown(
    *, repeatable: bool, can_ask: bool, attempts: int, policy: RetryPolicy
) -> Literal["ask", "repeat", "leave"]:
    """Decide how to handle a part with unknown delivery status.

    Query the platform if possible. Otherwise repeat the part only if a duplicate is harmless. Otherwise leave it
    for operators to resolve.
    """
    if attempts >= policy.attempts:
        return "leave"
    if can_ask:
        return "ask"
    return "repeat" if repeatable else "leave"


def spread(delivery_id: str, attempts: int) -> float:
    """Return a pseudo-random number between 0 and 1 that is stable for an attempt of a delivery."""
    digest = sha256(f"{delivery_id} {attempts}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


SettleShown = Callable[[ApprovalPlace], Awaitable[Sequence[Delivery]]]
"""Returns the deliveries that settle a message; none while its question waits."""
EARLIER = "an earlier part is dead"
_TOO_OLD = "too old"
_AT_ONCE = float("-inf")
"""A time in the past: the rest is read again, because it may have changed with this part."""
_MAX_PARTS_PER_TURN = 200
"""The number of parts that are sent before other destinations get their turn."""
_MARGIN_SECONDS = 10.0
"""The seconds for which a part stays claimed after its push must have timed out. Half of them may pass before it."""
_RETRY_INTERVAL_SECONDS = 0.5


class ChannelOutlet(NamedTuple):
    channel: Channel
    limits: SendLimits
    circuit: Circuit
    waits: Waits
    spans: Spans = NO_SPANS

    def rate_key(self, row: Delivery) -> str:
        """Return the key under which a part shares the rates of others."""
        if not isinstance(self.channel, SharesRates):
            return ""
        try:
            return call_channel(partial(self.channel.rate_key, row.identity, row.reference))
        except CodecError as error:
            log.error("channel returned no rate key: channel=%s: %s", self.channel.name, error)
            return ""


class DestinationDrain:
    """Drains the queue of a destination until it is empty or has to wait."""

    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        ages: Ages,
        outlet: ChannelOutlet,
        destination: Destination,
        aliases: Aliases,
        kept: Collection[str] = (),
        settle_shown: SettleShown | None = None,
    ) -> None:
        """Serve a destination, except for the parts that are `kept` by a reply of this process."""
        self._kept = kept
        self._settle_shown = settle_shown
        self._aliases = aliases
        self._store = store
        self._clock = clock
        self._ages = ages
        self._outlet = outlet
        self._terms = outlet.channel.push_terms
        self._destination = destination
        self._unwritten: Delivery | None = None
        self._sent = 0

    async def go(self) -> float | None:
        """Send due parts. Return the time of the next visit (monotonic clock), or None if nothing is left."""
        try:
            while rows := await self._store.outbox.open(self._destination):
                return_at = await self._send_all(rows)
                if return_at is not None:
                    return return_at
                await self._flush()
                if self._sent >= _MAX_PARTS_PER_TURN:
                    return self._clock.steady()
            self._outlet.waits.end(self._destination[1])
            return None
        finally:
            await self._flush()

    async def _send_all(self, rows: Sequence[Delivery]) -> float | None:
        for row in rows:
            try:
                return_at = await self._step(row)
            except LostDeliveryError:
                # Another process has changed this part, and perhaps the rest too.
                return None
            if return_at is not None:
                return None if return_at <= _AT_ONCE else return_at
        return None

    async def _step(self, row: Delivery) -> float | None:
        """Process one part as far as possible. Return a time if it and all following parts have to wait until then."""
        steady = self._clock.steady()
        if row.held_for > 0 or row.delivery_id in self._kept:
            return steady + max(row.held_for, _RETRY_INTERVAL_SECONDS)
        # The time of queueing by the steady clock: the age of the part is the difference, now and later.
        queued = steady - self._ages.of(row, self._outlet.waits.since(row))
        if row.status == "sending":
            # The process that sent it is gone.
            return await self._mark_unknown(row, INTERRUPTED, queued)
        if steady - queued > self._terms.longest_age:
            return await self._end(row, "unknown" if row.status == "unknown" else "dead", _TOO_OLD)
        if (until := self._waits_until(row, steady)) > steady:
            return until
        channel = self._outlet.channel
        if (changed := before_call(row, can_edit=channel.push_edits, now=self._clock.now())) is not None:
            await self._write(changed)
            return _AT_ONCE
        free_at = self._outlet.circuit.free_at(steady)
        if free_at <= steady:
            free_at = self._outlet.limits.enter(self._destination[1], steady, row.kind, self._outlet.rate_key(row))
        if free_at > steady:
            if self._outlet.waits.until(row) is None:
                self._outlet.waits.begin(row, steady)
            return free_at
        return await (self._look_up(row, queued) if row.status == "unknown" else self._send(row, queued))

    def _waits_until(self, row: Delivery, steady: float) -> float:
        """Return the end of the wait of a part: as noted in this process, or else as recorded."""
        until = self._outlet.waits.until(row)
        if until is None and (left := pause(row, self._clock.now())) > 0:
            until = steady + left
            self._outlet.waits.begin(row, until)
        return steady if until is None else until

    async def _send(self, row: Delivery, queued: float) -> float | None:
        # Before the claim: a part that only a newer version can read is left to it.
        payload = read_payload(row)
        circuit = self._outlet.circuit
        is_probe = circuit.is_open
        circuit.enter()
        try:
            reference = await build_reference(self._store.identities, row)
            moved = await self._aliases.outward_delivery(row)
            seconds = push_seconds(self._outlet.channel, payload)
            claimed = await self._claim(row, seconds)
            addressed = claimed if moved is row else claimed.replace(conversation_id=moved.conversation_id)
            span = self._outlet.spans.begin("delivery", row.channel, row.trace)
            try:
                receipt = await send(self._outlet.channel, addressed, payload, reference, seconds)
            except PushError as error:
                span.end(error.code)
                return await self._record_failure(claimed, error, is_probe, queued)
            except BaseException as error:
                span.end(classify_outcome(error))
                raise
            span.end("accepted")
        except BaseException:
            circuit.leave()
            raise
        circuit.succeed()
        now = self._clock.now()
        done = add_attempt(claimed, now, "accepted").replace(receipt=build_receipt(claimed, receipt))
        # Written together with the next part, which often follows at once.
        self._unwritten = done.replace(status="accepted", error=None, ended_at=now)
        return None

    async def _claim(self, row: Delivery, seconds: float) -> Delivery:
        """Record that a part is being sent for this many seconds, together with the outcome of the previous part."""
        claimed, hold = row.replace(status="sending", attempts=row.attempts + 1), seconds + _MARGIN_SECONDS
        claimed_at = Moment.of(self._clock)
        await self._commit(claimed, hold=hold)
        self._sent += 1
        # A process that has stood still since then would send beside another one.
        while self._store.lease_seconds is not None and claimed_at.age(self._clock) > _MARGIN_SECONDS / 2:
            claimed_at, claimed = Moment.of(self._clock), claimed.replace(fence=claimed.fence + 1)
            await until_available(partial(self._commit, claimed, hold=hold), pause=_RETRY_INTERVAL_SECONDS)
        return claimed.replace(fence=claimed.fence + 1)

    async def _record_failure(self, row: Delivery, error: PushError, is_probe: bool, queued: float) -> float:
        """Record a failure. The failure of a probe of an open circuit does not count as an attempt of the part."""
        steady = self._clock.steady()
        self._note_error(error, steady)
        if (changed := after_error(row, error, self._clock.now())) is not None:
            await self._write(changed)
            return _AT_ONCE
        if is_probe and self._outlet.circuit.is_open:
            row = row.replace(attempts=row.attempts - 1)
        now, age = self._clock.now(), steady - queued
        decision = decide(
            error,
            attempts=row.attempts,
            policy=self._terms.retry,
            jitter=spread(row.delivery_id, len(row.history)),
            left=self._terms.longest_age - age,
        )
        if isinstance(decision, Dead):
            return await self._end(add_attempt(row, now, error.code), "dead", decision.reason)
        if isinstance(decision, Retry):
            attempts = row.attempts if decision.counts else row.attempts - 1
            # Parts that wait for the platform go before one that has just failed.
            after = max(decision.after, 2 * (self._outlet.circuit.free_at(steady) - steady))
            retried = add_attempt(row, now, error.code, age).replace(
                status="pending", attempts=attempts, error=error.code
            )
            return await self._wait(retried.replace(due_at=now + after), steady + after)
        return await self._mark_unknown(row, error.code, queued)

    async def _wait(self, row: Delivery, until: float) -> float:
        await self._write(row)
        self._outlet.waits.begin(row.replace(fence=row.fence + 1), until)
        return until

    def _note_error(self, error: PushError, now: float) -> None:
        circuit = self._outlet.circuit
        if error.retry_after is not None:
            circuit.leave()
            if error.everywhere:
                self._outlet.limits.close(now + error.retry_after)
        elif error.permanent:
            # It was refused, so the platform works.
            circuit.succeed()
        elif circuit.fail(now):
            log.warning("circuit opened, pausing deliveries: channel=%s", self._outlet.channel.name)

    async def _end(self, row: Delivery, status: DeliveryStatus, reason: str) -> float:
        log.error(
            "delivery not sent: delivery_id=%s channel=%s status=%s: %s", row.delivery_id, row.channel, status, reason
        )
        await self._write(row.replace(status=status, error=reason, ended_at=self._clock.now()))
        return _AT_ONCE

    async def _mark_unknown(self, row: Delivery, code: str, queued: float) -> float:
        """Record that the status of a part is unknown: look it up, send it again, or leave it."""
        channel, policy = self._outlet.channel, self._terms.retry
        how = after_unknown(
            repeatable=channel.push_is_idempotent or row.edits,
            can_ask=isinstance(channel, SupportsPushLookup) and not row.edits,
            attempts=row.attempts,
            policy=policy,
        )
        now, steady = self._clock.now(), self._clock.steady()
        failed = add_attempt(row, now, code, steady - queued).replace(error=code)
        if how == "leave":
            log.warning("delivery status unknown: delivery_id=%s channel=%s: %s", row.delivery_id, row.channel, code)
            await self._write(failed.replace(status="unknown", ended_at=now))
            return _AT_ONCE
        after = 0.0 if code == INTERRUPTED else delay(policy, row.attempts, spread(row.delivery_id, row.attempts))
        waiting = failed.replace(status="unknown" if how == "ask" else "pending", due_at=now + after)
        await self._wait(waiting, steady + after)
        return _AT_ONCE

    async def _look_up(self, row: Delivery, queued: float) -> float:
        """Query the platform for the status of a part."""
        channel = self._outlet.channel
        await self._flush()
        if not isinstance(channel, SupportsPushLookup):
            return await self._end(row, "unknown", row.error or INTERRUPTED)
        payload, reference = read_payload(row), await build_reference(self._store.identities, row)
        try:
            addressed = await self._aliases.outward_delivery(row)
            receipt = await look_up(self._outlet.channel, channel, addressed, payload, reference)
        except PushError as error:
            return await self._mark_unknown(row.replace(attempts=row.attempts + 1), error.code, queued)
        now = self._clock.now()
        if receipt is None:
            missing = add_attempt(row, now, "not found", self._clock.steady() - queued)
            await self._write(missing.replace(status="pending", due_at=now))
        else:
            arrived = add_attempt(row, now, "found")
            await self._write(arrived.replace(status="accepted", receipt=receipt, error=None, ended_at=now))
        return _AT_ONCE

    async def _flush(self) -> None:
        if self._unwritten is not None:
            # `_commit` has handled the part that another process has changed.
            with suppress(LostDeliveryError):
                await self._write(None)

    async def _write(self, changed: Delivery | None) -> None:
        """Write the outcome of a sent part. Waits for the store without a limit so that the outcome is not lost."""
        await until_available(lambda: self._commit(changed), pause=_RETRY_INTERVAL_SECONDS)

    async def _commit(self, changed: Delivery | None, *, hold: float = 0.0) -> None:
        before, self._unwritten = self._unwritten, None
        try:
            settling = await self._list_settled(before, changed)
            async with self._store.transaction() as transaction:
                for row in (before, changed):
                    if row is not None:
                        transaction.change_delivery(row, hold=hold if row is changed else 0.0)
                if changed is not None and changed.status == "dead" and not changed.is_echo:
                    transaction.end_rest(changed, error=EARLIER, at=changed.ended_at or 0.0)
                for row in settling:
                    transaction.add_delivery(row)
        except StoreUnavailableError:
            self._unwritten = before
            raise
        except LostDeliveryError:
            for row in (before, changed):
                if row is not None and row.status == "accepted":
                    await self._record_receipt(row)
            raise
        if not settling:
            await self._settle_late(before, changed)

    async def _list_settled(self, *rows: Delivery | None) -> Sequence[Delivery]:
        """Return the updates for messages whose questions were decided before their location was recorded."""
        settle = self._settle_shown
        places = [] if settle is None else [row.shown_question for row in rows if row is not None]
        return [row for place in places if place is not None and settle is not None for row in await settle(place)]

    async def _settle_late(self, *rows: Delivery | None) -> None:
        """Update messages whose questions were decided while their location was being written."""
        # What was to be written is written, and must not be repeated.
        with suppress(StoreUnavailableError):
            settling = await self._list_settled(*rows)
            if settling:
                async with self._store.transaction() as transaction:
                    for row in settling:
                        transaction.add_delivery(row)

    async def _record_receipt(self, accepted: Delivery) -> None:
        """Record the receipt of a part whose claim was lost, because it has arrived anyway."""
        row = await self._store.outbox.get(accepted.delivery_id)
        if row is None or row.status == "accepted" or (row.status == "sending" and row.fence != accepted.fence):
            return
        settling = await self._list_settled(accepted)
        async with self._store.transaction() as transaction:
            transaction.change_delivery(accepted.replace(fence=row.fence))
            for settled in settling:
                transaction.add_delivery(settled)
