"""Who is calling: the checks that all HTTP channels share, with this channel's settings."""

from frontdesk.abc.auth import OneAuth
from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.kit.verifier import HttpVerifier


def verifier(name: str, auth: OneAuth | None, config: ResponsesConfig, *, allow_anonymous: bool) -> HttpVerifier:
    """What turns an HTTP request into a caller."""
    return HttpVerifier(name, auth, allow_anonymous=allow_anonymous, allowed_origins=config.allowed_origins)
