"""Who is calling: the checks that all HTTP channels share; the callers are those of the channel that runs the agent."""

from frontdesk.abc.auth import OneAuth
from frontdesk.abc.channel import ChannelContext
from frontdesk.channels.conversations.config import ConversationsConfig
from frontdesk.kit.auth.verifier import HttpVerifier


def verifier(auth: OneAuth | None, config: ConversationsConfig, context: ChannelContext) -> HttpVerifier:
    """What turns an HTTP request into a caller."""
    return HttpVerifier(
        # Someone who makes a conversation here is the same one who goes on with it there.
        config.callers_of,
        auth,
        allow_anonymous=context.anonymous_allowed,
        allowed_origins=config.allowed_origins,
        allows_origin=context.allows_origin,
    )
