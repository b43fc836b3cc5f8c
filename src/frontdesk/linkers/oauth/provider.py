"""What the ceremony needs to know of whoever proves accounts, and what is kept of an account."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from frontdesk.clock import Clock
from frontdesk.errors import ForbiddenError
from frontdesk.kit.auth.provider import ProviderHttp
from frontdesk.kit.auth.tokens import believed
from frontdesk.loggers import access as log

LARGEST_CLAIMS: Final = 4096
"""How many bytes of JSON all claims of a link may have together."""
_LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a provider answers, and how it wants to be called."""

    authorize: str
    token: str
    auth_methods: Collection[str] = ()
    """The ways in which a client may show its secret, the usual one if it does not say."""
    issuers: Collection[str] = ()
    """What it may call itself when it sends a browser back; nothing if it has no name."""
    names_itself: bool = False
    """Whether it always does."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who has signed in."""

    subject: str
    label: str
    """What the person knows the account by."""
    claims: Mapping[str, Any] = field(repr=False)


class Provider(Protocol):
    """Proves who somebody is."""

    title: str
    """What people call it."""
    scopes: Sequence[str]
    parameters: Mapping[str, str]
    """What else the sign-in page is told."""

    def use(self, *, client_id: str, http: ProviderHttp, clock: Clock) -> None:
        """Told once, by the linker."""
        ...

    async def endpoints(self) -> Endpoints:
        """Where to send the browser, and where to take the code."""
        ...

    async def account(self, tokens: Mapping[str, Any], nonce: str) -> Account:
        """Who the tokens speak of; `UnauthenticatedError` or `ForbiddenError` if they are not good."""
        ...

    def subject(self, claims: Mapping[str, Any]) -> str | None:
        """The one name of an account that never changes and is nobody else's."""
        ...


def subject_of(provider: Provider, claims: Mapping[str, Any]) -> str | None:
    """Who claims speak of, as a link with this provider would call them; nothing if they are not of its accounts."""
    return provider.subject(claims)


def kept(claims: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The claims that a link keeps, as many as there is room for."""
    claims = believed(claims)
    found: dict[str, Any] = {}
    room = LARGEST_CLAIMS
    for name in names:
        if name not in claims:
            continue
        size = len(msgspec.json.encode({name: claims[name]}))
        if size > room:
            log.warning("the claim %s of an account is too large to be kept with its link", name)
            continue
        room -= size
        found[name] = claims[name]
    return found


def label(claims: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first claim that says something to a person."""
    found = [claims[name] for name in names if isinstance(claims.get(name), str) and claims[name].strip()]
    return found[0][:_LONGEST_LABEL] if found else "an account without a name"


def foreign(message: str) -> ForbiddenError:
    """The error for an account that is good, but not for this host."""
    return ForbiddenError(message, code="account_refused")
