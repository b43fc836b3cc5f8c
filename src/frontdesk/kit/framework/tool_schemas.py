"""Finds the tools of agents, and tells whether the parameters of one have changed. Pure."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec


def tools_of(agent: Any) -> Iterator[Any]:
    """Yield the tools that an agent brings itself, as far as they are known before it runs."""
    options: Any = getattr(agent, "default_options", None) or {}
    yield from options.get("tools") or ()
    for server in getattr(agent, "mcp_tools", None) or ():
        yield from getattr(server, "functions", ())


def schema_digest(tools: Iterable[Any], name: str) -> str | None:
    """Return a hash of the parameters of the tools with a name; `None` if there is none, or if they can't be seen."""
    schemas = [tool.parameters() for tool in tools if getattr(tool, "name", None) == name and _shows(tool)]
    if not schemas:
        return None
    return hashlib.sha256(msgspec.json.encode(schemas, order="sorted", enc_hook=str)).hexdigest()


def _shows(tool: Any) -> bool:
    return callable(getattr(tool, "parameters", None))
