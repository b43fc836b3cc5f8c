"""Renders messages as activities. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from frontdesk.activity.parse import BUTTON
from frontdesk.activity.schema import TEAMS, Reference
from frontdesk.chat.messages import Button, Card, OutboundFile, OutboundMessage

CARD_TYPE: Final = "application/vnd.microsoft.card.adaptive"
HERO_TYPE: Final = "application/vnd.microsoft.card.hero"
MESSAGE_TYPE: Final = "application/vnd.microsoft.activity.message"
CARD_VERSION: Final = "1.5"
MAX_ACTIVITY_BYTES: Final = 80_000
"""The size of an activity as UTF-16. Teams refuses more than about 100 KB."""
MAX_NAME_LENGTH: Final = 128
MAX_BUTTON_LENGTH: Final = 80
CARD_PLATFORMS: Final = frozenset({TEAMS, "webchat", "directline", "emulator", "cortana"})
"""Platforms that show adaptive cards with buttons. Others get a hero card."""
TEAMS_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif"})


def base_activity(kind: str, reference: Reference) -> dict[str, Any]:
    """Return an activity of a kind without content, addressed to a conversation."""
    activity: dict[str, Any] = {
        "type": kind,
        "channelId": reference.channel,
        "serviceUrl": reference.url,
        "conversation": _conversation(reference),
        "from": {"id": reference.bot},
    }
    if reference.user:
        activity["recipient"] = {"id": reference.user}
    if reference.locale:
        activity["locale"] = reference.locale
    return activity


def _conversation(reference: Reference) -> dict[str, Any]:
    conversation: dict[str, Any] = {"id": reference.conversation}
    if reference.kind:
        conversation["conversationType"] = reference.kind
    if reference.tenant:
        conversation["tenantId"] = reference.tenant
    return conversation


def message_activity(message: OutboundMessage, reference: Reference) -> dict[str, Any]:
    """Return the activity of a message. The words of a message with buttons are in its card.

    Teams shows a text beside an attachment as another message.
    """
    activity = base_activity("message", reference)
    buttons = tuple(button for button in message.buttons if button.text and (button.data or button.url))
    attachments = [file_attachment(file) for file in message.media if can_show(file, reference.channel)]
    if buttons:
        attachments.append(card_attachment(message.text, buttons, reference.channel))
    elif message.text:
        activity |= {"text": _sound(message.text), "textFormat": "markdown"}
    if attachments:
        activity["attachments"] = attachments
    if message.reply_to:
        activity["replyToId"] = message.reply_to
    return activity


def file_attachment(file: OutboundFile) -> dict[str, Any]:
    attachment = {"contentType": file.media_type, "contentUrl": f"data:{file.media_type};base64,{file.data}"}
    return {**attachment, "name": _sound(file.name[:MAX_NAME_LENGTH])} if file.name else attachment


def can_show(file: OutboundFile, channel: str) -> bool:
    """Return True if a platform shows a file that is part of the activity. Teams does so for small images."""
    return channel != TEAMS or file.media_type in TEAMS_IMAGES


def card_attachment(text: str, buttons: Sequence[Button], channel: str) -> dict[str, Any]:
    """Return the card of a question, in the form that a platform shows."""
    if channel not in CARD_PLATFORMS:
        return {"contentType": HERO_TYPE, "content": {"text": _sound(text), "buttons": [*map(_hero_button, buttons)]}}
    actions = [_card_action(button, is_teams=channel == TEAMS) for button in buttons]
    return {"contentType": CARD_TYPE, "content": text_card(text, actions)}


def text_card(text: str, actions: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return an adaptive card with a text."""
    blocks = [{"type": "TextBlock", "text": _sound(text), "wrap": True}] if text else []
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": CARD_VERSION,
        "body": blocks,
    }
    return {**card, "actions": list(actions)} if actions else card


def _card_action(button: Button, *, is_teams: bool) -> dict[str, Any]:
    """Return the action of a button. Its data is only the id of the question: what it decides is stored."""
    title = _sound(button.text[:MAX_BUTTON_LENGTH])
    if button.url:
        return {"type": "Action.OpenUrl", "title": title, "url": _sound(button.url)}
    submit: dict[str, Any] = {"type": "Action.Submit", "title": title, "data": {BUTTON: _sound(button.data)}}
    if not is_teams:
        return submit
    return {**submit, "type": "Action.Execute", "verb": BUTTON, "fallback": submit}


def _hero_button(button: Button) -> dict[str, Any]:
    title = _sound(button.text[:MAX_BUTTON_LENGTH])
    if button.url:
        return {"type": "openUrl", "title": title, "value": _sound(button.url)}
    # As text, because some platforms send back nothing else.
    return {"type": "postBack", "title": title, "value": msgspec.json.encode({BUTTON: _sound(button.data)}).decode()}


def stream_activity(text: str, reference: Reference, *, sequence: int, stream_id: str = "") -> dict[str, Any]:
    """Return the next state of a message that is being written. The text is all of it so far."""
    info: dict[str, Any] = {"type": "streaminfo", "streamType": "streaming", "streamSequence": sequence}
    if stream_id:
        info["streamId"] = stream_id
    return {**base_activity("typing", reference), "text": _sound(text), "entities": [info]}


def final_activity(message: OutboundMessage, reference: Reference, stream_id: str) -> dict[str, Any]:
    """Return the message that ends a stream."""
    info = {"type": "streaminfo", "streamType": "final", "streamId": stream_id}
    return {**message_activity(message, reference), "entities": [info]}


def build_typing_activity(reference: Reference) -> dict[str, Any]:
    return base_activity("typing", reference)


def card_body(card: Card) -> bytes:
    """Return the body of the response to a click: the card that replaces the question, or a short text."""
    if card.card:
        shown: dict[str, Any] = {"statusCode": 200, "type": CARD_TYPE, "value": text_card(card.card)}
    else:
        shown = {"statusCode": 200, "type": MESSAGE_TYPE, "value": _sound(card.notice)}
    return msgspec.json.encode(shown)


def error_body(status: int, code: str, message: str) -> bytes:
    """Return the body of the response to a click that can't be handled."""
    value = {"code": code, "message": message}
    return msgspec.json.encode({"statusCode": status, "type": "application/vnd.microsoft.error", "value": value})


def replies_body(activities: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the body of the response to an activity that expects its replies in it."""
    return msgspec.json.encode({"activities": activities})


def is_too_large(activity: Mapping[str, Any]) -> bool:
    """Return True if the platform would refuse an activity for its size, which it counts as UTF-16."""
    text = msgspec.json.encode(activity).decode()
    return len(text) * 4 > MAX_ACTIVITY_BYTES and len(text.encode("utf-16-le")) > MAX_ACTIVITY_BYTES


def _sound(text: str) -> str:
    """Replace lone surrogates, which cannot be sent."""
    return text.encode("utf-8", "replace").decode()
