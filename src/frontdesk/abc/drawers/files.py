"""Files of owners."""

from typing import Protocol

from frontdesk.data.file import StoredFile


class Files(Protocol):
    """The bytes of pictures and documents. A store keeps large data of other drawers' records here too."""

    async def put(self, owner: str, data: bytes, *, media_type: str, name: str = "") -> StoredFile:
        """Keep a file; the same content of an owner is kept once, with the first media type and name.

        One that is too large is a `FileTooLargeError`, one for which its owner has no room a `FilesFullError`. A file
        that no record uses is dropped after `Expiry.files`.
        """
        ...

    async def get(self, owner: str, file_id: str) -> tuple[StoredFile, bytes] | None: ...

    async def size_of(self, owner: str) -> int:
        """Return the bytes of all files of an owner."""
        ...
