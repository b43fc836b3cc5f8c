"""Joins the identities that a principal has on several channels, on request of an operator. Moves no data.

Each principal is joined in a transaction. First both identities get the same key, so that a host may look up either of
them. The other identity is closed after all hosts use the first one: it gets a key that owns nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from frontdesk.access.links import Links
from frontdesk.access.principals import PrincipalRule, StoredRule
from frontdesk.clock import Clock
from frontdesk.errors import LinkRefusedError
from frontdesk.ids import Ids
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import audit
from frontdesk.models.approval import AuditLine
from frontdesk.models.identity import ANONYMOUS, ChannelIdentity, IdentityRecord

CLOSED = "joined"
"""The prefix of the key of an identity that was joined with another, and that nobody uses any more."""
Outcome = Literal["join", "move", "finish", "conflict"]


class JoinStep(NamedTuple):
    identity: ChannelIdentity
    home: ChannelIdentity
    outcome: Outcome
    key: str
    home_key: str | None
    reason: str | None = None


class PrincipalJoiner:
    def __init__(self, store: HostStateStore, links: Links, clock: Clock, ids: Ids) -> None:
        self.rule = StoredRule(store, clock, ids)
        self._store = store
        self._links = links
        self._clock = clock
        self._ids = ids

    async def sources(self) -> dict[str, str]:
        """Return the source channels to join, each with its home channel."""
        rule, _ = await self.rule.read()
        return {} if rule is None else _map_sources(rule)

    async def steps(self, after: tuple[str, str] | None, limit: int) -> tuple[list[JoinStep], tuple[str, str] | None]:
        """Return a page of steps, and the position of the next page."""
        for channel, home in sorted((await self.sources()).items()):
            if after is not None and channel < after[0]:
                continue
            since = after if after is not None and after[0] == channel else None
            rows = await self._store.ledger.rows("people", by={"channel": channel}, after=since, limit=limit)
            if rows:
                named = [_native_id(row.record) for row in rows]
                found = [await self._step(channel, name, home) for name in named if name is not None]
                last = rows[-1].place
                return [step for step in found if step is not None], (str(last[0]), str(last[1]))
        return [], None

    async def _step(self, channel: str, native_id: str, home_channel: str) -> JoinStep | None:
        identity = ChannelIdentity(channel=channel, native_id=native_id)
        record = await self._store.identities.find(identity, fresh=True)
        if native_id == ANONYMOUS or record is None or record.isolation_key.startswith(f"{CLOSED}_"):
            return None
        home = identity.replace(channel=home_channel)
        there = await self._store.identities.find(home, fresh=True)
        key = None if there is None else there.isolation_key
        link = await self._store.identities.link(identity, fresh=True)
        if link is None:
            outcome: Outcome = "move" if there is None else "finish" if key == record.isolation_key else "join"
            return JoinStep(identity, home, outcome, record.isolation_key, key)
        own = await self._store.identities.link(home, fresh=True)
        if own is not None and own.isolation_key != link.isolation_key:
            reason = "both are linked, with different accounts; end one of the links"
        elif own is None and not await self._links.allows_name(home, link.isolation_key):
            reason = f"it is linked with accounts that may not be linked with {home_channel}; end the link"
        else:
            return JoinStep(identity, home, "move" if there is None else "join", record.isolation_key, key)
        return JoinStep(identity, home, "conflict", record.isolation_key, key, reason)

    async def join(self, step: JoinStep, *, by: str) -> None:
        """Give both identities one key, with read access to everything that either owns."""
        if step.outcome == "conflict":
            raise LinkRefusedError(step.reason or "", code="conflict")
        if step.outcome == "finish":
            return
        record = await self._store.identities.find(step.identity, fresh=True)
        if record is not None and step.outcome == "move":
            # With the same key from the beginning: whoever comes meanwhile goes on with what is theirs.
            moved = IdentityRecord(identity=step.home, isolation_key=record.isolation_key, created_at=record.created_at)
            await self._store.identities.remember(moved)
        await self._links.join_names(step.home, step.identity, self._line(step, "principal_joined", by))
        audit.info(
            "principals joined: principal=%r channel=%s with=%s by=%s", step.identity.native_id, *_channels(step), by
        )

    async def close(self, step: JoinStep) -> None:
        """Give the other identity a key that owns nothing."""
        record = await self._store.identities.find(step.identity, fresh=True)
        if record is None or record.isolation_key.startswith(f"{CLOSED}_"):
            return
        key = self._ids.new(CLOSED)
        closed = record.replace(isolation_key=key, archived=(), joined=(), version=record.version + 1)
        async with self._store.transaction() as transaction:
            transaction.remember_identity(closed, instead_of=record)

    def _line(self, step: JoinStep, action: str, by: str) -> AuditLine:
        subject = f"{step.identity.channel}:{step.identity.native_id}"
        return AuditLine(at=self._clock.now(), owner=step.key, subject=subject, action=action, by=by)


def _map_sources(rule: PrincipalRule) -> dict[str, str]:
    sources: dict[str, str] = {}
    for name, home in rule.shared.items():
        for earlier in (name, rule.homes.get(name, name)):
            if earlier != home:
                sources[earlier] = home
    return sources


def _channels(step: JoinStep) -> Sequence[str]:
    return step.identity.channel, step.home.channel


def _native_id(record: Mapping[str, Any] | None) -> str | None:
    """Return the native id from the record. The key of its row may be a digest."""
    identity = None if record is None else record.get("identity")
    return cast("dict[str, str]", identity).get("native_id") if isinstance(identity, dict) else None
