"""Stores requests of callers that have to link first, and turns them into events when the link is made.

A stored request is a link grant with a field for the events to process. `Links` uses up the grant and accepts the
events in the transaction that writes the link, so a request is neither lost nor run twice. The events then pass the
gate like any other. A channel has a fixed number of grant ids, which bounds its stored requests across replicas.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from frontdesk.access.gate import Authorizer
from frontdesk.access.identify import IdentityKeys
from frontdesk.clock import Clock
from frontdesk.errors import CodecError, LinkRequiredError, StoreError
from frontdesk.identifiers import digest
from frontdesk.interfaces.access import Allowed
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.loggers import access as log
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.link import Grant
from frontdesk.models.operations import DEFAULT_EVENT_LIMITS
from frontdesk.models.request import ChannelRequest
from frontdesk.serialization.codec import encode

LIFETIME_SECONDS = 900.0
_PREFIX = "after-link:"
_MAX_PROBES = 8
_UNBOUNDED = 2**64


class StoredRequests:
    def __init__(
        self,
        store: HostStateStore,
        channels: Mapping[str, Channel],
        authorizer: Authorizer,
        keys: IdentityKeys,
        clock: Clock,
        *,
        max_bytes: int | None,
        new_run_id: Callable[[str], str],
        wake: Callable[[InboxItem], Awaitable[None]],
    ) -> None:
        """Store requests of at most `max_bytes`, or none.

        `new_run_id` creates the id of a run on a channel. `wake` starts the processing of an accepted event.
        """
        self._store, self._authorizer, self._keys, self._clock = store, authorizer, keys, clock
        self._max_bytes, self._new_run_id, self._wake = max_bytes, new_run_id, wake
        self._bounds = {
            name: (channel.event_limits or DEFAULT_EVENT_LIMITS).max_waiting_for_unlinked
            for name, channel in channels.items()
        }
        self._hooked = {name for name, channel in channels.items() if channel.run_hook is not None}

    async def prepare(self, item: InboxItem) -> Grant | None:
        """Return the grant that stores an event, or None if the event must not be stored.

        A person has one stored request at a time, the first one.
        """
        if self._max_bytes is None or item.caller.anonymous or is_stored_request(item):
            return None
        if not item.is_message or not item.heard:
            return None
        identity, now = self._keys.get_principal(item.caller.identity), self._clock.now()
        grant = Grant(
            grant_id="",
            identity=ChannelIdentity(channel=identity.channel, native_id=identity.native_id),
            expires_at=now + LIFETIME_SECONDS,
            begun_at=now,
            requests=tuple(_as_stored(member) for member in item.heard),
        )
        if not self._fits(grant, item.channel, self._max_bytes):
            return None
        free = None
        for grant_id in self._list_ids(identity):
            found = await self._find(grant_id)
            if found is None:
                free = free or grant_id
            elif found.identity.key == identity.key:
                return None
        if free is None:
            log.warning("request not stored until the link, too many are stored: channel=%s", item.channel)
            return None
        return grant.replace(grant_id=free)

    def add(self, transaction: StateTransaction, grant: Grant) -> None:
        """Store a prepared grant. The transaction fails with `StoreError` if another request took its id."""
        transaction.add_grant(grant, free_at=self._clock.now())

    async def keep(self, request: ChannelRequest, caller: Caller, protocol_request: object) -> LinkRequiredError:
        """Store a background request without a platform event. Return the error for its caller."""
        run_id = request.run_id or self._new_run_id(request.channel)
        item = InboxItem(
            channel=request.channel,
            event_id=run_id,
            conversation_id=f"{_PREFIX}{run_id}",
            caller=caller,
            request=request,
            received_at=self._clock.now(),
            payload=protocol_request if request.channel in self._hooked else None,
            run_id=run_id,
        )
        grant = await self.prepare(item)
        if grant is None:
            return LinkRequiredError()
        try:
            async with self._store.transaction() as transaction:
                self.add(transaction, grant)
        except StoreError:
            # Another request took the id of the grant.
            return LinkRequiredError()
        await self.release_if_linked(item)
        if request.idempotency_key is not None:
            return LinkRequiredError("Link your account first. This request runs then. Repeat it to get its answer.")
        error = LinkRequiredError(f"Link your account first. This request runs then, as {run_id}.")
        error.stored_run_id = run_id
        return error

    async def find(self, identities: Sequence[ChannelIdentity]) -> Sequence[Grant]:
        """Return the stored requests of people, without expired ones."""
        if self._max_bytes is None:
            return ()
        found: list[Grant] = []
        for identity in identities:
            for grant_id in self._list_ids(identity):
                grant = await self._find(grant_id)
                if grant is not None and grant.identity.key == identity.key:
                    found.append(grant)
        return found

    async def release_if_linked(self, item: InboxItem) -> None:
        """Process a request that was stored while its sender was being linked."""
        identity = self._keys.get_principal(item.caller.identity)
        await self._store.identities.link(identity, fresh=True)
        if not isinstance(await self._authorizer.decide(item.caller, item.channel), Allowed):
            return
        grants = await self.find([identity])
        try:
            async with self._store.transaction() as transaction:
                release(transaction, grants)
        except StoreError:
            # The change of the link, or another process, has released it.
            return
        await self.start(grants)

    async def start(self, grants: Sequence[Grant]) -> None:
        """Start the processing of released requests."""
        for grant in grants:
            log.info("stored request released: channel=%s grant_id=%s", grant.identity.channel, grant.grant_id)
            for item in grant.requests:
                await self._wake(item)

    async def _find(self, grant_id: str) -> Grant | None:
        grant = await self._store.identities.grant(grant_id)
        return grant if grant is not None and grant.lasts(self._clock.now()) else None

    def _list_ids(self, identity: ChannelIdentity) -> Iterator[str]:
        """Yield the ids that a person's stored request can have. A channel has as many as it may store requests."""
        bound = self._bounds.get(identity.channel, DEFAULT_EVENT_LIMITS.max_waiting_for_unlinked) or _UNBOUNDED
        first = int(digest(identity.native_id), 16)
        for number in range(min(_MAX_PROBES, bound)):
            yield f"link-request:{identity.channel}:{(first + number) % bound}"

    @staticmethod
    def _fits(grant: Grant, channel: str, most: int) -> bool:
        try:
            size = len(encode(grant.requests))
        except CodecError:
            log.info("request not stored until the link, it has no JSON form: channel=%s", channel)
            return False
        if size > most:
            log.info("request not stored until the link, too large: channel=%s bytes=%d", channel, size)
        return size <= most


def release(transaction: StateTransaction, grants: Sequence[Grant]) -> None:
    """Use up stored requests and accept their events. The transaction fails if one is used up already."""
    for grant in grants:
        transaction.use_grant(grant.grant_id)
        for item in grant.requests:
            transaction.accept(item)


def is_stored_request(item: InboxItem) -> bool:
    """Return True if an event was stored until its sender was linked."""
    return item.event_id.startswith(_PREFIX)


def _as_stored(item: InboxItem) -> InboxItem:
    """Return an event as it is accepted after the link, under an id of its own. No right to reply lasts that long."""
    return item.replace(
        event_id=f"{_PREFIX}{item.event_id}",
        number=0,
        fence=0,
        attempts=0,
        lost=0,
        alone=0,
        not_before=None,
        due_by=None,
        reply_by=None,
        reply_token=None,
        bundle=(),
    )
