"""Who is calling: the checks that all HTTP channels share, with this channel's settings."""

from frontdesk.abc.auth import OneAuth
from frontdesk.abc.channel import ChannelContext
from frontdesk.channels.invocations.config import InvocationsConfig
from frontdesk.kit.auth.verifier import HttpVerifier


def verifier(name: str, auth: OneAuth | None, config: InvocationsConfig, context: ChannelContext) -> HttpVerifier:
    """What turns an HTTP request into a caller."""
    return HttpVerifier(
        name,
        auth,
        allow_anonymous=context.anonymous_allowed,
        allowed_origins=config.allowed_origins,
        allows_origin=context.allows_origin,
    )
