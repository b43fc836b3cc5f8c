"""Sent files, and their objects in the Bot API."""

import hashlib
from dataclasses import dataclass

from frontdesk_testing.telegram.errors import bad_request
from frontdesk_testing.telegram.records import Json

MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024
MAX_PHOTO_BYTES = 10 * 1024 * 1024
MAX_UPLOAD_BYTES = 50 * 1024 * 1024
LINK_SECONDS = 3600.0
"""The time for which a link of `getFile` can be used."""
MEDIA_KINDS = ("photo", "document", "audio", "voice", "video", "animation", "video_note", "sticker")
"""The kinds of media that have a file."""
_FOLDERS = {"photo": "photos", "document": "documents", "audio": "music", "voice": "voice", "video": "videos"}
_TYPES = {
    **{"photo": ("image/jpeg", "jpg"), "audio": ("audio/mpeg", "mp3"), "voice": ("audio/ogg", "oga")},
    **{"video": ("video/mp4", "mp4"), "animation": ("video/mp4", "mp4"), "video_note": ("video/mp4", "mp4")},
    **{"sticker": ("image/webp", "webp"), "document": ("application/octet-stream", "bin")},
}


@dataclass(slots=True)
class Upload:
    """A file of a form or of a person."""

    content: bytes
    filename: str = ""
    content_type: str = ""
    size: int = -1
    """The size that is shown, if it is not that of the content."""

    def __post_init__(self) -> None:
        if self.size < 0:
            self.size = len(self.content)


@dataclass(slots=True)
class StoredFile:
    """A file on the platform."""

    file_id: str
    unique_id: str
    kind: str
    upload: Upload
    url: str = ""
    """The address that a bot gave instead of the content, which is not fetched."""

    @property
    def path(self) -> str:
        """Return the path that `getFile` names."""
        number = int(self.unique_id.removeprefix("u"), 16) % 100_000
        suffix = self.upload.filename.rpartition(".")[2] if "." in self.upload.filename else _TYPES[self.kind][1]
        return f"{_FOLDERS.get(self.kind, self.kind + 's')}/file_{number}.{suffix}"


class Files:
    """All files, by their ids."""

    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}
        self._links: dict[str, tuple[StoredFile, float]] = {}

    def add(self, kind: str, upload: Upload, *, url: str = "") -> StoredFile:
        """Store a file. The same content has the same unique id, and a new id each time."""
        digest = hashlib.blake2b(kind.encode() + upload.content + url.encode(), digest_size=6).hexdigest()
        file = StoredFile(f"{kind}-{digest}-{len(self._files) + 1}", f"u{digest}", kind, upload, url)
        self._files[file.file_id] = file
        return file

    def get_file(self, file_id: str) -> StoredFile:
        """Return a file by its id."""
        if file_id not in self._files:
            raise bad_request("wrong remote file identifier specified: Wrong string length")
        return self._files[file_id]

    def link(self, file_id: str, now: float) -> Json:
        """Return the object `File`, with a path that can be used for an hour."""
        file = self._files.get(file_id)
        if file is None:
            raise bad_request("invalid file_id")
        if file.upload.size > MAX_DOWNLOAD_BYTES:
            raise bad_request("file is too big")
        self._links[file.path] = (file, now + LINK_SECONDS)
        return {**_base(file), "file_path": file.path}

    def find_linked(self, path: str, now: float) -> StoredFile | None:
        """Return the file of a valid path."""
        file, until = self._links.get(path, (None, 0.0))
        return file if now < until else None


def render_media(file: StoredFile, details: Json | None = None) -> Json:
    """Return the field of a message for a file, such as `photo` or `document`."""
    base, given = _base(file), details or {}
    if file.kind == "photo":
        # Several sizes of one picture, the largest last.
        return {"photo": [{**base, "width": width, "height": width * 2 // 3} for width in (90, 1200)]}
    named = {"mime_type": file.upload.content_type or _TYPES[file.kind][0]}
    if file.kind in ("document", "audio", "video", "animation") and file.upload.filename:
        named["file_name"] = file.upload.filename
    duration = {"duration": given.get("duration", 1)}
    if file.kind == "document":
        return {"document": {**base, **named}}
    if file.kind == "sticker":
        look = {"type": "regular", "width": 512, "height": 512, "is_animated": False, "is_video": False}
        return {"sticker": {**base, **look, "emoji": given.get("emoji", "🙂")}}
    if file.kind == "video_note":
        return {"video_note": {**base, **duration, "length": given.get("length", 240)}}
    if file.kind == "audio":
        titles = {name: given[name] for name in ("performer", "title") if name in given}
        return {"audio": {**base, **named, **duration, **titles}}
    if file.kind == "voice":
        return {"voice": {**base, **named, **duration}}
    size = {"width": given.get("width", 640), "height": given.get("height", 360)}
    body = {**base, **named, **duration, **size}
    # Old clients know a GIF as a document only.
    return {"animation": body, "document": {**base, **named}} if file.kind == "animation" else {"video": body}


def _base(file: StoredFile) -> Json:
    return {"file_id": file.file_id, "file_unique_id": file.unique_id, "file_size": file.upload.size}
