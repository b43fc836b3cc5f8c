"""Stores contacts: the latest attributes of an identity and its conversation reference."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from frontdesk.clock import Clock
from frontdesk.errors import CodecError, IdentityChangedError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import access as log
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord, PushGroup, Reach
from frontdesk.models.request import ChannelRequest
from frontdesk.serialization.codec import encode_within

MAX_REFERENCE_LENGTH = 4096
"""The number of bytes that a reference may have as JSON."""


def check_reference(reference: Mapping[str, Any]) -> None:
    """Raise `ValueError` if a reference cannot be stored. The message does not contain its content."""
    encode_within(dict(reference), MAX_REFERENCE_LENGTH, "a reference")


class Contacts:
    """Writes contact data. Only changes are written, and only for identities that have a record."""

    def __init__(
        self, store: HostStateStore, clock: Clock, *, grouped: Collection[str] = (), introduces: bool = False
    ) -> None:
        """Configure how people are reached. On channels of `grouped` they are reached in their shared groups.

        `introduces` stores new identities. It is needed where isolation keys come from elsewhere and nothing else
        stores them.
        """
        self._identities = store.identities
        self._store = store
        self._clock = clock
        self._grouped = frozenset(grouped)
        self.is_grouped = bool(self._grouped)
        self._introduces = introduces

    def says_something(self, caller: Caller, identity: ChannelIdentity, request: ChannelRequest) -> bool:
        """Return True if a request may contain contact data of its sender. Nothing is looked up."""
        if not identity.attributes and not request.reference and request.channel not in self._grouped:
            return False
        # A request tells how its own caller is reached, not a person whom a hook has set instead.
        return identity.key == caller.identity.key and not caller.anonymous

    async def note(self, identity: ChannelIdentity, request: ChannelRequest, owner: str) -> None:
        """Store contact data of the sender of an admitted request. `owner` is the sender's own key."""
        record = await self._identities.find(identity)
        has_place = bool(request.reference) or request.channel in self._grouped
        if record is None and has_place and self._introduces and request.granted_key is None:
            record = await self._introduce(identity, owner)
        # A backend that acts for many people has one record, which belongs to none of them.
        if record is None or record.isolation_key != owner:
            return
        # An identity without attributes leaves the stored ones as they are.
        if identity.attributes and record.identity.attributes != identity.attributes:
            await self._renew(record, identity)
        if has_place:
            await self._keep_changes(identity, request)

    async def keep(self, identity: ChannelIdentity, owner: str, reference: Mapping[str, Any]) -> None:
        """Store a reference for a person who was admitted, or can be admitted after linking."""
        check_reference(reference)
        if await self._identities.find(identity) is None:
            await self._introduce(identity, owner)
        if (await self._identities.reach(identity)).reference != reference:
            async with self._store.transaction() as transaction:
                transaction.keep_reference(identity, reference)

    async def forget(self, identity: ChannelIdentity) -> None:
        """Delete the reference of a person, if there is one."""
        if (await self._identities.reach(identity)).reference:
            async with self._store.transaction() as transaction:
                transaction.keep_reference(identity, {})

    async def _introduce(self, identity: ChannelIdentity, owner: str) -> IdentityRecord:
        record = IdentityRecord(identity=identity, isolation_key=owner, created_at=self._clock.now())
        return await self._identities.remember(record)

    async def _renew(self, record: IdentityRecord, identity: ChannelIdentity) -> None:
        # A record that is being linked just now is not overwritten; the next message brings the attributes again.
        with suppress(IdentityChangedError):
            try:
                async with self._store.transaction() as transaction:
                    transaction.remember_identity(record.replace(identity=identity), instead_of=record)
            except CodecError as error:
                log.error("identity attributes not stored: channel=%s: %s", identity.channel, error)

    async def _keep_changes(self, identity: ChannelIdentity, request: ChannelRequest) -> None:
        stored = await self._identities.reach(identity)
        if self._reach_now(request, request.reference, stored) == stored:
            return
        # Checked only if it differs; a reference that can't be stored changes nothing.
        reach = self._reach_now(request, _storable_reference(request), stored)
        if reach == stored:
            return
        async with self._store.transaction() as transaction:
            if reach.reference != stored.reference:
                transaction.keep_reference(identity, reach.reference)
            if reach.group != stored.group:
                transaction.keep_group(identity, reach.group)

    def _reach_now(self, request: ChannelRequest, reference: Mapping[str, Any], reach: Reach) -> Reach:
        """Return the updated contact data of the sender of a request."""
        if request.channel in self._grouped and request.conversation_id is not None:
            group = PushGroup(conversation_id=request.conversation_id, reference=reference) if request.group else None
            reach = reach.replace(group=group)
        return reach.replace(reference=reference) if reference and not request.group else reach


def _storable_reference(request: ChannelRequest) -> Mapping[str, Any]:
    """Return the reference of a request, or an empty one if it cannot be stored. Answering has priority."""
    if not request.reference:
        return {}
    try:
        check_reference(request.reference)
    except ValueError as error:
        log.error("conversation reference not stored: channel=%s: %s", request.channel, error)
        return {}
    return request.reference
