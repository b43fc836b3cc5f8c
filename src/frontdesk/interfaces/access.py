"""The interfaces of allowlists, identity resolvers and link policies, and the access decisions."""

from collections.abc import Awaitable, Mapping
from enum import Enum
from typing import Any, Literal, Protocol

from frontdesk.models.base import FrozenStruct
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkChallenge

Phase = Literal["pre_link", "post_link"]
ClaimSource = Literal["channel", "linker", "none"]


class AllowlistDecision(Enum):
    """The decision of an allowlist on an identity. `ABSTAIN` defers to other allowlists or to linked claims."""

    ALLOW = "allow"
    DENY = "deny"
    ABSTAIN = "abstain"


class AuthorizationContext(FrozenStruct, frozen=True, kw_only=True):
    """The data available to an allowlist."""

    identity: ChannelIdentity
    phase: Phase = "pre_link"
    """Whether more could become known by a link, or all that can be known is here."""
    isolation_key: str | None = None
    """The owner of the memory; none for someone who was never here."""
    verified_claims: Mapping[str, Any] = {}
    claim_source: ClaimSource = "none"
    """The prover of the claims: the channel with this very request, or the linker when it linked the identity."""


class IdentityAllowlist(Protocol):
    """Decides about one identity, without side effects other than loading data.

    An allowlist that can't decide without claims sets the attribute `requires_linked_claims` to True.
    """

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision | Awaitable[AllowlistDecision]: ...


class AccessRule(FrozenStruct, frozen=True, kw_only=True):
    """The access rule of a channel. Create the usual ones with `AuthPolicy`."""

    allowlist: IdentityAllowlist | None = None
    """Asked about everyone; without, everyone whom the channel has verified may come in."""
    require_link: bool = False
    """Whether an identity must be linked besides."""


Inherit = Literal["inherit"]
Allowlist = IdentityAllowlist | AccessRule


class IdentityResolver(Protocol):
    """Returns the isolation key of an identity, or None to reject it."""

    def __call__(self, identity: ChannelIdentity, /) -> str | Awaitable[str | None] | None: ...


class Allowed(FrozenStruct, frozen=True, kw_only=True):
    """The caller is admitted. A new person has no isolation key yet."""

    isolation_key: str | None
    verified_claims: Mapping[str, Any] = {}
    claim_source: ClaimSource = "none"


class LinkRequired(FrozenStruct, frozen=True, kw_only=True):
    """The caller has to link an account first. The decision does not start it, `ChannelContext.links.begin` does."""

    challenge: LinkChallenge | None = None


class Denied(FrozenStruct, frozen=True, kw_only=True):
    """The caller is rejected. The two messages may be shown, the other fields are for the log."""

    reason_code: str
    """Why, for programs; it does not change."""
    user_message: str = "You can't use this assistant. If you think that you should, ask the operator."
    group_message: str = "You can't use this assistant."
    """The text for where others read it."""
    log_details: str = ""


Decision = Allowed | LinkRequired | Denied
AuthorizationOutcome = Decision
"""The name that the design gives it."""


LinkOperation = Literal["link", "deliver"]


class LinkPolicyContext(FrozenStruct, frozen=True, kw_only=True):
    """The input of a link policy: may information from one channel become visible on the other?"""

    operation: LinkOperation
    source: str
    """The name of the channel that the memory or the answer comes from."""
    destination: str
    source_tier: str | None = None
    destination_tier: str | None = None


class LinkPolicy(Protocol):
    """Decides about two channels of one person. Called at linking and at every delivery."""

    def __call__(self, context: LinkPolicyContext, /) -> bool | Awaitable[bool]: ...
