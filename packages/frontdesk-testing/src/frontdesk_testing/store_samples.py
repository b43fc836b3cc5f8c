"""Sample records for the contract of stores."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from agent_framework import Content, Message

from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.models.approval import ApprovalPlace, ApprovalVote, ApproverTerms, AuditLine, PendingApproval
from frontdesk.models.channel_storage import SealedValue, ValueLocation
from frontdesk.models.conversation import Conversation, ConversationItem, merge_aliases
from frontdesk.models.delivery import Delivery, EventKind, InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord, LastSeen
from frontdesk.models.link import Grant, LinkRecord
from frontdesk.models.live_message import LiveMessageRecord
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import BackgroundRun, RunEvent, RunRecord
from frontdesk.models.session import SessionName, SessionRecord
from frontdesk.models.watcher import WatcherRecord
from frontdesk.serialization.codec import from_json, to_json

OWNER = "alice"
OTHER = "bob"
NOW = 1_700_000_000.0

ODD_KEYS = (
    "",
    " ",
    ".",
    "..",
    "a/b",
    "a\\b",
    "a:b",
    "a%2fb",
    "a\nb",
    "nul\0byte",
    "Case",
    "case",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f642",
    "a+b",
    "a b",
    "a  b",
    "a%b",
    "a_b",
    "a?b",
    "case ",
    "CASE",
    "ß",
    "ss",
    "\u0131",
    "\u0130",
    "\u212a",
    "K",
    "\uff4b",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\u202eabc",
    "0",
    "00",
    "null",
    "\x01",
    "\x01" + sha256(b"nul\0byte").hexdigest(),
    "é" * 200,
    "e\u0301" * 100,
    "'; drop table sessions; --",
    "x" * 10_000,
    "x" * 9_999 + "y",
)
"""Keys that some store has confused with others, with paths or with nothing."""


def session(session_id: str = "ses_1", *, owner: str = OWNER, **fields: Any) -> SessionRecord:
    """Make a session at rest."""
    record = SessionRecord(session_id=session_id, owner=owner, key=session_id, created_at=NOW, updated_at=NOW)
    return record.replace(**fields)


def build_name(value: str = "mine", *, owner: str = OWNER) -> SessionName:
    """Make a name that a caller chose."""
    return SessionName(owner=owner, kind="named", value=value)


def build_messages(*texts: str) -> list[Message]:
    """Make messages of a user, with all fields that have to be stored."""
    return [
        Message("user", [Content.from_text(text)], message_id=f"msg {text}", additional_properties={"hosting": [text]})
        for text in texts
    ]


def data_uri(name: str, size: int = 20_000, media_type: str = "image/png") -> str:
    """Make a `data:` URI whose content follows from a name."""
    content = sha256(name.encode()).digest() * (size // 32 + 1)
    return f"data:{media_type};base64,{b64encode(content[:size]).decode()}"


def pictures(*names: str) -> list[Message]:
    """Make messages of a user with a text and a large picture each."""
    return [
        Message("user", [Content.from_text(name), Content.from_uri(data_uri(name), media_type="image/png")])
        for name in names
    ]


def texts(messages: Sequence[Any]) -> list[str]:
    """Return the texts of messages."""
    return [message.text for message in messages]


def identity(native_id: str = "1", *, channel: str = "telegram", **attributes: Any) -> ChannelIdentity:
    """Make a user on a channel."""
    return ChannelIdentity(channel=channel, native_id=native_id, attributes=attributes)


def build_identity(who: ChannelIdentity, key: str = OWNER) -> IdentityRecord:
    """Make an isolation key that was issued."""
    return IdentityRecord(identity=who, isolation_key=key, created_at=NOW)


def build_last_seen(who: ChannelIdentity, *, key: str = OWNER, at: float = NOW) -> LastSeen:
    """Return a presence of a person."""
    return LastSeen(isolation_key=key, identity=who, conversation_id="chat", at=at)


def link(who: ChannelIdentity, *, key: str = OWNER) -> LinkRecord:
    """Make a link between two identities of one person."""
    return LinkRecord(link_id=f"lnk_{who.native_id}", isolation_key=key, identity=who, linked_at=NOW, linker="code")


def grant(grant_id: str = "gra_1", *, expires_at: float = NOW + 900, **data: Any) -> Grant:
    """Return a pending proof."""
    return Grant(grant_id=grant_id, identity=identity(), expires_at=expires_at, data=data)


def run(run_id: str = "run_1", *, owner: str = OWNER, **fields: Any) -> RunRecord:
    """Make a run."""
    record = RunRecord(run_id=run_id, owner=owner, channel="web", status="completed", created_at=NOW)
    return record.replace(**fields)


def job(run_id: str = "run_1", *, owner: str = OWNER, **fields: Any) -> BackgroundRun:
    """Make a background run."""
    caller = Caller(identity=identity("1", channel="web"))
    # Only the gate admits requests; what it admitted is read from a record.
    tree: Any = {"$": "AdmittedRequest", "owner": owner, "run_id": run_id, "admitted_at": NOW}
    tree["request"] = to_json(ChannelRequest(channel="web", input="hello", background=True))
    tree |= {"caller": to_json(caller), "identity": to_json(caller.identity)}
    return BackgroundRun(admitted=from_json(tree)).replace(**fields)


def event(number: int, run_id: str = "run_1", *, owner: str = OWNER) -> RunEvent:
    """Make an event of a stream."""
    return RunEvent(owner=owner, run_id=run_id, number=number, data=b"\x00event %d" % number)


def question(approval_id: str = "apr_1", *, owner: str = OWNER, at: float = NOW, **fields: Any) -> PendingApproval:
    """Make a question about a tool call that waits."""
    call = Content.from_function_call("call_1", "pay", arguments='{"amount": 5}')
    request = Content.from_function_approval_request(approval_id, call)
    record = PendingApproval(
        approval_id=approval_id,
        owner=owner,
        session_id="ses_1",
        run_id="run_1",
        tool="pay",
        digest="d",
        request=request,
        created_at=at,
    )
    return record.replace(**fields)


def terms(**changes: Any) -> ApproverTerms:
    """Make the terms of a question that others decide."""
    bob = ChannelIdentity(channel="telegram", native_id="42", attributes={"name": "Bob"})
    return ApproverTerms(approvers=(bob,), votes=2, names=("Bob",)).replace(**changes)


def vote(voter: str = OWNER, approval_id: str = "apr_1", *, approved: bool = True, at: float = NOW) -> ApprovalVote:
    """Make a vote about a question."""
    return ApprovalVote(owner=OWNER, approval_id=approval_id, voter=voter, approved=approved, at=at)


def build_place(
    handle: str = "msg_1", approval_id: str = "apr_1", *, place: str = "chat", at: float = NOW
) -> ApprovalPlace:
    """Return a message that shows a question."""
    return ApprovalPlace(
        owner=OWNER,
        approval_id=approval_id,
        channel="telegram",
        place=place,
        handle=handle,
        identity=identity(),
        conversation_id=place,
        at=at,
    )


def audit_line(action: str = "approved", subject: str = "apr_1", *, at: float = NOW) -> AuditLine:
    """Make a line of the audit log."""
    return AuditLine(at=at, owner=OWNER, subject=subject, action=action, by=OWNER, reason="fine")


def inbox_item(
    event_id: str = "evt_1",
    *,
    chat: str = "chat",
    channel: str = "telegram",
    sender: str = "1",
    group: bool = False,
    kind: EventKind = "turn",
) -> InboxItem:
    """Make an event of a platform."""
    return InboxItem(
        channel=channel,
        event_id=event_id,
        conversation_id=chat,
        caller=Caller(identity=identity(sender, channel=channel)),
        request=ChannelRequest(channel=channel, input=event_id, conversation_id=chat, group=group),
        received_at=NOW,
        kind=kind,
    )


def live_answer(run_id: str = "run_1", **fields: Any) -> LiveMessageRecord:
    """Return a live answer whose first message is being sent."""
    live = LiveMessageRecord(
        run_id=run_id, channel="telegram", place="1", state="opening", fence=1, expires_at=NOW + 60
    )
    return live.replace(**fields)


def delivery(delivery_id: str = "del_1", *, due_at: float = NOW, **fields: Any) -> Delivery:
    """Make a part of an answer."""
    record = Delivery(
        delivery_id=delivery_id,
        run_id="run_1",
        owner=OWNER,
        channel="telegram",
        identity=identity(),
        part=0,
        payload={"text": "hello"},
        created_at=NOW,
        due_at=due_at,
    )
    if "place" in fields:
        record = record.replace(identity=identity(fields.pop("place")))
    return record.replace(**fields)


def conversation(conversation_id: str = "conv_1", *, owner: str = OWNER, **metadata: Any) -> Conversation:
    """Make a conversation of a caller."""
    return Conversation(conversation_id=conversation_id, owner=owner, created_at=NOW, metadata=metadata)


def conversation_item(item_id: str, conversation_id: str = "conv_1") -> ConversationItem:
    """Make an item of a conversation."""
    return ConversationItem(item_id=item_id, conversation_id=conversation_id, created_at=NOW, body={"said": item_id})


async def keep_session(store: HostStateStore, record: SessionRecord, messages: Sequence[Any] = ()) -> None:
    """Write a session as a turn does: claimed, saved with its messages, and released."""
    lease = await store.sessions.claim(record.session_id)
    async with store.transaction() as transaction:
        transaction.save_session(record, lease)
        transaction.append_history(record.session_id, messages)
    store.sessions.release(lease)


async def write_all_rows(store: HostStateStore, transaction: StateTransaction, name: str) -> None:
    """Write a record of each kind, all under one name."""
    transaction.save_session(session(name), await store.sessions.claim(name))
    transaction.name_session(build_name(name), name)
    transaction.title_session(OWNER, name, name)
    transaction.append_history(name, build_messages("question", "answer"))
    transaction.remember_identity(build_identity(identity(name), name))
    transaction.see(build_last_seen(identity(name), key=name))
    transaction.add_link(link(identity(name), key=name))
    transaction.add_grant(grant(name))
    transaction.save_run(run(name))
    transaction.add_events([event(1, name), event(2, name)])
    transaction.add_approval(question(name, session_id=name))
    transaction.accept(inbox_item(name, chat=name))
    transaction.add_delivery(delivery(name))
    transaction.save_conversation(conversation(name))
    transaction.add_items(OWNER, [conversation_item("a", name), conversation_item("b", name)])
    transaction.save_checkpoint(name, "chk", b"data")


async def count_all_rows(store: HostStateStore, name: str) -> int:
    """Count the records of `write_all_rows` that exist: 20 is all of them."""
    single = [
        await store.sessions.get(OWNER, name),
        await store.sessions.find(build_name(name)),
        await store.identities.find(identity(name)),
        await store.identities.last_seen(name),
        await store.identities.grant(name),
        await store.runs.get(OWNER, name),
        await store.approvals.get(OWNER, name),
        await store.inbox.next("telegram", name),
        await store.outbox.get(name),
        await store.conversations.get(OWNER, name),
        await store.checkpoints.get(name, "chk"),
    ]
    several = [
        await store.sessions.history(OWNER, name),
        await store.sessions.titles(OWNER, [name]),
        await store.identities.of_owner(name),
        await store.identities.links(name),
        await store.runs.events(OWNER, name),
        await store.conversations.items(OWNER, name),
    ]
    return sum(record is not None for record in single) + sum(len(records) for records in several)


VALUE_PLACE = ValueLocation(channel="chat", storage="tokens", key="bot")


def build_value(version: str = "val_1", *, expires_at: float | None = None) -> SealedValue:
    """Return a sealed value with an identifiable content."""
    return SealedValue(version=version, key_id="k1", data=f"\0{version}".encode(), expires_at=expires_at)


async def move_conversation(store: HostStateStore, old: str, new: str, channel: str = "chat") -> bool:
    """Rename a conversation. Return True if it was written."""
    aliases = store.conversation_aliases
    version = await aliases.version(channel)
    merge = merge_aliases(old, new, await aliases.find(channel, old), await aliases.find(channel, new))
    return merge is not None and await aliases.merge(channel, merge, version=version)


def watcher(watcher_id: str = "watch_1", **fields: Any) -> WatcherRecord:
    """Return a watcher of the chain of `run_1`."""
    given: dict[str, Any] = {
        "owner": OWNER,
        "chain_id": "run_1",
        "channel": "web",
        "identity": identity(),
        "url": "https://hooks.example.com/a",
        "metadata": {"name": "first"},
        "created_at": NOW,
        "expires_at": NOW + 3600,
        **fields,
    }
    return WatcherRecord(watcher_id=watcher_id, **given)
