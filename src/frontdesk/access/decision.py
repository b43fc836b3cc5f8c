"""The verdict on a caller, as a pure function of the decision of an allowlist and the state of the link."""

from typing import Literal

from frontdesk.abc.allowlist import AllowlistDecision

Verdict = Literal[
    "allowed",
    "link_required",
    "allowlist_denied_pre_link",
    "allowlist_denied_post_link",
    "allowlist_abstained",
    "link_unavailable",
]
Linking = Literal["none", "plain", "with_claims"]
"""Whether a caller could be linked, and whether that would prove claims."""


def before_link(decision: AllowlistDecision, *, require_link: bool) -> Verdict | None:
    """Return the verdict by the identity and the channel's own claims; `None` if it depends on a link."""
    if decision is AllowlistDecision.DENY:
        return "allowlist_denied_pre_link"
    return "allowed" if decision is AllowlistDecision.ALLOW and not require_link else None


def after_link(
    decision: AllowlistDecision | None, *, require_link: bool, linked: bool, linking: Linking = "none"
) -> Verdict:
    """Return the verdict when `before_link` had none; `decision` is that of the second phase, if there was one."""
    if not linked and require_link:
        return "link_unavailable" if linking == "none" else "link_required"
    if decision is AllowlistDecision.ALLOW:
        return "allowed"
    denied = decision is AllowlistDecision.DENY
    if not linked and (linking == "with_claims" or (linking == "plain" and not denied)):
        # The channel's own claims were not enough, and a link may prove others.
        return "link_required"
    return "allowlist_denied_post_link" if denied else "allowlist_abstained"
