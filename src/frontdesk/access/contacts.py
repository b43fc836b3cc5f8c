"""Keeps how people can be reached who were let in: their newest attributes, and what their channel says of them."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.codec import encode
from frontdesk.data.identity import Caller, ChannelIdentity, IdentityRecord, PushGroup, Reach
from frontdesk.data.request import ChannelRequest
from frontdesk.errors import CodecError, IdentityChangedError
from frontdesk.loggers import access as log

LONGEST_REFERENCE = 4096
"""How many bytes a reference may have as JSON."""


def check_reference(reference: Mapping[str, Any]) -> None:
    """Refuse a reference that can't be stored, with a `ValueError`; its own words are told to nobody."""
    try:
        size = len(encode(dict(reference)))
    except CodecError as error:
        raise ValueError(f"a reference must be JSON: {error}") from None
    if size > LONGEST_REFERENCE:
        raise ValueError(f"a reference has {size} bytes, and may have {LONGEST_REFERENCE}")


class Contacts:
    """Writes only what has changed, and only for those who have a record."""

    def __init__(
        self, store: HostStateStore, clock: Clock, *, grouped: Collection[str] = (), introduces: bool = False
    ) -> None:
        """`grouped` are the channels on which people are reached in the groups that they share.

        `introduces` says that isolation keys come from elsewhere, so that nobody else notes who has one.
        """
        self._identities = store.identities
        self._store = store
        self._clock = clock
        self._grouped = frozenset(grouped)
        self._introduces = introduces

    def says_something(self, caller: Caller, identity: ChannelIdentity, request: ChannelRequest) -> bool:
        """Tell whether a request may say how its sender is reached, before anything is looked up."""
        if not identity.attributes and not request.reference and request.channel not in self._grouped:
            return False
        # Of others, for whom a hook lets the caller speak, a request does not say how they are reached.
        return identity.key == caller.identity.key and not caller.anonymous

    async def note(self, identity: ChannelIdentity, request: ChannelRequest, owner: str) -> None:
        """Keep what a request that was let in says of its own sender; `owner` is the sender's own key."""
        record = await self._identities.find(identity)
        has_place = bool(request.reference) or request.channel in self._grouped
        if record is None and has_place and self._introduces and request.granted_key is None:
            record = await self._introduce(identity, owner)
        # Where a backend speaks for many people in turn, its record is not that of each of them.
        if record is None or record.isolation_key != owner:
            return
        # One without attributes says nothing about them.
        if identity.attributes and record.identity.attributes != identity.attributes:
            await self._renew(record, identity)
        if has_place:
            await self._keep_changes(identity, request)

    async def keep(self, identity: ChannelIdentity, owner: str, reference: Mapping[str, Any]) -> None:
        """Keep a reference for somebody who was let in, or could be once they are linked."""
        check_reference(reference)
        if await self._identities.find(identity) is None:
            await self._introduce(identity, owner)
        if (await self._identities.reach(identity)).reference != reference:
            async with self._store.transaction() as transaction:
                transaction.keep_reference(identity, reference)

    async def _introduce(self, identity: ChannelIdentity, owner: str) -> IdentityRecord:
        record = IdentityRecord(identity=identity, isolation_key=owner, created_at=self._clock.now())
        return await self._identities.remember(record)

    async def _renew(self, record: IdentityRecord, identity: ChannelIdentity) -> None:
        # Of one who is being linked just now nothing is overwritten; their next message brings its attributes again.
        with suppress(IdentityChangedError):
            try:
                async with self._store.transaction() as transaction:
                    transaction.remember_identity(record.replace(identity=identity), instead_of=record)
            except CodecError as error:
                log.error("what %s says of somebody is not kept: %s", identity.channel, error)

    async def _keep_changes(self, identity: ChannelIdentity, request: ChannelRequest) -> None:
        known = await self._identities.reach(identity)
        if self._reach_now(request, request.reference, known) == known:
            return
        # Only what differs is looked at closely, and what can't be stored changes nothing.
        told = self._reach_now(request, _storable_reference(request), known)
        if told == known:
            return
        async with self._store.transaction() as transaction:
            if told.reference != known.reference:
                transaction.keep_reference(identity, told.reference)
            if told.group != known.group:
                transaction.keep_group(identity, told.group)

    def _reach_now(self, request: ChannelRequest, reference: Mapping[str, Any], known: Reach) -> Reach:
        """Return how the sender of a request is reached now."""
        if request.channel in self._grouped and request.conversation_id is not None:
            group = PushGroup(conversation_id=request.conversation_id, reference=reference) if request.group else None
            known = known.replace(group=group)
        return known.replace(reference=reference) if reference and not request.group else known


def _storable_reference(request: ChannelRequest) -> Mapping[str, Any]:
    """Return the reference of a request; none, if it can't be stored: that must not cost the sender an answer."""
    if not request.reference:
        return {}
    try:
        check_reference(request.reference)
    except ValueError as error:
        log.error("what %s says of how to reach somebody is not kept: %s", request.channel, error)
        return {}
    return request.reference
