"""The contract of allowlists, and the decisions about callers."""

from collections.abc import Awaitable, Mapping
from enum import Enum
from typing import Any, Literal, Protocol

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import LinkChallenge
from frontdesk.data.noun import Value

Phase = Literal["pre_link", "post_link"]
ClaimSource = Literal["channel", "linker", "none"]


class AllowlistDecision(Enum):
    """The verdict of an allowlist on an identity; `ABSTAIN` leaves it to others, or to what a link may prove."""

    ALLOW = "allow"
    DENY = "deny"
    ABSTAIN = "abstain"


class AuthorizationContext(Value, frozen=True, kw_only=True):
    """All that is known when an allowlist is asked."""

    identity: ChannelIdentity
    phase: Phase = "pre_link"
    """Whether more could become known by a link, or all that can be known is here."""
    isolation_key: str | None = None
    """The owner of the memory; none for someone who was never here."""
    verified_claims: Mapping[str, Any] = {}
    claim_source: ClaimSource = "none"
    """The prover of the claims: the channel with this very request, or the linker when it linked the identity."""


class IdentityAllowlist(Protocol):
    """Decides about one identity; pure but for what it loads.

    One that can't decide without claims says so by an attribute `requires_linked_claims` that is true. Without that
    attribute it can.
    """

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision | Awaitable[AllowlistDecision]:
        """Decide about an identity."""
        ...


class AccessRule(Value, frozen=True, kw_only=True):
    """The rule by which a door lets callers in; `AuthPolicy` makes the usual ones."""

    allowlist: IdentityAllowlist | None = None
    """Asked about everyone; without, everyone whom the channel has verified may come in."""
    require_link: bool = False
    """Whether an identity must be linked besides."""


Inherit = Literal["inherit"]
Allowlist = IdentityAllowlist | AccessRule


class IdentityResolver(Protocol):
    """Gives an identity its isolation key; `None` refuses it."""

    def __call__(self, identity: ChannelIdentity, /) -> str | Awaitable[str | None] | None: ...


class Allowed(Value, frozen=True, kw_only=True):
    """The caller may go on. A person who was never here has no isolation key yet."""

    isolation_key: str | None
    verified_claims: Mapping[str, Any] = {}
    claim_source: ClaimSource = "none"


class LinkRequired(Value, frozen=True, kw_only=True):
    """The caller has to link an account first; `ChannelContext.begin_link` begins it, the decision does not."""

    challenge: LinkChallenge | None = None


class Denied(Value, frozen=True, kw_only=True):
    """The caller may not go on. The two messages may be shown; the rest is for the log."""

    reason_code: str
    """Why, for programs; it does not change."""
    user_message: str = "You can't use this assistant. If you think that you should, ask whoever runs it."
    group_message: str = "You can't use this assistant."
    """The text for where others read it."""
    log_details: str = ""


Decision = Allowed | LinkRequired | Denied
