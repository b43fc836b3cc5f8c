"""Paginated lists of the records of all owners, for operators."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from frontdesk.admin.rows import Row, details, summary
from frontdesk.approvals.names import PersonNames
from frontdesk.errors import CodecError, ConflictError, InvalidRequestError, NotFoundError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import ApprovalVote
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.operations import COMMON, INDEXED, PLACES, LedgerKind, LedgerRow
from frontdesk.models.person_name import PersonName
from frontdesk.serialization.codec import to_json

_MAX_TEXT_LENGTH = 4096
_MAX_INTEGER = 2**63


def write_cursor(kind: LedgerKind, place: Sequence[Any]) -> str:
    return urlsafe_b64encode(msgspec.json.encode([kind, *place])).decode().rstrip("=")


def read_cursor(kind: LedgerKind, cursor: str) -> tuple[Any, ...]:
    """Decode a cursor. Raise if it does not belong to this kind."""
    wrong = InvalidRequestError(f"Invalid cursor for {kind}. Use the cursor of the previous page.", param="after")
    if len(cursor) > _MAX_TEXT_LENGTH or not cursor.isascii():
        raise wrong
    try:
        named, *place = msgspec.json.decode(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=list[Any])
    except ValueError:
        raise wrong from None
    kinds = PLACES[kind]
    if named != kind or len(place) != len(kinds):
        raise wrong
    values = tuple(_check_value(value, wanted) for value, wanted in zip(place, kinds, strict=True))
    if None in values:
        raise wrong
    return values


def _check_value(value: Any, wanted: type) -> Any:
    if isinstance(value, str):
        # Postgres can't compare with a text that holds a NUL.
        return None if wanted is not str or "\0" in value else value
    if type(value) is float:
        return value if wanted is float else None
    if type(value) is not int or wanted is str or abs(value) >= _MAX_INTEGER:
        return None
    return wanted(value)


_KEYS = ("by", "person")
"""The fields of a line of the audit log that contain isolation keys."""


async def add_names(kind: LedgerKind, rows: Sequence[Row], names: PersonNames) -> list[Row]:
    """Add the names of people to rows, each with a flag that a link has verified it.

    The `seen` of a row is unchanged, because names may change at any time.
    """
    if kind == "people":
        return [{**row, **await _account_name(row, names)} for row in rows]
    if kind != "audit":
        return list(rows)
    found: dict[str, PersonName | None] = {}
    for key in {str(row[field]) for row in rows for field in _KEYS}:
        found[key] = await names.find_by_key(key) if key else None
    return [{**row, **_add_names(row, found)} for row in rows]


async def _account_name(row: Row, names: PersonNames) -> Row:
    attributes = {} if row["name"] is None else {"name": row["name"]}
    identity = ChannelIdentity(str(row["channel"]), str(row["id"]), attributes)
    person = await names.find(identity)
    return {"shown_name": person.name or None, "name_verified": person.verified}


def _add_names(line: Row, found: dict[str, PersonName | None]) -> Row:
    more: Row = {}
    for field in _KEYS:
        person = found[str(line[field])]
        more[f"{field}_name"] = None if person is None else person.name or None
        more[f"{field}_name_verified"] = person is not None and person.verified
        more[f"{field}_id"] = None if person is None else person.native_id
        more[f"{field}_channel"] = None if person is None else person.channel
    return more


MAX_PAGE_ROWS = 200
"""The rows of a page."""
MAX_SCANNED = 1000
"""The rows that are looked at for a page; one with fewer rows than wanted may have a `next` all the same."""
MAX_MESSAGES = 50
"""The messages of a session that are shown with its content."""
FILTERS: Mapping[LedgerKind, tuple[str, ...]] = {
    "sessions": ("id", "person", "since"),
    "runs": ("id", "person", "status", "since"),
    "deliveries": ("id", "person", "status", "channel", "run", "since"),
    "approvals": ("id", "person", "status", "since"),
    "people": ("id", "person", "channel"),
    "links": ("id", "person", "channel"),
    "inbox": ("id", "status", "channel", "since"),
    "audit": ("id", "subject", "person", "by", "since"),
}
IDS: Mapping[LedgerKind, str] = {
    "sessions": "session_id",
    "runs": "run_id",
    "deliveries": "delivery_id",
    "approvals": "approval_id",
    "people": "id",
    "links": "id",
    "inbox": "number",
    "audit": "number",
}
"""The fields by which rows are named; those of people and links are named by channel and id."""
_RECORD_NAMES: Mapping[LedgerKind, str] = {
    "sessions": "session",
    "runs": "run",
    "deliveries": "delivery",
    "approvals": "approval",
    "people": "account",
    "links": "link",
    "inbox": "event",
    "audit": "line",
}
_TIMES: Mapping[LedgerKind, str] = {
    "sessions": "updated_at",
    "runs": "ended_at",
    "deliveries": "created_at",
    "approvals": "created_at",
    "inbox": "received_at",
    "audit": "at",
}
_BY_TIME = ("sessions", "runs")
# Rows are numbered as they are written, and the clocks of hosts differ a little.
_SLACK_SECONDS = 3600.0
_CHUNK_ROWS = 200
_FIELDS = {"run": "run_id"}


class Page(NamedTuple):
    items: list[Row]
    next: str | None
    """The cursor of the next page; `None` if there is none."""
    scanned: int
    """The number of rows that were looked at."""


class AdminQueries:
    """Reads rows of all owners. It changes nothing."""

    def __init__(self, store: HostStateStore) -> None:
        self._store = store
        self._names = PersonNames(store)

    async def page(
        self, kind: str, filters: Mapping[str, str] | None = None, *, after: str | None = None, limit: int = 50
    ) -> Page:
        """List rows that match all filters, in the order of their kind. `after` is the `next` of the previous page."""
        found = await self._page(kind, filters, after, limit)
        return found._replace(items=await add_names(check_kind(kind), found.items, self._names))

    async def _page(self, kind: str, filters: Mapping[str, str] | None, after: str | None, limit: int) -> Page:
        known, wanted = check_kind(kind), dict(filters or {})
        since = _check_filters(known, wanted, limit)
        by = _find_indexed(known, wanted)
        place = None if after is None else read_cursor(known, after)
        items: list[Row] = []
        scanned = 0
        while scanned < MAX_SCANNED:
            size = limit + 1 - len(items) if by.keys() == wanted.keys() and since is None else _CHUNK_ROWS
            size = min(size, MAX_SCANNED - scanned)
            rows = await self._store.ledger.rows(known, by=by, after=place, limit=size)
            for row in rows:
                item = summary(known, row)
                if since is not None and _is_past(known, item, since):
                    return Page(items, None, scanned + 1)
                if _matches(known, item, wanted, since):
                    if len(items) == limit:
                        return Page(items, None if place is None else write_cursor(known, place), scanned)
                    items.append(item)
                scanned += 1
                place = row.place
            if len(rows) < size:
                return Page(items, None, scanned)
        return Page(items, None if place is None else write_cursor(known, place), scanned)

    async def show(self, kind: str, name: Mapping[str, str], *, content: bool = False) -> Row:
        """Return a single row with its details. With `content`, include the text of messages."""
        known = check_kind(kind)
        row = await self.find(known, name)
        (named,) = await add_names(known, [summary(known, row)], self._names)
        shown = {**named, **details(known, row, content=content)}
        if known == "links":
            family = await self.page("links", {"person": str(shown["person"])})
            own = (shown["channel"], shown["id"])
            shown["linked_with"] = [other for other in family.items if (other["channel"], other["id"]) != own]
        if known == "people":
            seen = await self._store.identities.last_seen(str(shown["person"]))
            shown |= {"last_seen_on": seen and seen.identity.channel, "last_seen_at": seen and seen.at}
        if known == "approvals":
            shown |= await self._about_approval(str(shown["person"]), str(shown["approval_id"]), content=content)
        if known == "sessions" and content:
            shown |= await self._session_content(str(shown["person"]), str(shown["session_id"]))
        return shown

    async def _about_approval(self, owner: str, approval_id: str, *, content: bool) -> Row:
        votes = await self._store.approvals.votes(owner, approval_id)
        places = await self._store.approvals.places(owner, approval_id)
        lines = await self._store.audit.lines(subject=approval_id)
        return {
            "shown_to": [
                {"at": place.at, "to": place.identity.native_id, "channel": place.channel} for place in places
            ],
            "votes": [
                {"at": vote.at, "by": vote.voter, "approved": vote.approved, "account": _account(vote.identity)}
                | await self._voter_name(vote)
                | ({"reason": vote.reason} if content else {})
                for vote in votes
            ],
            "audit": [{"at": line.at, "what": line.action, "by": line.by} for line in lines],
        }

    async def _voter_name(self, vote: ApprovalVote) -> Row:
        person = None if vote.identity is None else await self._names.find(vote.identity)
        name, verified = ("", False) if person is None else (person.name, person.verified)
        return {"name": name or None, "name_verified": verified}

    async def _session_content(self, owner: str, session_id: str) -> Row:
        titles = await self._store.sessions.titles(owner, [session_id])
        history = await self._store.sessions.history(owner, session_id)
        return {"title": titles.get(session_id), "last_messages": [_message(each) for each in history[-MAX_MESSAGES:]]}

    async def find(self, kind: LedgerKind, name: Mapping[str, str]) -> LedgerRow:
        """Return the named row. Raise if the name matches several rows."""
        wanted = {key: value for key, value in name.items() if key in ("id", "channel", "person")}
        _check_filters(kind, wanted, 1)
        if "id" not in wanted:
            raise InvalidRequestError("An id is required.", param="id")
        rows = await self._store.ledger.rows(kind, by=_find_indexed(kind, wanted), limit=MAX_PAGE_ROWS)
        rows = [row for row in rows if _matches(kind, summary(kind, row), wanted, None)]
        if not rows:
            raise NotFoundError(f"No {_RECORD_NAMES[kind]} with this id.", param="id")
        if len(rows) > 1:
            raise ConflictError("Several people have a record with this id. Add the person.", code="ambiguous")
        return rows[0]


def check_kind(kind: str) -> LedgerKind:
    if kind not in PLACES:
        raise InvalidRequestError(f"Unknown kind {kind!r}, must be one of {', '.join(PLACES)}.", param="kind")
    return cast(LedgerKind, kind)


def _check_filters(kind: LedgerKind, filters: dict[str, str], limit: int) -> float | None:
    """Reject filters that the kind does not support. Remove the time filter and return its value."""
    for name, value in filters.items():
        if name not in FILTERS[kind]:
            raise InvalidRequestError(f"Unknown filter {name!r} for {kind}.", param=name)
        if type(value) is not str:
            raise InvalidRequestError("The value of a filter is a text.", param=name)
    if not 1 <= limit <= MAX_PAGE_ROWS:
        raise InvalidRequestError(f"limit must be from 1 to {MAX_PAGE_ROWS}.", param="limit")
    if kind in ("people", "links") and "id" in filters and "channel" not in filters:
        raise InvalidRequestError("The id filter requires the channel filter.", param="channel")
    try:
        return float(filters.pop("since")) if "since" in filters else None
    except ValueError:
        raise InvalidRequestError("since must be a time in seconds.", param="since") from None


def _find_indexed(kind: LedgerKind, filters: Mapping[str, str]) -> dict[str, str]:
    for names in INDEXED[kind]:
        common = names == ("status",) and filters.get("status") == COMMON.get(kind)
        if not common and all(name in filters for name in names):
            return {name: filters[name] for name in names}
    return {}


def _matches(kind: LedgerKind, item: Row, filters: Mapping[str, str], since: float | None) -> bool:
    if since is not None and (at := item[_TIMES[kind]]) is not None and at < since:
        return False
    return all(
        str(item[IDS[kind] if name == "id" else _FIELDS.get(name, name)]) == value for name, value in filters.items()
    )


def _is_past(kind: LedgerKind, item: Row, since: float) -> bool:
    """Return True if no later row can match the time filter."""
    at = item[_TIMES[kind]]
    return at is not None and at < since - (0.0 if kind in _BY_TIME else _SLACK_SECONDS)


def _account(identity: ChannelIdentity | None) -> str | None:
    return None if identity is None else f"{identity.native_id} on {identity.channel}"


def _message(message: Any) -> Row:
    try:
        return {"role": str(getattr(message, "role", "")), "text": str(message.text)}
    except AttributeError:
        return {"role": "", "text": _json(message)}


def _json(value: Any) -> str:
    try:
        return str(to_json(value))
    except CodecError:
        return ""
