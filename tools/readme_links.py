"""Makes the links of the README absolute in the metadata of the package: an index has none of the other files."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[[^\]]*\])\(([^)\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


class ReadmeHook(MetadataHookInterface):
    """Sets the field `readme`; the address of the repository is the one in [project.urls]."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README with absolute links."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        source = metadata["urls"]["Source"]
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(text, source)}


def get_metadata_hook() -> type[MetadataHookInterface]:
    """Return the hook, for hatchling."""
    return ReadmeHook


def with_absolute_links(text: str, source: str) -> str:
    """Return a text whose links lead into the repository at `source`; blocks of code stay as they are."""
    parts = _FENCED.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(_Absolute(source), part) for part in parts)


class _Absolute:
    def __init__(self, source: str) -> None:
        self._source = source.rstrip("/")

    def __call__(self, link: re.Match[str]) -> str:
        mark, name, target = link.groups()
        if urlsplit(target).scheme:
            return link[0]
        # A picture is shown from its raw file; an anchor leads to the page itself.
        view = "raw" if mark else "blob"
        page = f"README.md{target}" if target.startswith("#") else target
        return f"{mark}{name}({self._source}/{view}/main/{page})"
