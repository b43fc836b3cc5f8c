"""Records when and where people were last seen, only when one of their messages is admitted."""

from collections.abc import Collection

from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.identity import ChannelIdentity, IdentityRecord, LastSeen
from frontdesk.models.request import AdmittedRequest


class Presence:
    """Records when and where people were last seen, on hosts with channels that can push."""

    def __init__(self, store: HostStateStore, pushing: Collection[str], *, introduces: bool = False) -> None:
        """Record presence if there are channels that can push (`pushing`).

        `introduces` also stores the identities seen on them. Needed where isolation keys come from elsewhere and
        nothing else stores the identities.
        """
        self._store = store
        self._pushing = frozenset(pushing)
        self.matters = bool(self._pushing)
        """Whether it is recorded where people are."""
        self._introduces = introduces

    async def see(self, admitted: AdmittedRequest, at: float) -> None:
        """Record the time at which a message of a person was accepted."""
        if self.matters and admitted.request.store:
            async with self._store.transaction() as transaction:
                self.note(transaction, admitted, at)

    def note(self, transaction: StateTransaction, admitted: AdmittedRequest, at: float) -> None:
        """Like `see`, as part of a transaction."""
        request, caller = admitted.request, admitted.caller.identity
        if not self.matters or not request.store:
            return
        # A caller who acts for another person is not where that person is.
        seen = admitted.identity if admitted.identity.key == caller.key else caller
        if self._introduces and request.channel in self._pushing and request.granted_key is None:
            introduced = IdentityRecord(identity=admitted.identity, isolation_key=admitted.owner, created_at=at)
            transaction.remember_identity(introduced)
        self.note_place(transaction, admitted.owner, seen, request.conversation_id, at)

    def note_place(
        self,
        transaction: StateTransaction,
        owner: str,
        identity: ChannelIdentity,
        conversation_id: str | None,
        at: float,
    ) -> None:
        """Record in a transaction that a person was seen without an admitted request, as with a command."""
        transaction.see(LastSeen(isolation_key=owner, identity=identity, conversation_id=conversation_id, at=at))
