"""One trip to one destination: what is due is sent part by part, and each step is written down.

What is written down has the time of day. Whether something waits is a question to the steady clock, because the time of
day may be set while it does.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from frontdesk.abc.channel import Channel
from frontdesk.abc.push import SupportsPushLookup
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import Attempt, Delivery, DeliveryStatus, Destination
from frontdesk.delivery.circuit import Circuit
from frontdesk.delivery.limits import Limits
from frontdesk.delivery.push import look_up, read_payload, reference_of, send
from frontdesk.delivery.retry import Dead, Retry, after_unknown, decide, delay, spread
from frontdesk.delivery.waits import Ages, Waits, pause
from frontdesk.errors import LostDeliveryError, PushError, StoreUnavailableError
from frontdesk.kit.aio.retry import until_available
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.loggers import deliveries as log

EARLIER = "an earlier part is dead"
INTERRUPTED = "interrupted"
_TOO_OLD = "too old"
_AT_ONCE = float("-inf")
"""A time that is over: what follows is read again, because it may have changed with this part."""
_MOST = 200
"""How many parts one trip sends before others have their turn."""
_HISTORY = 20
_MARGIN = 15.0
"""How many seconds longer than a push may take it is nobody else's."""
_PAUSE = 0.5


class ChannelOutlet(NamedTuple):
    """A channel, and what this process knows of how its platform is."""

    channel: Channel
    limits: Limits
    circuit: Circuit
    waits: Waits


class DestinationDrain:
    """Goes through the queue of a destination until it is empty or has to wait."""

    def __init__(
        self,
        store: HostStateStore,
        clock: Clock,
        ages: Ages,
        outlet: ChannelOutlet,
        destination: Destination,
        aliases: Aliases,
    ) -> None:
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
        """Returns when to come back, by the steady clock; nothing, if nothing is left."""
        try:
            while rows := await self._store.outbox.open(self._destination):
                again = await self._through(rows)
                if again is not None:
                    return again
                await self._flush()
                if self._sent >= _MOST:
                    return self._clock.steady()
            self._outlet.waits.end(self._destination[1])
            return None
        finally:
            await self._flush()

    async def _through(self, rows: Sequence[Delivery]) -> float | None:
        for row in rows:
            try:
                again = await self._step(row)
            except LostDeliveryError:
                # Somebody else was faster, and the rest may look different too.
                return None
            if again is not None:
                return None if again <= _AT_ONCE else again
        return None

    async def _step(self, row: Delivery) -> float | None:
        """Takes one part as far as it gets; returns a time if it, and all that follows, has to wait until then."""
        steady = self._clock.steady()
        if row.held_for > 0:
            return steady + row.held_for
        # What the steady clock would have read when it was queued: its age is the difference, then and later.
        queued = steady - self._ages.of(row, self._outlet.waits.since(row))
        if row.status == "sending":
            # Whoever sent it is gone.
            return await self._doubt(row, INTERRUPTED, queued)
        if steady - queued > self._terms.longest_age:
            return await self._end(row, "unknown" if row.status == "unknown" else "dead", _TOO_OLD)
        if (until := self._waits_until(row, steady)) > steady:
            return until
        free_at = self._outlet.circuit.free_at(steady)
        if free_at <= steady:
            free_at = self._outlet.limits.enter(self._destination[1], steady, row.kind)
        if free_at > steady:
            if self._outlet.waits.until(row) is None:
                self._outlet.waits.begin(row, steady)
            return free_at
        return await (self._ask(row, queued) if row.status == "unknown" else self._send(row, queued))

    def _waits_until(self, row: Delivery, steady: float) -> float:
        """Return until when a part waits: what this process has noted counts, and only then what is written down."""
        until = self._outlet.waits.until(row)
        if until is None and (left := pause(row, self._clock.now())) > 0:
            until = steady + left
            self._outlet.waits.begin(row, until)
        return steady if until is None else until

    async def _send(self, row: Delivery, queued: float) -> float | None:
        # Before it is taken: one that only a newer version can read is left to it as it is.
        payload = read_payload(row)
        circuit = self._outlet.circuit
        first = circuit.is_open
        circuit.enter()
        try:
            reference = await reference_of(self._store.identities, row)
            addressed = await self._aliases.outward_delivery(row)
            taken = await self._take(row)
            addressed = taken.replace(conversation_id=addressed.conversation_id)
            try:
                receipt = await send(self._outlet.channel, addressed, payload, reference)
            except PushError as error:
                return await self._failed(taken, error, first, queued)
        except BaseException:
            circuit.leave()
            raise
        circuit.succeed()
        now = self._clock.now()
        done = _noted(taken, now, "accepted")
        # The next part is often right behind it, and both are written together.
        self._unwritten = done.replace(status="accepted", receipt=receipt, error=None, ended_at=now)
        return None

    async def _take(self, row: Delivery) -> Delivery:
        """Notes that a part is being sent, together with what became of the one before."""
        taken = row.replace(status="sending", attempts=row.attempts + 1)
        await self._commit(taken, hold=self._terms.timeout + _MARGIN)
        self._sent += 1
        return taken.replace(fence=row.fence + 1)

    async def _failed(self, row: Delivery, error: PushError, first: bool, queued: float) -> float:
        """Notes a failure; that of the one which went first while the platform was down is not the part's fault."""
        steady = self._clock.steady()
        self._note_error(error, steady)
        if first and self._outlet.circuit.is_open:
            row = row.replace(attempts=row.attempts - 1)
        now, age = self._clock.now(), steady - queued
        found = decide(
            error,
            attempts=row.attempts,
            policy=self._terms.retry,
            jitter=spread(row.delivery_id, len(row.history)),
            left=self._terms.longest_age - age,
        )
        if isinstance(found, Dead):
            return await self._end(_noted(row, now, error.code), "dead", found.reason)
        if isinstance(found, Retry):
            attempts = row.attempts if found.counts else row.attempts - 1
            # Whoever waits for the platform goes before one that has found it down.
            after = max(found.after, 2 * (self._outlet.circuit.free_at(steady) - steady))
            again = _noted(row, now, error.code, age).replace(status="pending", attempts=attempts, error=error.code)
            return await self._wait(again.replace(due_at=now + after), steady + after)
        return await self._doubt(row, error.code, queued)

    async def _wait(self, row: Delivery, until: float) -> float:
        """Writes a part that is to wait, and notes by the steady clock until when."""
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
            # It was refused, so somebody is there.
            circuit.succeed()
        elif circuit.fail(now):
            log.warning("channel %s is left alone for a while: its platform fails", self._outlet.channel.name)

    async def _end(self, row: Delivery, status: DeliveryStatus, reason: str) -> float:
        log.error("delivery %s on %s is %s: %s", row.delivery_id, row.channel, status, reason)
        await self._write(row.replace(status=status, error=reason, ended_at=self._clock.now()))
        return _AT_ONCE

    async def _doubt(self, row: Delivery, code: str, queued: float) -> float:
        """Notes that a part may have arrived: it is asked about, sent again, or left as it is."""
        channel, policy = self._outlet.channel, self._terms.retry
        how = after_unknown(
            repeatable=channel.push_is_idempotent,
            can_ask=isinstance(channel, SupportsPushLookup),
            attempts=row.attempts,
            policy=policy,
        )
        now, steady = self._clock.now(), self._clock.steady()
        noted = _noted(row, now, code, steady - queued).replace(error=code)
        if how == "leave":
            log.warning("delivery %s on %s may have arrived, or not: %s", row.delivery_id, row.channel, code)
            await self._write(noted.replace(status="unknown", ended_at=now))
            return _AT_ONCE
        after = 0.0 if code == INTERRUPTED else delay(policy, row.attempts, spread(row.delivery_id, row.attempts))
        waiting = noted.replace(status="unknown" if how == "ask" else "pending", due_at=now + after)
        await self._wait(waiting, steady + after)
        return _AT_ONCE

    async def _ask(self, row: Delivery, queued: float) -> float:
        """Asks the platform what became of a part."""
        channel = self._outlet.channel
        await self._flush()
        if not isinstance(channel, SupportsPushLookup):
            return await self._end(row, "unknown", row.error or INTERRUPTED)
        payload, reference = read_payload(row), await reference_of(self._store.identities, row)
        try:
            addressed = await self._aliases.outward_delivery(row)
            receipt = await look_up(self._outlet.channel, channel, addressed, payload, reference)
        except PushError as error:
            return await self._doubt(row.replace(attempts=row.attempts + 1), error.code, queued)
        now = self._clock.now()
        if receipt is None:
            noted = _noted(row, now, "not found", self._clock.steady() - queued)
            await self._write(noted.replace(status="pending", due_at=now))
        else:
            found = _noted(row, now, "found")
            await self._write(found.replace(status="accepted", receipt=receipt, error=None, ended_at=now))
        return _AT_ONCE

    async def _flush(self) -> None:
        if self._unwritten is not None:
            # One that another has changed was set right on the way.
            with suppress(LostDeliveryError):
                await self._write(None)

    async def _write(self, changed: Delivery | None) -> None:
        """Write what became of a part that was sent: however long the store is away, that must not be forgotten."""
        await until_available(lambda: self._commit(changed), pause=_PAUSE)

    async def _commit(self, changed: Delivery | None, *, hold: float = 0.0) -> None:
        before, self._unwritten = self._unwritten, None
        try:
            async with self._store.transaction() as transaction:
                for one in (before, changed):
                    if one is not None:
                        transaction.change_delivery(one, hold=hold if one is changed else 0.0)
                if changed is not None and changed.status == "dead" and not changed.is_echo:
                    transaction.end_rest(changed, error=EARLIER, at=changed.ended_at or 0.0)
        except StoreUnavailableError:
            self._unwritten = before
            raise
        except LostDeliveryError:
            for one in (before, changed):
                if one is not None and one.status == "accepted":
                    await self._insist(one)
            raise

    async def _insist(self, accepted: Delivery) -> None:
        """A receipt that comes late, or with something that was lost, still says that the part arrived."""
        known = await self._store.outbox.get(accepted.delivery_id)
        if known is None or known.status == "accepted" or (known.status == "sending" and known.fence != accepted.fence):
            return
        async with self._store.transaction() as transaction:
            transaction.change_delivery(accepted.replace(fence=known.fence))


def _noted(row: Delivery, now: float, code: str, waited: float | None = None) -> Delivery:
    return row.replace(history=(*row.history, Attempt(at=now, code=code, waited=waited))[-_HISTORY:])
