"""Files, albums, locations and contacts."""

from frontdesk_testing.telegram.errors import ApiError, bad_request
from frontdesk_testing.telegram.files import (
    MAX_PHOTO_BYTES,
    MAX_UPLOAD_BYTES,
    MEDIA_KINDS,
    StoredFile,
    Upload,
    render_media,
)
from frontdesk_testing.telegram.markup.entities import format_text
from frontdesk_testing.telegram.markup.text import units
from frontdesk_testing.telegram.methods.call import (
    CAPTION_LIMIT,
    Call,
    Method,
    caption_content,
    find_reply,
    find_text,
    find_thread,
    send,
)
from frontdesk_testing.telegram.records import Json

_ATTACHED = "attach://"
_ALONE = ("audio", "document")
"""The kinds of which an album has no others."""


def _file(call: Call, kind: str, reference: str) -> StoredFile:
    """Return the file that a parameter names: one of the form, one that was sent before, or a URL."""
    if reference.startswith(_ATTACHED):
        upload = call.uploads.get(reference.removeprefix(_ATTACHED))
        if upload is None:
            raise bad_request(f"can't parse InputMedia: media not found in the multipart form: {reference}")
        return call.world.files.add(kind, _within_limits(kind, upload))
    if reference.startswith(("http://", "https://")):
        return call.world.files.add(kind, Upload(b"", reference.rpartition("/")[2]), url=reference)
    file = call.world.files.get_file(reference)
    if file.kind != kind:
        raise bad_request(f"can't use file of type {file.kind} as {kind}")
    return file


def _within_limits(kind: str, upload: Upload) -> Upload:
    if not upload.content:
        raise bad_request("file must be non-empty")
    if upload.size > MAX_UPLOAD_BYTES:
        raise ApiError(413, "Request Entity Too Large")
    if kind == "photo" and upload.size > MAX_PHOTO_BYTES:
        raise bad_request("too big for a photo")
    return upload


def _sender(kind: str) -> Method:
    def send_file(call: Call) -> Json:
        def content() -> Json:
            caption = find_text(call, "caption", "caption_entities", empty=True)
            return {**render_media(_file(call, kind, call.given[kind]), call.given), **caption_content(caption)}

        return send(call, content).as_json()

    return send_file


def send_media_group(call: Call) -> list[Json]:
    """Send an album."""
    chat = call.chat(writing=True)
    thread = find_thread(call, chat)
    reply = find_reply(call, chat, thread)
    media: list[Json] = call.given["media"]
    kinds = {item["type"] for item in media}
    if len(kinds) > 1 and kinds & set(_ALONE):
        raise bad_request("can't mix documents or audio files with other media in one album")
    contents = [_album_content(call, item) for item in media]
    call.world.flood.count(call.bot.user.id, chat, call.world.clock.now(), len(contents))
    group = str(call.world.new_id("album"))
    fields = {**thread, **reply, "media_group_id": group, "protected": bool(call.get("protect_content"))}
    return [call.world.post(chat, call.bot.user, content, **fields).as_json() for content in contents]


def _album_content(call: Call, item: Json) -> Json:
    if item["type"] not in ("photo", "video", *_ALONE):
        raise bad_request(f"media of type {item['type']} in an album are not covered by the fake")
    caption = format_text(item.get("caption", ""), item.get("parse_mode"), item.get("caption_entities"))
    if units(caption.text) > CAPTION_LIMIT:
        raise bad_request("message caption is too long")
    return {**render_media(_file(call, item["type"], item["media"]), item), **caption_content(caption)}


def send_location(call: Call) -> Json:
    """Send a location."""
    if abs(call.given["latitude"]) > 90 or abs(call.given["longitude"]) > 180:
        raise bad_request("wrong location specified")
    names = ("latitude", "longitude", "horizontal_accuracy", "live_period", "heading", "proximity_alert_radius")
    return _send_fields(call, "location", names)


def send_contact(call: Call) -> Json:
    """Send a phone number with a name."""
    return _send_fields(call, "contact", ("phone_number", "first_name", "last_name", "vcard"))


def _send_fields(call: Call, kind: str, names: tuple[str, ...]) -> Json:
    fields = {name: call.given[name] for name in names if name in call.given}
    return send(call, lambda: {kind: fields}).as_json()


def get_file(call: Call) -> Json:
    """Return the path from which a file can be fetched."""
    return call.world.files.link(call.given["file_id"], call.world.clock.now())


_NAMES = {kind: "send" + "".join(part.title() for part in kind.split("_")) for kind in MEDIA_KINDS}
METHODS: dict[str, Method] = {
    **{_NAMES[kind]: _sender(kind) for kind in MEDIA_KINDS},
    "sendMediaGroup": send_media_group,
    "sendLocation": send_location,
    "sendContact": send_contact,
    "getFile": get_file,
}
