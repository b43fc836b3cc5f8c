"""The sources that an answer cites, listed under it. Pure."""

from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple, cast

from agent_framework import Content

from frontdesk.kit.chat.markdown.nodes import Block, Item, Link, List, Paragraph, Text
from frontdesk.kit.chat.text import one_line
from frontdesk.kit.chat.wording import Wording

_MOST = 20
_MOST_READ = 200
_LONGEST_TITLE = 120
_LONGEST_URL = 2_000


class Citation(NamedTuple):
    """A source: its title, and its URL, which may be empty."""

    title: str
    url: str


def citations_of(contents: Iterable[Content]) -> list[Citation]:
    """Return the sources of texts, each once, in the order in which they are cited; 20 at most.

    One whose URL is in the text is not among them.
    """
    texts = [content for content in contents if content.type == "text"]
    written = "".join(content.text or "" for content in texts)
    found: dict[str, Citation] = {}
    for annotation in islice(chain.from_iterable(content.annotations or () for content in texts), _MOST_READ):
        citation = _citation(cast("Mapping[str, Any]", annotation))
        if citation is None or (citation.url and citation.url in written):
            continue
        if len(found) < _MOST:
            found.setdefault(citation.url or citation.title, citation)
    return list(found.values())


def source_blocks(citations: Iterable[Citation], wording: Wording) -> tuple[Block, ...]:
    """Return the list of sources as it is shown under an answer; empty if there are none."""
    items = tuple(Item((Paragraph((_shown(citation),)),)) for citation in citations)
    return (Paragraph((Text(wording.say("citations.sources")),)), List(items, start=1)) if items else ()


def source_lines(citations: Iterable[Citation], wording: Wording) -> str:
    """Return the same as a text."""
    lines = [f"{number}. {' '.join(dict.fromkeys(filter(None, cited)))}" for number, cited in enumerate(citations, 1)]
    return "\n".join((wording.say("citations.sources"), *lines)) if lines else ""


def _citation(annotation: Mapping[str, Any]) -> Citation | None:
    if annotation.get("type") != "citation":
        return None
    url, title = _text(annotation.get("url")), one_line(_text(annotation.get("title")))
    url = url if len(url) <= _LONGEST_URL and not any(letter.isspace() for letter in url) else ""
    shown = f"{title[: _LONGEST_TITLE - 1]}…" if len(title) > _LONGEST_TITLE else title
    return Citation(shown or url, url) if shown or url else None


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _shown(citation: Citation) -> Link | Text:
    return Link((Text(citation.title),), citation.url) if citation.url else Text(citation.title)
