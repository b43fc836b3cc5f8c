"""Ties between a person's identities."""

from collections.abc import Mapping
from typing import Any

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


class Grant(Noun, frozen=True, kw_only=True):
    """A proof that was begun: what its completion must match. It is used once, and ends by itself."""

    grant_id: str
    identity: ChannelIdentity
    expires_at: float
    data: Mapping[str, Any] = {}
