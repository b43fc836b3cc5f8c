"""Renders outbound chat messages as Bot API calls, within the limits of the API. Pure."""

import base64
import binascii
import mimetypes
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, cast

from frontdesk.channels.telegram.parse import STOP
from frontdesk.chat.commands import Menu
from frontdesk.chat.messages import Button, Destination, OutboundFile, OutboundMessage
from frontdesk.markdown.dialect import Entity
from frontdesk.markdown.layout import length
from frontdesk.outbound.platform import FormFile

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
TOAST_LIMIT = 200
_MAX_ENTITIES = 100
_MAX_PHOTO_BYTES = 10_000_000
_MAX_ALBUM_SIZE = 10
_MAX_DATA_BYTES = 64
_MAX_ROW_LENGTH = 30
"""The characters of the buttons that are shown side by side."""
_MAX_BUTTONS_PER_ROW = 8
_MAX_COMMANDS = 100
_MAX_COMMAND_LENGTH = 32
_MAX_DESCRIPTION_LENGTH = 256
_SCOPES = {
    None: "default",
    "direct": "all_private_chats",
    "group": "all_group_chats",
    "admins": "all_chat_administrators",
}


class ApiCall(NamedTuple):
    method: str
    params: dict[str, Any]
    files: tuple[FormFile, ...] = ()


class _Medium(NamedTuple):
    kind: str
    """The name of the parameter, and of the kind in an album: photo, video, audio, voice, animation or document."""
    file: FormFile


def place_params(destination: Destination) -> dict[str, Any]:
    chat = destination.chat_id or destination.user_id
    where: dict[str, Any] = {"chat_id": int(chat) if _is_number(chat) else chat}
    if _is_number(destination.thread_id):
        where["message_thread_id"] = int(destination.thread_id)
    return where


def send_calls(
    message: OutboundMessage, destination: Destination, *, link_previews: bool = False, stop: str = ""
) -> list[ApiCall]:
    """Return the calls that send a message: one, unless its files cannot form an album.

    The first call has the reply, and the last one has the buttons. `stop` is the label of a stop button under a live
    message.
    """
    where = place_params(destination)
    markup = _markup(message, stop)
    media = media_calls(message.media)
    fits = len(media) == 1 and length(message.text, "utf16") <= CAPTION_LIMIT
    alone = len(media) == 1 and media[0].method != "sendMediaGroup"
    if message.text and fits and (alone or markup is None):
        media = [_add_caption(media[0], message)]
    elif message.blocks and not media:
        media.append(ApiCall("sendRichMessage", _rich(message)))
    elif message.text or not media:
        text = {**_text(message), "link_preview_options": {"is_disabled": not link_previews}}
        media.append(ApiCall("sendMessage", text))
    first, last = media[0], len(media) - 1
    calls = [first._replace(params={**_reply(message), **first.params}), *media[1:]]
    if markup is not None and calls[last].method != "sendMediaGroup":
        calls[last].params["reply_markup"] = markup
    return [call._replace(params={**where, **call.params}) for call in calls]


def edit_call(
    message_id: str, message: OutboundMessage, destination: Destination, *, link_previews: bool = False, stop: str = ""
) -> ApiCall:
    params = {"chat_id": place_params(destination)["chat_id"], "message_id": int(message_id)}
    markup = _markup(message, stop)
    preview = {"link_preview_options": {"is_disabled": not link_previews}}
    text = _rich(message) if message.blocks else {**_text(message), **preview}
    return ApiCall("editMessageText", {**params, **text, **({} if markup is None else {"reply_markup": markup})})


def remove_buttons_call(message_id: str, destination: Destination) -> ApiCall:
    params = {"chat_id": place_params(destination)["chat_id"], "message_id": int(message_id)}
    return ApiCall("editMessageReplyMarkup", {**params, "reply_markup": {"inline_keyboard": []}})


def draft_call(message: OutboundMessage, destination: Destination) -> ApiCall:
    """Return the call that displays a draft for half a minute. Its id is derived from the conversation."""
    draft_id = zlib.crc32(destination.conversation_id.encode("utf-8", "replace")) or 1
    method, text = ("sendRichMessageDraft", _rich(message)) if message.blocks else ("sendMessageDraft", _text(message))
    return ApiCall(method, {**place_params(destination), **text, "draft_id": draft_id, "can_stop": True})


def menu_call(menu: Menu) -> ApiCall | None:
    """Return the call that publishes a menu, or None for a language that the Bot API does not support.

    It supports two-letter languages, and commands of lower-case letters, digits and underscores.
    """
    if menu.locale is not None and (len(menu.locale) != 2 or not menu.locale.isalpha()):
        return None
    commands = [
        {"command": command.name, "description": (command.description or command.name)[:_MAX_DESCRIPTION_LENGTH]}
        for command in menu.commands
        if _is_command(command.name)
    ]
    params: dict[str, Any] = {"commands": commands[:_MAX_COMMANDS], "scope": {"type": _SCOPES[menu.scope]}}
    return ApiCall("setMyCommands", params | ({} if menu.locale is None else {"language_code": menu.locale.lower()}))


def media_calls(files: Sequence[OutboundFile], *, as_documents: bool = False) -> list[ApiCall]:
    """Return the calls that send files. Compatible files form an album."""
    media = [_medium(file, number, as_document=as_documents) for number, file in enumerate(files)]
    calls: list[ApiCall] = []
    for family, members in groupby(media, key=_family):
        group = list(members)
        size = _MAX_ALBUM_SIZE if family else 1
        calls += [_media_call(group[start : start + size]) for start in range(0, len(group), size)]
    return calls


def _media_call(media: Sequence[_Medium]) -> ApiCall:
    files = tuple(medium.file for medium in media)
    if len(media) > 1:
        album = [{"type": medium.kind, "media": f"attach://{medium.file.field}"} for medium in media]
        return ApiCall("sendMediaGroup", {"media": album}, files)
    kind = media[0].kind
    return ApiCall(f"send{kind.capitalize()}", {kind: f"attach://{files[0].field}"}, files)


def _family(medium: _Medium) -> str:
    """Return the album kind of a file. Empty if it is always sent alone."""
    families = {"photo": "visual", "video": "visual", "document": "document", "audio": "audio"}
    return families.get(medium.kind, "")


def _medium(file: OutboundFile, number: int, *, as_document: bool) -> _Medium:
    try:
        data = base64.b64decode(file.data)
    except (binascii.Error, ValueError):
        data = b""
    kind = "document" if as_document else _kind(file.media_type, len(data))
    name = file.name or f"{kind}{mimetypes.guess_extension(file.media_type) or ''}"
    return _Medium(kind, FormFile(f"file{number}", name, file.media_type, data))


def _kind(media_type: str, size: int) -> str:
    if media_type in ("image/jpeg", "image/png", "image/webp") and size <= _MAX_PHOTO_BYTES:
        return "photo"
    kinds = {
        "image/gif": "animation",
        "video/mp4": "video",
        "audio/ogg": "voice",
        "audio/mpeg": "audio",
        "audio/mp4": "audio",
    }
    return kinds.get(media_type, "document")


def _add_caption(call: ApiCall, message: OutboundMessage) -> ApiCall:
    caption = {"caption": _sound(message.text), "caption_entities": _entities(message)}
    if call.method != "sendMediaGroup":
        return call._replace(params={**call.params, **caption})
    first, *others = call.params["media"]
    return call._replace(params={"media": [{**first, **caption}, *others]})


def _rich(message: OutboundMessage) -> dict[str, Any]:
    # As with an empty list of entities: nothing is to be looked for in the text.
    return {"rich_message": {"blocks": _sound_blocks(message.blocks), "skip_entity_detection": True}}


def _sound_blocks(value: Any) -> Any:
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, Mapping):
        return {name: _sound_blocks(part) for name, part in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_sound_blocks(part) for part in cast("Sequence[Any]", value)]
    return value


def _text(message: OutboundMessage) -> dict[str, Any]:
    return {"text": _sound(message.text), "entities": _entities(message)}


def _entities(message: OutboundMessage) -> list[Any]:
    # The platform shows no more, and an empty list says that nothing is to be looked for in the text.
    return [_entity(entity) for entity in message.entities[:_MAX_ENTITIES]]


def _entity(entity: Entity) -> dict[str, Any]:
    made: dict[str, Any] = {"type": entity.type, "offset": entity.offset, "length": entity.length}
    more = {"url": entity.url, "language": entity.language}
    return made | {name: _sound(value) for name, value in more.items() if value}


def _sound(text: str) -> str:
    """Replace lone surrogates, which cannot be sent. Each replacement is also one code unit."""
    return text.encode("utf-8", "replace").decode()


def _reply(message: OutboundMessage) -> dict[str, Any]:
    if not _is_number(message.reply_to):
        return {}
    # What is answered may be gone; the answer is not.
    return {"reply_parameters": {"message_id": int(message.reply_to), "allow_sending_without_reply": True}}


def _markup(message: OutboundMessage, stop: str) -> dict[str, Any] | None:
    buttons = (Button(text=stop, data=STOP),) if stop and message.live else message.buttons
    rows = _rows(button for button in buttons if _is_shown(button))
    return {"inline_keyboard": rows} if rows else None


def _rows(buttons: Iterable[Button]) -> list[list[dict[str, str]]]:
    """Arrange buttons in rows that fit on a small screen."""
    rows: list[list[dict[str, str]]] = []
    remaining = 0
    for button in buttons:
        if not rows or len(button.text) > remaining or len(rows[-1]) >= _MAX_BUTTONS_PER_ROW:
            rows.append([])
            remaining = _MAX_ROW_LENGTH
        remaining -= len(button.text)
        action = {"url": _sound(button.url)} if button.url else {"callback_data": _sound(button.data)}
        rows[-1].append({"text": _sound(button.text), **action})
    return rows


def _is_shown(button: Button) -> bool:
    if button.url:
        return bool(button.text)
    return bool(button.text) and 0 < len(button.data.encode("utf-8", "replace")) <= _MAX_DATA_BYTES


def _is_command(name: str) -> bool:
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower()
    return plain and len(name) <= _MAX_COMMAND_LENGTH


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 20
