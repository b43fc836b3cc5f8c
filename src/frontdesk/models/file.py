"""Stored files: the content of images and documents, once per owner and separate from records."""

import hashlib
from typing import Self

from frontdesk.errors import ChannelConfigurationError
from frontdesk.models.base import FrozenStruct

SCHEME = "frontdesk-file:"
"""The beginning of a reference to a file in a stored record."""


class StoredFile(FrozenStruct, frozen=True, kw_only=True):
    """The metadata of a stored file, without its bytes."""

    file_id: str
    media_type: str
    name: str = ""
    size: int


class FileLimits(FrozenStruct, frozen=True, kw_only=True):
    """The limits of files, in bytes."""

    max_file_bytes: int = 20 * 1024 * 1024
    max_owner_bytes: int = 1024 * 1024 * 1024
    """The bytes of all files of one owner together."""
    max_visitor_bytes: int = 64 * 1024 * 1024
    """The same for a visitor without an account, who gets a new identity by deleting a cookie."""
    max_visitors_bytes: int = 1024 * 1024 * 1024
    """The bytes of the files of all these visitors together."""

    def check(self) -> Self:
        """Return the limits if they are valid."""
        findings: list[str] = []
        for name in ("max_file_bytes", "max_owner_bytes", "max_visitor_bytes", "max_visitors_bytes"):
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                findings.append(f"file_limits: {name} must be an int, got {type(value).__name__}")
            elif value < 1:
                findings.append(f"file_limits: {name} must be at least 1")
        if findings:
            raise ChannelConfigurationError(findings)
        return self


def check_limits(given: object) -> FileLimits:
    if given is None:
        return FileLimits()
    if not isinstance(given, FileLimits):
        raise ChannelConfigurationError([f"file_limits: {given!r} is not FileLimits(...)"])
    return given.check()


def compute_file_id(owner: str, data: bytes) -> str:
    """Return the id of a file. The same content of the same owner has the same id."""
    named = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).digest()
    return hashlib.sha256(named + data).hexdigest()
