"""Who is calling: the checks that all HTTP channels share; the callers are those of the channel that runs the agent."""

from frontdesk.abc.auth import OneAuth
from frontdesk.channels.conversations.config import ConversationsConfig
from frontdesk.kit.verifier import HttpVerifier


def verifier(auth: OneAuth | None, config: ConversationsConfig, *, allow_anonymous: bool) -> HttpVerifier:
    """What turns an HTTP request into a caller."""
    # Someone who makes a conversation here is the same one who goes on with it there.
    return HttpVerifier(
        config.callers_of, auth, allow_anonymous=allow_anonymous, allowed_origins=config.allowed_origins
    )
