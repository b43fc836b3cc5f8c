"""The built-in allowlists. A caller is let in by `ALLOW` alone."""

from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, cast

from frontdesk.abc.allowlist import AllowlistDecision, AuthorizationContext, IdentityAllowlist
from frontdesk.access.loaded import Ids, LoadedIds
from frontdesk.clock import Clock
from frontdesk.kit.aio.calls import maybe_await
from frontdesk.loggers import access as log

ALLOW, DENY, ABSTAIN = AllowlistDecision.ALLOW, AllowlistDecision.DENY, AllowlistDecision.ABSTAIN
ClaimValue = str | int | bool


class AllowAll:
    """Allows everyone whom the channel has verified."""

    requires_linked_claims = False

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        return ALLOW


class NativeIdAllowlist:
    """Allows the users whose native ids are listed, and nobody else; names and chats never count.

    The list is fixed, or loaded by a function (async, if it is slow) and kept for `cache_seconds`. While it can't be
    loaded, the last one counts; before the first, everyone is denied. With `channel` it decides about that channel's
    users only.
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
    """Allows people with a verified claim that has one of the given values; a claim may have several values itself."""

    requires_linked_claims = True

    def __init__(self, claim: str, values: ClaimValue | Collection[ClaimValue]) -> None:
        self.claim = claim
        listed = [values] if isinstance(values, (str, int)) else list(values)
        if not claim or not listed:
            raise ValueError("LinkedClaimAllowlist needs the name of a claim, and at least one value")
        if not all(isinstance(value, (str, int)) for value in cast("list[Any]", listed)):
            raise TypeError("LinkedClaimAllowlist compares texts, whole numbers and booleans")
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
    """Several allowlists that decide together; without any, the decision is `ABSTAIN`."""

    def __init__(self, *allowlists: IdentityAllowlist) -> None:
        for allowlist in allowlists:
            if not is_allowlist(allowlist):
                kind = type(allowlist).__name__
                raise TypeError(f"{type(self).__name__} takes allowlists one by one, and {kind} is none")
        self.parts = allowlists

    @property
    def requires_linked_claims(self) -> bool:
        """Tell whether one of them can't decide without claims."""
        return any(requires_linked_claims(allowlist) for allowlist in self.parts)


class AnyOfAllowlists(_Combined):
    """Allows callers whom one of several allowlists allows; denies those whom all deny."""

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        decisions: set[AllowlistDecision] = set()
        for allowlist in self.parts:
            decisions.add(await evaluate(allowlist, context))
            if ALLOW in decisions:
                return ALLOW
        return DENY if decisions == {DENY} else ABSTAIN


class AllOfAllowlists(_Combined):
    """Allows callers whom each of several allowlists allows; denies those whom one denies."""

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        decisions: set[AllowlistDecision] = set()
        for allowlist in self.parts:
            decisions.add(await evaluate(allowlist, context))
            if DENY in decisions:
                return DENY
        return ALLOW if decisions == {ALLOW} else ABSTAIN


class CallableAllowlist:
    """Calls a function, sync or async; `requires_linked_claims` makes the build check that claims have a source."""

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
    """Return the decision of an allowlist; anything that is no decision, such as `True`, counts as a denial."""
    decision: Any = await maybe_await(allowlist.evaluate(context))
    if isinstance(decision, AllowlistDecision):
        return decision
    log.error("%s has returned %s, which is no decision: denied", type(allowlist).__name__, type(decision).__name__)
    return DENY


def requires_linked_claims(allowlist: IdentityAllowlist) -> bool:
    """Tell whether an allowlist declares that it can't decide without claims."""
    return getattr(allowlist, "requires_linked_claims", False) is True


def walk(allowlist: Any) -> Iterator[Any]:
    """Yield an allowlist and all its parts."""
    yield allowlist
    if isinstance(allowlist, _Combined):
        for part in allowlist.parts:
            yield from walk(part)


def is_allowlist(given: Any) -> bool:
    """Tell whether an object is an allowlist."""
    return not isinstance(given, type) and callable(getattr(given, "evaluate", None))
