"""Looks up the display names of people. Decisions never use them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from frontdesk.approvals.records import build_caller
from frontdesk.display.person_names import plain_name
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import EXPIRED, Decision, PendingApproval
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.link import LinkRecord
from frontdesk.models.person_name import PersonName, get_given_name

_CLAIMS = ("name", "preferred_username", "login")
"""The claims that name a person to others. An email address is not shown."""


class PersonNames:
    """Finds the name of a person: verified by a link, or else as given by the platform."""

    def __init__(self, store: HostStateStore) -> None:
        self._identities, self._approvals = store.identities, store.approvals

    async def find(self, identity: ChannelIdentity, claims: Mapping[str, Any] | None = None) -> PersonName:
        """Return a person by an account. `claims` are the claims of their request and not verified by a link."""
        link = await self._identities.link(identity)
        family = () if link is None else await self._identities.links(link.isolation_key)
        links = () if link is None else (link, *(one for one in family if one.identity.key != identity.key))
        person = PersonName(native_id=identity.native_id, channel=identity.channel)
        if verified := _find_verified_name(links):
            return person.replace(name=verified, verified=True)
        if name := plain_name(get_given_name(identity.attributes)):
            return person.replace(name=name)
        record = await self._identities.find(identity)
        accounts = [*([] if record is None else [record.identity]), *(one.identity for one in links)]
        given = [get_given_name(account.attributes) for account in accounts]
        names = [plain_name(name) for name in (*given, _name_in(claims or {}))]
        return person.replace(name=next(filter(None, names), ""))

    async def find_by_key(self, isolation_key: str) -> PersonName | None:
        accounts = await self._identities.of_owner(isolation_key)
        if not accounts:
            return None
        named = (account for account in accounts if plain_name(get_given_name(account.attributes)))
        return await self.find(next(named, accounts[0]))

    async def find_decider(self, question: PendingApproval, by: Caller | None = None) -> PersonName | None:
        by = by or await self.decider(question)
        return None if by is None else await self.find(by.identity, by.claims)

    async def decider(self, question: PendingApproval) -> Caller | None:
        if question.status not in ("approved", "rejected") or question.reason == EXPIRED:
            return None
        votes = await self._approvals.votes(question.owner, question.approval_id)
        last = [vote for vote in votes if vote.approved == (question.status == "approved")]
        if last:
            return build_caller(last[-1])
        return question.requester if question.terms is None else None

    async def with_decider(self, question: PendingApproval, by: Caller | None = None) -> PendingApproval:
        return question.replace(decided_by=await self.find_decider(question, by))

    async def of_decision(self, decision: Decision) -> Decision:
        if decision.approval is None or decision.approval.status == "pending":
            return decision
        return decision.replace(approval=await self.with_decider(decision.approval))


def _find_verified_name(links: Sequence[LinkRecord]) -> str:
    return next(filter(None, (plain_name(_name_in(link.claims)) for link in links)), "")


def _name_in(claims: Mapping[str, Any]) -> str:
    """Return the first name in the claims of a person."""
    return next(_texts(claims.get(claim) for claim in _CLAIMS), "")


def _texts(values: Iterable[Any]) -> Iterator[str]:
    # The name of an account is often an email address.
    return (value for value in values if isinstance(value, str) and value.strip() and "@" not in value)
