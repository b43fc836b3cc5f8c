"""Encodes forms with files for a platform. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class FormFile(NamedTuple):
    """A file of a form: the field, the name that people see, the media type and the bytes."""

    field: str
    name: str
    media_type: str
    data: bytes


def encode_form(fields: Mapping[str, str], files: Sequence[FormFile]) -> tuple[str, bytes]:
    """Return the content type and the body of a form.

    The boundary is a digest of all that the form says, so that no part can contain it.
    """
    parts = [(_head(f'name="{_quoted(name)}"'), value.encode("utf-8", "replace")) for name, value in fields.items()]
    for file in files:
        about = f'name="{_quoted(file.field)}"; filename="{_quoted(file.name)}"'
        parts.append((_head(about, file.media_type), file.data))
    whole = hashlib.sha256()
    for head, data in parts:
        whole.update(head)
        whole.update(data)
    boundary = f"frontdesk-{whole.hexdigest()}"
    mark = f"--{boundary}".encode()
    body = b"".join(mark + b"\r\n" + head + data + b"\r\n" for head, data in parts)
    return f"multipart/form-data; boundary={boundary}", body + mark + b"--\r\n"


def _head(about: str, media_type: str = "") -> bytes:
    lines = [f"Content-Disposition: form-data; {about}"]
    if media_type:
        lines.append(f"Content-Type: {_token(media_type)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def _quoted(text: str) -> str:
    """Escape a text for a header, as browsers do; it can't end its line."""
    plain = "".join(character if character.isprintable() else "_" for character in text)
    return plain.replace('"', "%22")


def _token(text: str) -> str:
    return "".join(character for character in text if character.isascii() and character.isprintable())
