"""Allowlists that come with the house. Whatever is not a clear yes is not one."""

from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, cast

from frontdesk.abc.allowlist import AllowlistDecision, AuthorizationContext, IdentityAllowlist
from frontdesk.access.loaded import Ids, LoadedIds
from frontdesk.clock import Clock
from frontdesk.kit.aio.calls import settle
from frontdesk.loggers import access as log

ALLOW, DENY, ABSTAIN = AllowlistDecision.ALLOW, AllowlistDecision.DENY, AllowlistDecision.ABSTAIN
ClaimValue = str | int | bool


class AllowAll:
    """Everyone whom the channel has verified may come in."""

    requires_linked_claims = False

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        return ALLOW


class NativeIdAllowlist:
    """The users whose native ids are listed, and nobody else: names and chats never count.

    The list is fixed, or loaded by a function (async, if it is slow) and kept for `cache_seconds`. While it can't be
    loaded, the last one counts; before the first, nobody comes in. With `channel` it speaks of that channel's users
    only.
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
        return self._look(identity.native_id)

    async def _look(self, native_id: str) -> AllowlistDecision:
        return ALLOW if native_id in await self._ids.present() else DENY


class LinkedClaimAllowlist:
    """The people of whom a verified claim has one of some values; a claim may have several values itself."""

    requires_linked_claims = True

    def __init__(self, claim: str, values: ClaimValue | Collection[ClaimValue]) -> None:
        self.claim = claim
        listed = [values] if isinstance(values, (str, int)) else list(values)
        if not claim or not listed:
            raise ValueError("LinkedClaimAllowlist needs the name of a claim, and at least one value")
        if not all(isinstance(value, (str, int)) for value in cast("list[Any]", listed)):
            raise TypeError("LinkedClaimAllowlist compares texts, whole numbers and booleans")
        # With their types, because True is 1 to a set.
        self._values = frozenset((type(value), value) for value in listed)

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        found = context.verified_claims.get(self.claim)
        if found is None:
            return ABSTAIN if context.phase == "pre_link" else DENY
        return ALLOW if any(self._is_listed(value) for value in _values(found)) else DENY

    def _is_listed(self, value: Any) -> bool:
        return isinstance(value, (str, int)) and (type(value), value) in self._values


def _values(found: Any) -> Collection[Any]:
    return cast("Collection[Any]", found) if isinstance(found, (list, tuple, set, frozenset)) else (found,)


class _Combined:
    """Several allowlists that decide together; none decide nothing."""

    def __init__(self, *allowlists: IdentityAllowlist) -> None:
        for one in allowlists:
            if not is_allowlist(one):
                raise TypeError(f"{type(self).__name__} takes allowlists one by one, and {type(one).__name__} is none")
        self.parts = allowlists

    @property
    def requires_linked_claims(self) -> bool:
        """Whether one of them can't decide without claims."""
        return any(requires_linked_claims(one) for one in self.parts)


class AnyOfAllowlists(_Combined):
    """Lets in whom one of several lets in; denies whom all deny."""

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        said: set[AllowlistDecision] = set()
        for one in self.parts:
            said.add(await evaluate(one, context))
            if ALLOW in said:
                return ALLOW
        return DENY if said == {DENY} else ABSTAIN


class AllOfAllowlists(_Combined):
    """Lets in whom each of several lets in; denies whom one denies."""

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        said: set[AllowlistDecision] = set()
        for one in self.parts:
            said.add(await evaluate(one, context))
            if DENY in said:
                return DENY
        return ALLOW if said == {ALLOW} else ABSTAIN


class CallableAllowlist:
    """Asks a function, sync or async; say whether it needs claims, so that their source is looked for at build."""

    def __init__(
        self,
        function: Callable[[AuthorizationContext], AllowlistDecision | Awaitable[AllowlistDecision]],
        *,
        requires_linked_claims: bool = False,
    ) -> None:
        self._function = function
        self.requires_linked_claims = requires_linked_claims

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        return await settle(self._function(context))


async def evaluate(allowlist: IdentityAllowlist, context: AuthorizationContext) -> AllowlistDecision:
    """What an allowlist says; anything that is no decision, such as `True`, counts as a denial."""
    said: Any = await settle(allowlist.evaluate(context))
    if isinstance(said, AllowlistDecision):
        return said
    log.error("%s has answered with %s, which is no decision: denied", type(allowlist).__name__, type(said).__name__)
    return DENY


def requires_linked_claims(allowlist: IdentityAllowlist) -> bool:
    """Whether an allowlist says that it can't decide without claims."""
    return getattr(allowlist, "requires_linked_claims", False) is True


def walk(allowlist: Any) -> Iterator[Any]:
    """An allowlist and all that it is made of."""
    yield allowlist
    if isinstance(allowlist, _Combined):
        for part in allowlist.parts:
            yield from walk(part)


def is_allowlist(given: Any) -> bool:
    """Whether something can be asked."""
    return not isinstance(given, type) and callable(getattr(given, "evaluate", None))
