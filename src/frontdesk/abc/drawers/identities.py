"""Identities, their isolation keys, how they are reached and how they are linked."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from frontdesk.data.identity import ChannelIdentity, IdentityRecord, LastSeen, PushGroup, Reach
from frontdesk.data.link import Grant, LinkRecord


class Identities(Protocol):
    """Identities with their isolation keys, links and the places where they were last seen."""

    async def find(self, identity: ChannelIdentity, *, fresh: bool = False) -> IdentityRecord | None:
        """Return the record of an identity; unless `fresh`, it may be cached briefly if processes share the store."""
        ...

    async def reach(self, identity: ChannelIdentity) -> Reach:
        """Return how an identity is reached, a moment old where many processes write; empty without a record."""
        ...

    async def remember(self, record: IdentityRecord) -> IdentityRecord:
        """Keep the first record for an identity, and return the one that was kept."""
        ...

    async def of_owner(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        """List all identities that share an isolation key, by channel and id."""
        ...

    async def last_seen(self, isolation_key: str) -> LastSeen | None: ...

    async def links(self, isolation_key: str) -> Sequence[LinkRecord]: ...

    async def link(self, identity: ChannelIdentity, *, fresh: bool = False) -> LinkRecord | None:
        """Return the link of an identity, whoever's it is; unless `fresh`, it may be cached as in `find`."""
        ...

    async def linked_as(self, subject: str) -> LinkRecord | None:
        """Return the first link that was made for a subject."""
        ...

    async def holders(self, claims: Sequence[str], *, channels: Sequence[str], limit: int) -> Sequence[LinkRecord]:
        """List links on some channels with one of some verified claims (`claim_key`), by channel and id."""
        ...

    async def all_links(self, *, after: ChannelIdentity | None = None, limit: int = 100) -> Sequence[LinkRecord]:
        """List every link, for the operator, a page at a time; `after` is the identity of the last one seen."""
        ...

    async def grant(self, grant_id: str) -> Grant | None:
        """Return a proof that was begun and not used yet."""
        ...

    async def secret(self, name: str, new: bytes) -> bytes:
        """Return the host's secret of a name; the given one if there was none. Of two at once, one wins."""
        ...


class IdentityWrites(Protocol):
    """Write identities, links and the proofs of links."""

    def remember_identity(self, record: IdentityRecord, *, instead_of: IdentityRecord | None = None) -> None:
        """Give an identity its key; one that has it already stays as it is.

        With `instead_of` the record takes the place of that one; if another key or version is there, the transaction
        fails with `IdentityChangedError`.
        """
        ...

    def keep_reference(self, identity: ChannelIdentity, reference: Mapping[str, Any]) -> None:
        """Keep how the direct chat of an identity is reached, instead of what was kept; nothing without a record."""
        ...

    def keep_group(self, identity: ChannelIdentity, group: PushGroup | None) -> None:
        """Keep the group in which an identity is reached, or that it is none; nothing without a record."""
        ...

    def see(self, seen: LastSeen) -> None:
        """Keep where a person was last seen, unless they were seen elsewhere at a later time."""
        ...

    def add_link(self, link: LinkRecord) -> None:
        """Keep the link of an identity, in place of the one that it had."""
        ...

    def remove_link(self, isolation_key: str, identity: ChannelIdentity) -> None: ...

    def add_grant(self, grant: Grant, *, free_at: float | None = None) -> None:
        """Keep a grant; if one with its id lasts beyond `free_at`, the transaction is a `StoreError`."""
        ...

    def use_grant(self, grant_id: str) -> None:
        """Use a grant up; one that is not there fails the transaction with `StoreError`."""
        ...
