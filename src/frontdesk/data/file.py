"""Files: the bytes of pictures and documents, kept once for each owner and apart from the records that use them."""

import hashlib
from typing import Self

from frontdesk.data.noun import Value
from frontdesk.errors import ChannelConfigurationError

SCHEME = "frontdesk-file:"
"""The beginning of a reference to a file in a stored record."""


class StoredFile(Value, frozen=True, kw_only=True):
    """A file that is kept, without its bytes."""

    file_id: str
    media_type: str
    name: str = ""
    size: int


class FileLimits(Value, frozen=True, kw_only=True):
    """The limits of files, in bytes."""

    max_file_bytes: int = 20 * 1024 * 1024
    max_owner_bytes: int = 1024 * 1024 * 1024
    """The bytes of all files of one owner together."""

    def checked(self) -> Self:
        """Return the limits, if they make sense."""
        named = {"max_file_bytes": self.max_file_bytes, "max_owner_bytes": self.max_owner_bytes}
        findings = [f"file_limits: {name} must be at least 1" for name, value in named.items() if value < 1]
        if findings:
            raise ChannelConfigurationError(findings)
        return self


def file_id_of(owner: str, data: bytes) -> str:
    """Return the id of a file: the same content of the same owner is the same file."""
    named = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).digest()
    return hashlib.sha256(named + data).hexdigest()
