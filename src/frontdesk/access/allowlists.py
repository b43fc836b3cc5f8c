"""Allowlists that come with the house."""

from frontdesk.abc.allowlist import AllowlistDecision, AuthorizationContext


class AllowAll:
    """Everyone whom the channel has verified may come in."""

    def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        return AllowlistDecision.ALLOW
