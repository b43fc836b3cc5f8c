"""Parses activities into inbound chat messages. Pure."""

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, cast

import msgspec

from frontdesk.activity.schema import TEAMS, Account, Activity, Attachment, Reference
from frontdesk.activity.verify import ProvedActivity, teams_claims
from frontdesk.chat.messages import (
    Click,
    Destination,
    Inbound,
    InboundFile,
    InboundMessage,
    Invoke,
    MembershipChange,
    Sender,
)
from frontdesk.errors import InvalidRequestError

BUTTON: Final = "frontdesk"
"""The key of the data of our buttons."""
CARD_ACTION: Final = "adaptiveCard/action"
EXPECT_REPLIES: Final = "expectReplies"
REMOVED: Final = "bot_removed"
FILE_INFO: Final = "application/vnd.microsoft.teams.file.download.info"
CLIENT_WRITTEN: Final = frozenset({"webchat", "directline", "directlinespeech", "emulator", "email", "test"})
"""Platforms whose clients choose the id of their user, so that it proves nothing."""
_THREAD = ";messageid="
_SILENT = ("notification", "ephemeral")
_MAX_MENTIONS = 50
_MAX_FILES = 50
_MAX_VALUE_LENGTH = 16_384
_CARD_TYPES = ("application/vnd.microsoft.card.", "application/vnd.microsoft.teams.card.", "text/html")


@dataclass(frozen=True, kw_only=True)
class ParseRules:
    """The settings of a channel that decide how activities are read."""

    app_id: str


def read_activity(proof: ProvedActivity, rules: ParseRules) -> Inbound | None:
    """Return the chat event of an activity, or None if there is nothing to answer."""
    activity = proof.activity
    match activity.type:
        case "message" | "messageUpdate":
            return _message(proof, rules)
        case "invoke":
            return _invoke(proof)
        case "installationUpdate" if activity.channel_id == TEAMS:
            return _installation(proof)
        case "conversationUpdate" if activity.channel_id != TEAMS:
            return _membership(proof)
        case _:
            return None


def _message(proof: ProvedActivity, rules: ParseRules) -> InboundMessage | None:
    activity = proof.activity
    edited = activity.type == "messageUpdate"
    event_type = activity.data.event_type if activity.channel_id == TEAMS else None
    if activity.delivery_mode in _SILENT or event_type in ("softDeleteMessage", "undeleteMessage"):
        return None
    if _is_bot(activity.sender):
        return None
    text, mentioned = strip_mentions(activity, rules.app_id)
    files = list_files(activity.attachments or ())
    click = _click(activity)
    is_form = click is None and not text and activity.value is not None
    return InboundMessage(
        event_id=_event_id(activity, f":edit:{activity.timestamp or ''}" if edited else ""),
        at=parse_time(activity.timestamp),
        sender=build_sender(proof),
        place=build_place(proof),
        text=_form_text(activity.value) if is_form else "" if click is not None else text,
        message_id=activity.id or "",
        mentioned=mentioned,
        click=click,
        media=files,
        edited=edited,
        expects_reply=activity.delivery_mode == EXPECT_REPLIES and not edited,
        unsupported=_find_unsupported(activity),
        attributes={"value": activity.value} if is_form and _is_small(activity.value) else {},
    )


def _invoke(proof: ProvedActivity) -> InboundMessage | Invoke:
    activity = proof.activity
    sender, place, at = build_sender(proof), build_place(proof), parse_time(activity.timestamp)
    value = _as_mapping(activity.value)
    if activity.name == CARD_ACTION:
        action = _as_mapping(value.get("action"))
        data = _as_mapping(action.get("data")).get(BUTTON)
        if isinstance(data, str) and data:
            return InboundMessage(
                event_id=_event_id(activity),
                at=at,
                sender=sender,
                place=place,
                mentioned=True,
                click=Click(data=data, message_id=activity.reply_to_id or "", expects_card=True),
            )
    return Invoke(
        event_id=_event_id(activity), at=at, sender=sender, place=place, name=activity.name or "", value=activity.value
    )


def _installation(proof: ProvedActivity) -> MembershipChange | None:
    """Return that the bot was installed or removed. Teams sends the same as a `conversationUpdate` too."""
    action = proof.activity.action or ""
    if action.startswith("add"):
        return _change(proof, present=True)
    return _change(proof, present=False) if action.startswith("remove") else None


def _membership(proof: ProvedActivity) -> MembershipChange | None:
    activity = proof.activity
    bot = None if activity.recipient is None else activity.recipient.id
    if bot is None:
        return None
    if any(member.id == bot for member in activity.members_added or ()):
        return _change(proof, present=True)
    if any(member.id == bot for member in activity.members_removed or ()):
        return _change(proof, present=False)
    return None


def _change(proof: ProvedActivity, *, present: bool) -> MembershipChange:
    activity = proof.activity
    person = activity.sender
    bot = None if activity.recipient is None else activity.recipient.id
    is_person = person is not None and bool(person.id) and person.id != bot and not _is_bot(person)
    place = build_place(proof)
    if place.kind == "direct" and is_person:
        # What waits for a person is queued by their id.
        place = msgspec.structs.replace(place, user_id=build_sender(proof).id)
    return MembershipChange(
        event_id=_event_id(activity, f":{'added' if present else REMOVED}:{activity.timestamp or ''}"),
        at=parse_time(activity.timestamp),
        place=place,
        present=present,
        reason="" if present else REMOVED,
        by=build_sender(proof) if is_person else None,
    )


def build_place(proof: ProvedActivity) -> Destination:
    """Return the conversation of an activity, with the reference by which it is reached."""
    activity = proof.activity
    base, _, thread = conversation_id(activity).partition(_THREAD)
    kind = conversation_kind(activity)
    return Destination(
        chat_id=_add_scope(proof, base),
        thread_id=thread if kind == "group" else "",
        kind=kind,
        reference=msgspec.to_builtins(build_reference(proof)),
    )


def build_reference(proof: ProvedActivity) -> Reference:
    activity = proof.activity
    conversation = activity.conversation
    is_direct = conversation_kind(activity) == "direct"
    person, bot = activity.sender, activity.recipient
    return Reference(
        url=activity.service_url or "",
        channel=activity.channel_id or "",
        conversation=conversation_id(activity),
        bot=(bot and bot.id) or "",
        user=(person and person.id) or "" if is_direct else "",
        tenant=activity.tenant_id if activity.channel_id == TEAMS else "",
        kind=(conversation and conversation.conversation_type) or "",
        locale=activity.locale or "" if is_direct else "",
        audience=proof.caller_app,
        emulator=proof.source == "emulator",
    )


def build_sender(proof: ProvedActivity) -> Sender:
    """Return the sender, with an id that no person on another platform can have."""
    activity = proof.activity
    person = activity.sender
    if person is None or not person.id:
        raise InvalidRequestError("The activity has no sender.")
    attributes: dict[str, Any] = {"channel_id": activity.channel_id}
    claims = teams_claims(activity, proof.source)
    if activity.channel_id == TEAMS:
        attributes |= {"tenant_id": activity.tenant_id, "service_url": activity.service_url}
        attributes |= {"bot_id": (activity.recipient and activity.recipient.id) or ""}
    if claims:
        attributes["aad_object_id"] = claims["oid"]
    native_id = _add_scope(proof, person.id)
    if activity.channel_id in CLIENT_WRITTEN or proof.source == "emulator":
        # Whoever has the key of such a channel chooses the id of the person. The conversation is what nobody chooses.
        native_id = _add_scope(proof, f"{conversation_id(activity)}:{person.id}")
    return Sender(
        id=native_id,
        name=person.name or "",
        locale=activity.locale or "",
        is_bot=_is_bot(person),
        attributes={name: value for name, value in attributes.items() if value},
        claims=claims,
    )


def _add_scope(proof: ProvedActivity, name: str) -> str:
    """Return an id with its platform. Ids of Teams are as they are, and begin with no name of a platform."""
    scope = f"skill:{proof.caller_app}:" if proof.source == "skill" else ""
    channel = proof.activity.channel_id
    return f"{scope}{name}" if channel == TEAMS else f"{scope}{channel}:{name}"


def conversation_id(activity: Activity) -> str:
    conversation = activity.conversation
    if conversation is None or not conversation.id:
        raise InvalidRequestError("The activity has no conversation.")
    return conversation.id


def conversation_kind(activity: Activity) -> Literal["direct", "group"]:
    conversation = activity.conversation
    if conversation is None:
        return "group"
    if conversation.conversation_type:
        return "direct" if conversation.conversation_type == "personal" else "group"
    # Teams names the type of all its conversations; one without is treated as the one with more readers.
    return "group" if conversation.is_group or activity.channel_id == TEAMS else "direct"


def strip_mentions(activity: Activity, app_id: str) -> tuple[str, bool]:
    """Return the text without the mentions of the bot, and whether there are any. Mentions of others stay."""
    text, bot = activity.text or "", None if activity.recipient is None else activity.recipient.id
    mentioned, kept, place = False, list[str](), 0
    for entity in (activity.entities or ())[:_MAX_MENTIONS]:
        if entity.type != "mention" or entity.mentioned is None:
            continue
        is_bot = entity.mentioned.id is not None and entity.mentioned.id in (bot, f"28:{app_id}")
        mentioned = mentioned or is_bot
        found = text.find(entity.text, place) if entity.text else -1
        if found < 0:
            continue
        end = found + len(entity.text or "")
        kept.append(text[place:found] if is_bot else text[place:end])
        place = end
    text = "".join((*kept, text[place:])).replace("&nbsp;", " ").replace("\xa0", " ").strip()
    return text, mentioned


def _is_bot(person: Account | None) -> bool:
    return person is not None and (person.role == "bot" or (person.id or "").startswith("28:"))


def _click(activity: Activity) -> Click | None:
    """Return the press of one of our buttons, which comes as a message on most platforms."""
    data = _as_mapping(activity.value).get(BUTTON)
    if data is None:
        given: Any = activity.value if isinstance(activity.value, str) else activity.text
        data = _button_in(given)
    if not isinstance(data, str) or not data:
        return None
    return Click(data=data, message_id=activity.reply_to_id or "")


def _button_in(text: Any) -> str | None:
    """Return the data of a button whose platform sends it as text, such as Slack."""
    if not isinstance(text, str) or len(text) > 256 or not text.strip().startswith(f'{{"{BUTTON}"'):
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, str]).get(BUTTON)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _form_text(value: Any) -> str:
    """Return the submitted fields of an operator's card, as text."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:_MAX_VALUE_LENGTH]


def _is_small(value: Any) -> bool:
    return len(msgspec.json.encode(value)) <= _MAX_VALUE_LENGTH


def list_files(attachments: tuple[Attachment, ...]) -> tuple[InboundFile, ...]:
    """Return the files of a message, to be fetched later."""
    return tuple(file for each in attachments[:_MAX_FILES] if (file := _file(each)) is not None)


def _file(attachment: Attachment) -> InboundFile | None:
    kind, name = attachment.content_type or "", attachment.name or ""
    if kind == FILE_INFO:
        url = _as_mapping(attachment.content).get("downloadUrl")
        if not isinstance(url, str) or not url:
            return None
        return InboundFile(media_type=_media_type("", name), name=name, url=url)
    url = attachment.content_url or ""
    if not url or kind.startswith(_CARD_TYPES):
        return None
    if url.startswith("data:"):
        head, _, data = url.partition(";base64,")
        return (
            InboundFile(media_type=_media_type(head.removeprefix("data:"), name), name=name, data=data)
            if data
            else None
        )
    return InboundFile(media_type=_media_type(kind, name), name=name, url=url)


def _media_type(given: str, name: str) -> str:
    if given and "*" not in given:
        return given
    return mimetypes.guess_type(name)[0] or ("image/png" if given == "image/*" else "application/octet-stream")


def _find_unsupported(activity: Activity) -> str:
    kinds = [
        each.content_type or "attachment" for each in activity.attachments or () if each.content_type != "text/html"
    ]
    return kinds[0][:64] if kinds else ""


def _event_id(activity: Activity, more: str = "") -> str:
    name = activity.id or ""
    if not name and not more:
        raise InvalidRequestError("The activity has no id.")
    return f"{activity.channel_id}:{conversation_id(activity)}:{name}{more}"


def parse_time(text: str | None) -> float:
    """Return a time in seconds, or 0 if it is missing or invalid."""
    try:
        moment = msgspec.convert(text, datetime)
        return moment.timestamp() if moment.tzinfo is not None else 0.0
    except (msgspec.ValidationError, ValueError, OverflowError):
        return 0.0
