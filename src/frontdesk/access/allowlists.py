"""The built-in allowlists, and their evaluation. A caller is admitted only by `ALLOW`."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any, cast

from frontdesk.clock import Clock, SystemClock
from frontdesk.concurrency.tasks import maybe_await, spawn_clean
from frontdesk.interfaces.access import AllowlistDecision, AuthorizationContext, IdentityAllowlist
from frontdesk.loggers import access as log
from frontdesk.models.settings import check_settings, seconds_finding

Ids = Collection[str] | Awaitable[Collection[str]]

LOAD_SECONDS = 10.0
"""The seconds that a loader may take."""
RETRY_SECONDS = 1.0
"""The seconds before a loader that has failed is called again."""


class LoadedIds:
    """Cached ids of an allowlist with a single concurrent load.

    Callers wait for a load, except while the loader fails and an earlier list exists.
    """

    def __init__(self, ids: Collection[str] | Callable[[], Ids], cache_seconds: float, clock: Clock | None) -> None:
        check_settings("NativeIdAllowlist", seconds_finding("cache_seconds", cache_seconds))
        self._loader = ids if callable(ids) else None
        self._ids: frozenset[str] = frozenset() if callable(ids) else check_ids(ids)
        self._cache_seconds = cache_seconds
        self._clock = clock or SystemClock()
        self._loaded_at: float | None = None
        self._tried_at: float | None = None
        self._failing = False
        self._loading: asyncio.Task[None] | None = None

    @property
    def fixed(self) -> frozenset[str] | None:
        return self._ids if self._loader is None else None

    async def present(self) -> frozenset[str]:
        """Return the last loaded ids, at most `cache_seconds` old while the loader works."""
        if self._loader is not None and self._is_due():
            if self._loading is None or self._loading.done():
                self._loading = spawn_clean(self._load(self._loader))
            if not self._failing or self._loaded_at is None:
                # One caller may be cancelled while others still wait.
                await asyncio.shield(self._loading)
        return self._ids

    def _is_due(self) -> bool:
        now = self._clock.now()
        # A clock that was set back must not keep an old list valid.
        fresh = self._loaded_at is not None and 0 <= now - self._loaded_at < self._cache_seconds
        tried = self._tried_at is not None and 0 <= now - self._tried_at < min(RETRY_SECONDS, self._cache_seconds)
        return not fresh and not tried

    async def _load(self, loader: Callable[[], Ids]) -> None:
        work = spawn_clean(_load_ids(loader))
        try:
            await asyncio.wait([work], timeout=LOAD_SECONDS)
        finally:
            work.cancel()
        self._tried_at = self._clock.now()
        failure = work.exception() if work.done() and not work.cancelled() else TimeoutError("it takes too long")
        self._failing = failure is not None
        if failure is None:
            self._ids, self._loaded_at = work.result(), self._tried_at
        elif self._loaded_at is None:
            log.error("failed to load an allowlist, denying every caller", exc_info=failure)
        else:
            log.warning("failed to reload an allowlist, keeping the previous one", exc_info=failure)


async def _load_ids(loader: Callable[[], Ids]) -> frozenset[str]:
    return check_ids(await maybe_await(loader()))


def check_ids(ids: Any) -> frozenset[str]:
    """Return ids as a set. Reject a single string, which would count letter by letter, and ids that are not strings.

    Mappings are rejected because their values would be ignored: `{"alice": False}` would allow Alice.
    """
    if isinstance(ids, (str, bytes, Mapping)) or not isinstance(ids, Collection):
        raise TypeError(f"native ids must be a list or set of strings, got {type(cast(object, ids)).__name__}")
    listed = cast("Collection[Any]", ids)
    for native_id in listed:
        if not isinstance(native_id, str) or not native_id:
            raise TypeError(f"a native id must be a non-empty string, got {native_id!r}")
    return frozenset(listed)


ALLOW, DENY, ABSTAIN = AllowlistDecision.ALLOW, AllowlistDecision.DENY, AllowlistDecision.ABSTAIN
ClaimValue = str | int | bool


class AllowAll:
    """Allows every user whom the channel has verified."""

    requires_linked_claims = False

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        return ALLOW


class NativeIdAllowlist:
    """Allows only users whose native ids are listed. Names and chats never count.

    The list is fixed, or loaded by a function (async if it is slow) and cached for `cache_seconds`. If loading fails,
    the last list applies. Before the first list, everyone is denied. With `channel`, it only decides about users of
    that channel.
    """

    requires_linked_claims = False

    def __init__(
        self,
        native_ids: Collection[str] | Callable[[], Ids],
        *,
        channel: str | None = None,
        cache_seconds: float = 60.0,
        clock: Clock | None = None,
    ) -> None:
        self.channel = channel
        self._ids = LoadedIds(native_ids, cache_seconds, clock)
        self._fixed = self._ids.fixed

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision | Awaitable[AllowlistDecision]:
        identity = context.identity
        if self.channel is not None and identity.channel != self.channel:
            return ABSTAIN
        if self._fixed is not None:
            return ALLOW if identity.native_id in self._fixed else DENY
        return self._load_and_decide(identity.native_id)

    async def _load_and_decide(self, native_id: str) -> AllowlistDecision:
        return ALLOW if native_id in await self._ids.present() else DENY


class LinkedClaimAllowlist:
    """Allows people with a verified claim that has one of the given values. Multi-valued claims are supported."""

    requires_linked_claims = True

    def __init__(self, claim: str, values: ClaimValue | Collection[ClaimValue]) -> None:
        self.claim = claim
        listed = [values] if isinstance(values, (str, int)) else list(values)
        if isinstance(values, Mapping):
            raise TypeError("LinkedClaimAllowlist: the values must be a list, got a mapping")
        if not isinstance(cast(object, claim), str):
            raise TypeError(f"LinkedClaimAllowlist: the claim must be a string, got {type(claim).__name__}")
        if not claim or not listed:
            raise ValueError("LinkedClaimAllowlist requires a claim name and at least one value")
        if not all(isinstance(value, (str, int)) for value in cast("list[Any]", listed)):
            raise TypeError("LinkedClaimAllowlist: the values must be strings, integers or booleans")
        # With their types, because True equals 1 in a set.
        self._values = frozenset((type(value), value) for value in listed)

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        value = context.verified_claims.get(self.claim)
        if value is None:
            return ABSTAIN if context.phase == "pre_link" else DENY
        return ALLOW if any(self._is_listed(item) for item in _values(value)) else DENY

    def _is_listed(self, value: Any) -> bool:
        return isinstance(value, (str, int)) and (type(value), value) in self._values


def _values(value: Any) -> Collection[Any]:
    return cast("Collection[Any]", value) if isinstance(value, (list, tuple, set, frozenset)) else (value,)


class _Combined:
    def __init__(self, *allowlists: IdentityAllowlist) -> None:
        for allowlist in allowlists:
            if not is_allowlist(allowlist):
                kind = type(allowlist).__name__
                raise TypeError(f"{type(self).__name__} takes allowlists as separate arguments, got {kind}")
        self.parts = allowlists

    @property
    def requires_linked_claims(self) -> bool:
        return any(requires_linked_claims(allowlist) for allowlist in self.parts)


class AnyOfAllowlists(_Combined):
    """Allows callers whom at least one allowlist allows. Denies callers whom all deny."""

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        decisions: set[AllowlistDecision] = set()
        for allowlist in self.parts:
            decisions.add(await evaluate(allowlist, context))
            if ALLOW in decisions:
                return ALLOW
        return DENY if decisions == {DENY} else ABSTAIN


class AllOfAllowlists(_Combined):
    """Allows callers whom all allowlists allow. Denies callers whom at least one denies."""

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        decisions: set[AllowlistDecision] = set()
        for allowlist in self.parts:
            decisions.add(await evaluate(allowlist, context))
            if DENY in decisions:
                return DENY
        return ALLOW if decisions == {ALLOW} else ABSTAIN


class CallableAllowlist:
    """Calls a sync or async function. `requires_linked_claims` makes the build check that claims have a source."""

    def __init__(
        self,
        function: Callable[[AuthorizationContext], AllowlistDecision | Awaitable[AllowlistDecision]],
        *,
        requires_linked_claims: bool = False,
    ) -> None:
        self._function = function
        self.requires_linked_claims = requires_linked_claims

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        return await maybe_await(self._function(context))


async def evaluate(allowlist: IdentityAllowlist, context: AuthorizationContext) -> AllowlistDecision:
    """Return the decision of an allowlist. A value that is not a decision, such as `True`, counts as a denial."""
    decision: Any = await maybe_await(allowlist.evaluate(context))
    if isinstance(decision, AllowlistDecision):
        return decision
    log.error(
        "allowlist returned no decision, denying: allowlist=%s value=%s",
        type(allowlist).__name__,
        type(decision).__name__,
    )
    return DENY


def requires_linked_claims(allowlist: IdentityAllowlist) -> bool:
    return getattr(allowlist, "requires_linked_claims", False) is True


def walk(allowlist: Any) -> Iterator[Any]:
    """Yield an allowlist and all nested allowlists."""
    yield allowlist
    if isinstance(allowlist, _Combined):
        for part in allowlist.parts:
            yield from walk(part)


def is_allowlist(given: Any) -> bool:
    return not isinstance(given, type) and callable(getattr(given, "evaluate", None))
