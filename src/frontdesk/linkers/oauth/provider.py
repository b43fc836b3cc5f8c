"""The interface of providers, and the claims of an account that a link keeps."""

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
"""The number of bytes of JSON that all claims of a link may have together."""
_LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The endpoints of a provider, and how a client authenticates there."""

    authorize: str
    token: str
    auth_methods: Collection[str] = ()
    """The methods of client authentication; the default one if it is empty."""
    issuers: Collection[str] = ()
    """The issuer names with which it may send a browser back; empty if it has none."""
    names_itself: bool = False
    """Whether it always sends its issuer name."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account that has signed in."""

    subject: str
    label: str
    """The name by which the person knows the account."""
    claims: Mapping[str, Any] = field(repr=False)


class Provider(Protocol):
    """A service that proves who has signed in."""

    title: str
    """The name of the provider, for people."""
    scopes: Sequence[str]
    parameters: Mapping[str, str]
    """Further parameters of the sign-in URL."""

    def use(self, *, client_id: str, http: ProviderHttp, clock: Clock) -> None:
        """Set the client up; the linker calls this once."""
        ...

    async def endpoints(self) -> Endpoints:
        """Return where to send the browser, and where to exchange the code."""
        ...

    async def account(self, tokens: Mapping[str, Any], nonce: str) -> Account:
        """Return the account of tokens; raise `UnauthenticatedError` or `ForbiddenError` if they are not valid."""
        ...

    def subject(self, claims: Mapping[str, Any]) -> str | None:
        """Return the unique name of an account, which never changes; `None` if it can't be linked."""
        ...


def subject_of(provider: Provider, claims: Mapping[str, Any]) -> str | None:
    """Return the subject of claims, as in a link with this provider; `None` if they are not of its accounts."""
    return provider.subject(claims)


def kept(claims: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the claims that a link keeps, as many as there is room for."""
    claims = believed(claims)
    selected: dict[str, Any] = {}
    room = LARGEST_CLAIMS
    for name in names:
        if name not in claims:
            continue
        size = len(msgspec.json.encode({name: claims[name]}))
        if size > room:
            log.warning("the claim %s of an account is too large to be kept with its link", name)
            continue
        room -= size
        selected[name] = claims[name]
    return selected


def label(claims: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first of some claims that is a text, as the name of an account."""
    texts = [claims[name] for name in names if isinstance(claims.get(name), str) and claims[name].strip()]
    return texts[0][:_LONGEST_LABEL] if texts else "an account without a name"


def foreign(message: str) -> ForbiddenError:
    """Return the error for a valid account that this host does not accept."""
    return ForbiddenError(message, code="account_refused")
