"""Ties between a person's identities."""

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Noun


class LinkChallenge(Noun, frozen=True, kw_only=True):
    """What a person has to do to prove that two identities are theirs."""

    challenge_id: str
    identity: ChannelIdentity
    instructions: str
    url: str | None = None
    expires_at: float


class LinkRecord(Noun, frozen=True, kw_only=True):
    """Two identities of one person."""

    link_id: str
    isolation_key: str
    identity: ChannelIdentity
    linked_at: float
    linker: str
