"""Who may come in."""

from collections.abc import Awaitable, Mapping
from enum import Enum
from typing import Any, Literal, Protocol

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import LinkChallenge
from frontdesk.data.noun import Noun


class AllowlistDecision(Enum):
    """What an allowlist says of an identity; `ABSTAIN` leaves it to others."""

    ALLOW = "allow"
    DENY = "deny"
    ABSTAIN = "abstain"


class AuthorizationContext(Noun, frozen=True, kw_only=True):
    """What is known when an allowlist is asked."""

    identity: ChannelIdentity
    phase: Literal["pre_link", "post_link"] = "pre_link"
    verified_claims: Mapping[str, Any] = {}
    claim_source: str | None = None


class IdentityAllowlist(Protocol):
    """Decides about one identity; pure but for what it loads."""

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision | Awaitable[AllowlistDecision]:
        """The decision."""
        ...


class IdentityResolver(Protocol):
    """Gives an identity its isolation key; `None` refuses it."""

    def __call__(self, identity: ChannelIdentity) -> str | Awaitable[str | None] | None: ...


class Allowed(Noun, frozen=True, kw_only=True):
    """The caller may go on. A person who was never here has no isolation key yet."""

    isolation_key: str | None
    verified_claims: Mapping[str, Any] = {}
    claim_source: str | None = None


class LinkRequired(Noun, frozen=True, kw_only=True):
    """The caller has to link an account first."""

    challenge: LinkChallenge | None = None


class Denied(Noun, frozen=True, kw_only=True):
    """The caller may not go on; only `user_message` may be shown."""

    reason_code: str
    user_message: str = "You can't use this assistant."
    log_details: str = ""


Decision = Allowed | LinkRequired | Denied


Inherit = Literal["inherit"]
Allowlist = IdentityAllowlist
