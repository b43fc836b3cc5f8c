"""The calls of a context about files, each made for a caller."""

from typing import Protocol

from frontdesk.data.file import StoredFile
from frontdesk.data.identity import Caller


class ChannelFilesContext(Protocol):
    """The calls with which a channel keeps the bytes of pictures and documents."""

    async def put_file(self, caller: Caller, data: bytes, *, media_type: str, name: str = "") -> StoredFile:
        """Keep a file of the caller's, once however often it is put; on all replicas, for a day after its last use.

        What is in a message need not be put: large data of requests and answers is kept as a file by itself. One that
        is too large is a `FileTooLargeError`, one for which the caller has no room a `FilesFullError`.
        """
        ...

    async def get_file(self, caller: Caller, file_id: str) -> tuple[StoredFile, bytes]:
        """Return a file of the caller's; any other is a `NotFoundError`."""
        ...
