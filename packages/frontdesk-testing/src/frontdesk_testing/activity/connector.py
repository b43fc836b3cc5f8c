"""The connector: the calls of bots, as strict as that of Bot Service.

It does not cover: media of adaptive cards, the schema of cards beyond their type and actions, meetings, tabs, message
extensions, targeted messages, the roster of a team (`pagedmembers` returns the people of a conversation), uploads of
attachments, agentic users, and the limits of a tenant. Limits of a conversation and the pace of streams count only with
`limits=True`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import unquote

import msgspec

from frontdesk.clock import Clock
from frontdesk_testing.activity.world import TEAMS, Conversation, Message, Person, Stream

MAX_ACTIVITY_BYTES: Final = 100 * 1024
"""The size of an activity, counted as UTF-16."""
STREAM_SECONDS: Final = 120.0
MIN_STREAM_PAUSE: Final = 1.0
WINDOWS: Final = ((1.0, 7), (2.0, 8), (30.0, 60), (3600.0, 1800))
MAX_ACTIONS: Final = 6
_FORMATS = ("plain", "markdown", "xml", None)
_CARDS = {
    "application/vnd.microsoft.card.adaptive": "AdaptiveCard",
    "application/vnd.microsoft.card.hero": None,
}
_STREAM_TEXTS = {
    "canceled": "Content stream was canceled by user.",
    "timeout": "Content stream finished due to exceeded streaming time.",
    "final": "Content stream is not allowed on an already completed streamed message",
}


class ConnectorError(Exception):
    """The connector refuses a call."""

    def __init__(self, status: int, code: str, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after

    def as_json(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message or self.code}}


@dataclass(frozen=True, slots=True)
class ConnectorCall:
    """A call of a bot, with the status of its answer."""

    method: str
    path: str
    body: Any
    status: int


class Connector:
    """The conversations of one bot."""

    def __init__(self, bot_id: str, clock: Clock, *, limits: bool) -> None:
        self.bot_id = bot_id
        self.people: dict[str, Person] = {}
        self.conversations: dict[str, Conversation] = {}
        self.attachments: dict[str, tuple[str, bytes]] = {}
        self.calls: list[ConnectorCall] = []
        self.typing: list[str] = []
        """The conversations in which the bot has shown that it is typing."""
        self._clock, self._limits = clock, limits
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return str(1_700_000_000_000 + self._count)

    def answer(self, method: str, service: str, path: str, body: bytes) -> tuple[int, Any]:
        """Answer a call below `v3/` with a status and a body."""
        parts = [unquote(part) for part in path.split("/")]
        try:
            match method, parts:
                case "POST", ["conversations"]:
                    return self._create(service, _json(body))
                case "POST", ["conversations", name, "activities"]:
                    return self._send(service, name, "", body)
                case "POST", ["conversations", name, "activities", reply_to]:
                    return self._send(service, name, reply_to, body)
                case "PUT", ["conversations", name, "activities", activity_id]:
                    return self._update(service, name, activity_id, body)
                case "DELETE", ["conversations", name, "activities", activity_id]:
                    return self._delete(service, name, activity_id)
                case "GET", ["conversations", name, "pagedmembers"]:
                    conversation = self._conversation(service, name)
                    return 200, {"members": [self.people[each].account() for each in sorted(conversation.members)]}
                case _:
                    raise ConnectorError(404, "NotFound")
        except ConnectorError as error:
            self.calls.append(ConnectorCall(method, path, None, error.status))
            raise

    def _conversation(self, service: str, name: str) -> Conversation:
        base = name.partition(";messageid=")[0]
        conversation = self.conversations.get(base)
        if conversation is None or service != service_path(conversation.channel):
            raise ConnectorError(404, "ConversationNotFound", "Conversation not found.")
        if not conversation.installed:
            raise ConnectorError(403, "BotNotInConversationRoster", "The bot is not part of the conversation roster.")
        return conversation

    def _create(self, service: str, given: Mapping[str, Any]) -> tuple[int, Any]:
        members = given.get("members")
        if not isinstance(members, list) or len(cast("list[Any]", members)) != 1:
            raise ConnectorError(400, "BadSyntax", "Incorrect conversation creation parameters")
        person = self.people.get(str(cast("list[Any]", members)[0].get("id")))
        if service != service_path(TEAMS) or given.get("bot", {}).get("id") != self.bot_id:
            raise ConnectorError(400, "BadSyntax", "Invalid bot")
        if person is None or person.channel != TEAMS or given.get("tenantId") != person.tenant:
            raise ConnectorError(403, "Forbidden", "User not found in the tenant")
        if not person.chat.installed:
            raise ConnectorError(403, "Forbidden", "The bot is not installed for the user.")
        self.calls.append(ConnectorCall("POST", "conversations", given, 201))
        return 201, {"id": person.chat.id}

    def _send(self, service: str, name: str, reply_to: str, body: bytes) -> tuple[int, Any]:
        conversation = self._conversation(service, name)
        activity = self._check(conversation, name, body)
        if reply_to and reply_to not in conversation.heard and reply_to not in conversation.messages:
            raise ConnectorError(400, "ActivityNotFoundInConversation")
        info = _stream_info(activity)
        kind = activity["type"]
        if kind == "typing" and info is None:
            self.typing.append(name)
            status, result = 202, None
        elif info is not None:
            status, result = self._stream(conversation, name, activity, info)
        elif kind == "message":
            status, result = 201, {"id": self._show(conversation, name, activity)}
        else:
            raise ConnectorError(400, "BadSyntax", f"Unexpected activity type {kind}")
        self.calls.append(ConnectorCall("POST", f"conversations/{name}/activities", activity, status))
        return status, result

    def _show(self, conversation: Conversation, name: str, activity: Mapping[str, Any]) -> str:
        message_id = self.new_id()
        conversation.messages[message_id] = Message(message_id, activity, name)
        return message_id

    def _check(self, conversation: Conversation, name: str, body: bytes) -> dict[str, Any]:
        """Return an activity that follows the rules."""
        activity = _json(body)
        if len(body.decode().encode("utf-16-le")) > MAX_ACTIVITY_BYTES:
            raise ConnectorError(413, "MessageSizeTooBig", "Message size too large.")
        if activity.get("from", {}).get("id") != self.bot_id:
            raise ConnectorError(403, "Forbidden", "Invalid bot")
        if activity.get("conversation", {}).get("id", name) != name:
            raise ConnectorError(400, "BadArgument", "The conversation differs from that of the URL.")
        recipient = activity.get("recipient", {}).get("id")
        if recipient is not None and recipient not in conversation.members:
            raise ConnectorError(400, "BadArgument", "The recipient is not in the conversation.")
        if activity.get("type") == "message":
            _check_message(activity)
        self._limit(conversation)
        return activity

    def _limit(self, conversation: Conversation) -> None:
        if not self._limits:
            return
        now = self._clock.now()
        conversation.sent_at = [at for at in conversation.sent_at if now - at < WINDOWS[-1][0]]
        for seconds, count in WINDOWS:
            if sum(now - at < seconds for at in conversation.sent_at) >= count:
                raise ConnectorError(429, "TooManyRequests", retry_after=1)
        conversation.sent_at.append(now)

    def _stream(
        self, conversation: Conversation, name: str, activity: Mapping[str, Any], info: Mapping[str, Any]
    ) -> tuple[int, Any]:
        if conversation.channel != TEAMS or conversation.kind != "personal":
            raise ConnectorError(405, "MethodNotAllowed", "Streaming is only supported in one-on-one chats.")
        kind, stream_id, sequence = info.get("streamType"), info.get("streamId"), info.get("streamSequence")
        if kind == "final":
            if activity["type"] != "message" or sequence is not None or not stream_id:
                raise ConnectorError(400, "BadRequest", "A final message needs a streamId and no streamSequence.")
            self._open_stream(conversation, str(stream_id), closing=True).state = "final"
            conversation.messages[str(stream_id)] = Message(str(stream_id), activity, name)
            # The body is empty: the message has the id of the stream.
            return 202, None
        if activity["type"] != "typing" or kind not in ("streaming", "informative") or not activity.get("text"):
            raise ConnectorError(400, "BadRequest", "Start streaming activities should include text")
        if not isinstance(sequence, int) or sequence < 1:
            raise ConnectorError(400, "BadRequest", "streamSequence must be a number from 1 on")
        if not stream_id:
            return 201, {"id": self._begin_stream(conversation, name, activity, sequence)}
        stream = self._open_stream(conversation, str(stream_id))
        if sequence <= stream.sequence:
            raise ConnectorError(202, "ContentStreamSequenceOrderPreConditionFailed", "PreCondition failed exception")
        if self._limits and self._clock.now() - conversation.sent_at[-2] < MIN_STREAM_PAUSE:
            raise ConnectorError(429, "TooManyRequests", "API calls quota exceeded", retry_after=1)
        stream.sequence = sequence
        stream.texts.append(activity["text"])
        conversation.messages[stream.id] = Message(stream.id, activity, name, is_stream=True)
        return 202, None

    def _begin_stream(self, conversation: Conversation, name: str, activity: Mapping[str, Any], sequence: int) -> str:
        if sequence != 1:
            raise ConnectorError(400, "BadRequest", "The first streamSequence must be 1")
        now = self._clock.now()
        if any(each.state == "open" and now - each.began_at < STREAM_SECONDS for each in conversation.streams.values()):
            raise ConnectorError(403, "ContentStreamNotAllowed", "Content stream is not allowed")
        stream_id = self._show(conversation, name, activity)
        conversation.messages[stream_id].is_stream = True
        conversation.streams[stream_id] = Stream(stream_id, now, sequence, texts=[activity["text"]])
        return stream_id

    def _open_stream(self, conversation: Conversation, stream_id: str, *, closing: bool = False) -> Stream:
        stream = conversation.streams.get(stream_id)
        if stream is None:
            raise ConnectorError(403, "ContentStreamNotAllowed", "Content stream is not allowed")
        if stream.state == "open" and self._clock.now() - stream.began_at > STREAM_SECONDS:
            stream.state = "timeout"
        if stream.state != "open":
            raise ConnectorError(403, "ContentStreamNotAllowed", _STREAM_TEXTS[stream.state])
        return stream

    def _update(self, service: str, name: str, activity_id: str, body: bytes) -> tuple[int, Any]:
        conversation = self._conversation(service, name)
        if conversation.channel != TEAMS:
            raise ConnectorError(405, "MethodNotAllowed", "The channel does not support updates.")
        activity = self._check(conversation, name, body)
        message = conversation.messages.get(activity_id)
        if message is None or message.deleted:
            raise ConnectorError(404, "ActivityNotFoundInConversation")
        if activity.get("id") != activity_id or activity["type"] != "message" or _stream_info(activity) is not None:
            raise ConnectorError(400, "BadArgument", "An update is a message with the id of the URL.")
        message.activity, message.versions, message.is_stream = activity, message.versions + 1, False
        self.calls.append(ConnectorCall("PUT", f"conversations/{name}/activities/{activity_id}", activity, 200))
        return 200, {"id": activity_id}

    def _delete(self, service: str, name: str, activity_id: str) -> tuple[int, Any]:
        conversation = self._conversation(service, name)
        if conversation.channel != TEAMS:
            raise ConnectorError(405, "MethodNotAllowed", "The channel does not support deletion.")
        message = conversation.messages.get(activity_id)
        if message is None or message.deleted:
            raise ConnectorError(404, "ActivityNotFoundInConversation")
        message.deleted = True
        self.calls.append(ConnectorCall("DELETE", f"conversations/{name}/activities/{activity_id}", None, 200))
        return 200, None


def service_path(channel: str) -> str:
    """Return the first part of the path of a platform's service URL."""
    return "teams" if channel == TEAMS else "others"


def _json(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ConnectorError(400, "BadSyntax", "Invalid or missing activity") from None


def _check_message(activity: Mapping[str, Any]) -> None:
    attachments: Any = activity.get("attachments", [])
    if not activity.get("text") and not attachments:
        raise ConnectorError(400, "BadSyntax", "A message needs a text or an attachment.")
    if activity.get("textFormat") not in _FORMATS:
        raise ConnectorError(400, "BadSyntax", "Unknown textFormat")
    for attachment in attachments:
        _check_attachment(attachment)


def _check_attachment(attachment: Mapping[str, Any]) -> None:
    kind = attachment.get("contentType")
    if kind in _CARDS:
        card = attachment.get("content", {})
        if _CARDS[kind] not in (None, card.get("type")) or len(card.get("actions", ())) > MAX_ACTIONS:
            raise ConnectorError(400, "BadArgument", "Invalid card")
    elif not kind or not attachment.get("contentUrl"):
        raise ConnectorError(400, "BadArgument", "An attachment needs a contentType and a contentUrl.")


def _stream_info(activity: Mapping[str, Any]) -> Mapping[str, Any] | None:
    entities: Any = activity.get("entities", [])
    return next((each for each in entities if each.get("type") == "streaminfo"), None)
