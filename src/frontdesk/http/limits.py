"""Limits the request rate and the concurrent requests of callers of a channel."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf

from frontdesk.asgi.messages import BodyBudget, BodyHold, Who
from frontdesk.errors import TooManyRequestsError
from frontdesk.models.identity import Caller
from frontdesk.models.operations import RateLimit, rate_findings
from frontdesk.models.settings import count_finding

_BUSY_RETRY_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class HttpLimits:
    """Limits for the callers of one channel. `None` means no limit."""

    per_caller: RateLimit | None = None
    """The rate of one caller. Callers without credentials count as one."""
    per_channel: RateLimit | None = None
    """The rate of all callers together."""
    max_running_per_caller: int | None = 200
    """The number of answers that may be made at once for one caller, beside as many other requests."""
    max_running: int | None = 1_000
    """The number for all callers together, likewise."""
    max_bytes_per_caller: int | None = 64 * 1024 * 1024
    """The bytes of the large bodies that may be in flight at once for one caller; one body is always let in."""
    max_bytes: int | None = 256 * 1024 * 1024
    """The bytes for all callers together, likewise."""
    max_callers: int = 10_000
    """The number of callers that are counted separately. When there are more at once, the others share one count."""

    def findings(self) -> list[str]:
        wrong = [*rate_findings("per_caller", self.per_caller), *rate_findings("per_channel", self.per_channel)]
        for name in ("max_running_per_caller", "max_running", "max_bytes_per_caller", "max_bytes", "max_callers"):
            value = getattr(self, name)
            if value is not None and (finding := count_finding(name, value)):
                wrong.append(finding)
        return [f"limits: {finding}" for finding in wrong]


DEFAULT_LIMITS = HttpLimits()
"""The limits of a channel whose operator sets none: a number of answers at once, and no rate."""


class Bucket:
    """A token bucket: it fills at the rate, up to the burst, and each request takes one token."""

    __slots__ = ("_at", "_left", "_most", "_speed")

    def __init__(self, rate: RateLimit, now: float) -> None:
        self._most = float(rate.burst or rate.requests)
        self._speed = rate.requests / rate.per_seconds
        self._left = self._most
        self._at = now

    def take(self, now: float) -> float:
        """Take a token. If there is none, return the time to wait instead."""
        if not self.is_full(now) and self._left < 1:
            return (1 - self._left) / self._speed
        self._left -= 1
        return 0.0

    def give_back(self) -> None:
        """Return an unused token."""
        self._left += 1

    def is_full(self, now: float) -> bool:
        """Return True if it is as full as a new one."""
        self._left = min(self._most, self._left + (now - self._at) * self._speed)
        self._at = now
        return self._left >= self._most


class Limiter:
    """Counts the requests and answers of the callers of one channel."""

    def __init__(self, limits: HttpLimits, time: Callable[[], float] | None = None) -> None:
        """The default for `time` is the clock of the running loop."""
        self._limits = limits
        self.counts = limits.per_caller is not None or limits.per_channel is not None
        """Whether requests are counted, and not only the answers that are being made."""
        self._time = time or _loop_time
        self._all: Bucket | None = None
        self._rest: Bucket | None = None
        self._buckets: OrderedDict[Who, Bucket] = OrderedDict()
        self.answers = Counter(limits, "Too many responses are in progress")
        # Counted separately, so that a caller at the limit of answers can still cancel one.
        self.others = Counter(limits, "Too many requests are in progress")
        self._bodies = BodyBudget(limits.max_bytes, limits.max_bytes_per_caller)

    def take(self, caller: Caller) -> None:
        limits, now = self._limits, self._time()
        own = None
        if limits.per_caller is not None:
            own = self._bucket(caller.identity.key, limits.per_caller, now)
            _need("You send", limits.per_caller, own.take(now))
        if limits.per_channel is not None:
            self._all = self._all or Bucket(limits.per_channel, now)
            wait = self._all.take(now)
            if wait and own is not None:
                own.give_back()
            _need("This service gets", limits.per_channel, wait)

    def _bucket(self, who: Who, rate: RateLimit, now: float) -> Bucket:
        buckets = self._buckets
        bucket = buckets.get(who)
        if bucket is not None:
            buckets.move_to_end(who)
            return bucket
        if len(buckets) >= self._limits.max_callers:
            oldest, oldest_bucket = next(iter(buckets.items()))
            if not oldest_bucket.is_full(now):
                # To forget it would reset the count of its caller. So a caller under many names gets one count for all
                # that find no room.
                self._rest = self._rest or Bucket(rate, now)
                return self._rest
            del buckets[oldest]
        bucket = buckets[who] = Bucket(rate, now)
        return bucket

    def begin(self, caller: Caller) -> Callable[[], None]:
        """Count an answer in progress until the returned function is called, or reject it."""
        who = caller.identity.key
        self.answers.begin(who)
        return partial(self.answers.end, who)

    def hold(self, caller: Caller) -> BodyHold:
        """Return the byte counter of a caller's body or of a caller's messages on a connection."""
        return BodyHold(self._bodies, caller.identity.key)


class Counter:
    """Counts operations in progress, per caller and in total."""

    __slots__ = ("_most", "_most_of_one", "_running", "_total", "_words")

    def __init__(self, limits: HttpLimits, words: str) -> None:
        self._most = inf if limits.max_running is None else limits.max_running
        self._most_of_one = inf if limits.max_running_per_caller is None else limits.max_running_per_caller
        self._running: dict[Who, int] = {}
        self._total = 0
        self._words = words

    def begin(self, who: Who) -> None:
        if self._total >= self._most:
            raise TooManyRequestsError(f"{self._words} here.", retry_after=_BUSY_RETRY_SECONDS)
        running = self._running.get(who, 0)
        if running >= self._most_of_one:
            raise TooManyRequestsError(f"{self._words} for you.", retry_after=_BUSY_RETRY_SECONDS)
        self._running[who] = running + 1
        self._total += 1

    def end(self, who: Who) -> None:
        self._total -= 1
        left = self._running[who] - 1
        if left:
            self._running[who] = left
        else:
            del self._running[who]


def limit_findings(given: object) -> list[str]:
    if given is None:
        return []
    return given.findings() if isinstance(given, HttpLimits) else [f"limits: {given!r} is not Limits(...)"]


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


def _need(whose: str, rate: RateLimit, wait: float) -> None:
    if wait:
        raise TooManyRequestsError(
            f"{whose} more than {rate.requests} requests in {rate.per_seconds:g} seconds.",
            code="rate_limit_exceeded",
            retry_after=wait,
            limit=rate.requests,
        )
