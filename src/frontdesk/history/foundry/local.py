"""Histories in files, for development: a directory for each person, and in it one for each chat."""

import base64
import re
import warnings
from pathlib import Path
from typing import Any

from agent_framework import FileHistoryProvider

from frontdesk.data.isolation import IsolationKeys

_NONE = "~none"
_ENCODED = "~iso-"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
# Names that Windows takes for devices, with any ending.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def directory_of(root: Path, keys: IsolationKeys) -> Path:
    """Return the directory of a person's chat, which is inside the root whatever the keys are."""
    place = root / _segment(keys.user_key) / _segment(keys.chat_key)
    if not place.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"local_storage_root: {place} leads out of it")
    return place


def _segment(key: str | None) -> str:
    """Return the name of a directory; no two keys have the same, and no key has that of those who have none."""
    if key is None:
        return _NONE
    if _SAFE.fullmatch(key) and not key.endswith(".") and not _DEVICE.fullmatch(key):
        return key
    return _ENCODED + base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


class LocalFiles:
    """The histories below a directory, each in a file of its session."""

    def __init__(self, root: str | Path, source_id: str) -> None:
        self._root = Path(root)
        self._source_id = source_id

    def of(self, keys: IsolationKeys) -> Any:
        """Return the provider of a person's chat."""
        with warnings.catch_warnings():
            # The framework calls it experimental, once in a process; whoever develops with it need not hear that.
            warnings.simplefilter("ignore")
            return FileHistoryProvider(directory_of(self._root, keys), source_id=self._source_id)
