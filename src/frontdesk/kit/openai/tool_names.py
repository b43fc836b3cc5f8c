"""Names of a client's tools: in the API some have a namespace or take a text, and a target knows functions. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from frontdesk.errors import InvalidRequestError
from frontdesk.kit.names import digest

MAX_TOOLS = 128
"""The most tools of a request, as the API has it; what the framework does with them grows with their square."""

_LONGEST = 64
_DIGITS = 8
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IGNORED = (
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "image_generation",
    "tool_search",
)
"""The tools of OpenAI's own that clients send unasked, and that an answer can do without."""


class ToolRef(NamedTuple):
    """A tool as the client knows it."""

    kind: str
    name: str
    namespace: str | None = None


class GivenTool(NamedTuple):
    """One of a request's tools, and its place."""

    body: dict[str, Any]
    where: str
    namespace: str | None = None
    about: str = ""
    """The description of its namespace."""


def function_name(name: str, namespace: str | None) -> str:
    """Return the name by which a target calls a tool."""
    if not namespace:
        return name
    joined = f"{namespace}__{name}"
    if len(joined) <= _LONGEST:
        return joined
    return f"{joined[: _LONGEST - _DIGITS - 1]}-{digest(joined)[:_DIGITS]}"


def served(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what is not served and need not be."""
    return [tool for tool in tools if tool.get("type") not in _IGNORED]


def merged(*given: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put lists of tools together that came one after another; of a name the last counts."""
    latest: dict[tuple[str, str], dict[str, Any]] = {}
    for tools in given:
        for tool in tools:
            latest[str(tool.get("type")), str(tool.get("name"))] = tool
    return list(latest.values())


def flat(tools: Sequence[Any], where: str) -> Iterator[GivenTool]:
    """Yield the tools of a request, those in namespaces too."""
    for place, tool in enumerate(tools):
        at = f"{where}[{place}]"
        if not isinstance(tool, dict):
            raise InvalidRequestError("A tool must be an object.", param=at)
        body = cast("dict[str, Any]", tool)
        if body.get("type") == "namespace":
            yield from _inside(body, at)
        else:
            yield GivenTool(body, at)


def _inside(namespace: dict[str, Any], where: str) -> Iterator[GivenTool]:
    name, about, tools = namespace.get("name"), namespace.get("description"), namespace.get("tools")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequestError("This is not the name of a namespace.", param=f"{where}.name")
    if not isinstance(tools, list) or not tools:
        raise InvalidRequestError("A namespace has a list of `tools`.", param=f"{where}.tools")
    for place, tool in enumerate(cast("list[Any]", tools)):
        at = f"{where}.tools[{place}]"
        if not isinstance(tool, dict):
            raise InvalidRequestError("A tool must be an object.", param=at)
        yield GivenTool(cast("dict[str, Any]", tool), at, name, about if isinstance(about, str) else "")


def tool_refs(tools: Sequence[Mapping[str, Any]]) -> dict[str, ToolRef]:
    """Return tools that were taken, by the names by which a target calls them."""
    refs: dict[str, ToolRef] = {}
    for given in flat(tools, "tools"):
        name = str(given.body.get("name"))
        refs[function_name(name, given.namespace)] = ToolRef(str(given.body.get("type")), name, given.namespace)
    return refs
