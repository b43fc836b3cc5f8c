"""The decision about a caller, as a pure function of what an allowlist said and of what is known of a link."""

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


def before_link(said: AllowlistDecision, *, require_link: bool) -> Verdict | None:
    """The verdict on what the identity and the channel's own claims say; `None` when more must be known."""
    if said is AllowlistDecision.DENY:
        return "allowlist_denied_pre_link"
    return "allowed" if said is AllowlistDecision.ALLOW and not require_link else None


def after_link(
    said: AllowlistDecision | None, *, require_link: bool, linked: bool, linking: Linking = "none"
) -> Verdict:
    """The verdict when `before_link` had none; `said` is the second answer, if there was anything new to ask with."""
    if not linked and require_link:
        return "link_unavailable" if linking == "none" else "link_required"
    if said is AllowlistDecision.ALLOW:
        return "allowed"
    denied = said is AllowlistDecision.DENY
    if not linked and (linking == "with_claims" or (linking == "plain" and not denied)):
        # The channel's own claims were not enough, and a link may prove others.
        return "link_required"
    return "allowlist_denied_post_link" if denied else "allowlist_abstained"
