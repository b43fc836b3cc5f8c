"""Write the tables of parameters in docs/reference. Names, order and defaults come from the code.

    python -m tools.reference_tables

A page marks a table with `<!-- parameters: CLASS -->`. The texts of its last column are kept, by parameter. A parameter
without a text raises `TableError`. Words after the class change what is listed: `shared` lists only the parameters that
HTTP channels share, `explicit` only those that the constructor names beside its settings, `own` leaves out the shared
ones, or the fields of the base class of a dataclass, and `- NAME ...` leaves out some more.
`<!-- shared: CLASS -->` marks a line that names the shared parameters of a channel.
"""

import dataclasses
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from frontdesk.channels.invocations import InvocationsChannel

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs/reference").glob("*.md"))
SHARED = (
    "auth",
    "allowlist",
    "require_link",
    "confidentiality_tier",
    "run_hook",
    "response_hook",
    "stream_transform_hook",
    "max_body_bytes",
    "max_body_values",
    "body_timeout",
    "keep_alive",
    "send_seconds",
    "allowed_origins",
    "limits",
)
"""The parameters of HTTP channels that docs/reference/http-callers.md describes."""
_TABLE = re.compile(r"<!-- parameters: ([\w.]+)( own| shared| explicit)?(?: - ([\w ]+))? -->\n((?:\|.*\n)*)")
_LINE = re.compile(r"<!-- shared: ([\w.]+) -->\n(?:[^\n]+\n)*")


class TableError(Exception):
    """A parameter has no text."""


def list_documented(page: str) -> list[str]:
    """Return the classes whose parameters a page lists."""
    return [
        found.group(0).partition("\n")[0][len("<!-- parameters: ") : -len(" -->")] for found in _TABLE.finditer(page)
    ]


def render(page: str) -> str:
    """Return a page with its tables written anew."""
    return _LINE.sub(_build_shared_line, _TABLE.sub(_table, page))


def defaults(kind: type) -> dict[str, str]:
    """Return the parameters of a class with their defaults, as the pages show them."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    factories = {one.name: one.default_factory for one in fields}
    parameters = inspect.signature(kind).parameters.values()
    return {one.name: _format_default(one, factories) for one in parameters if one.kind is not one.VAR_KEYWORD}


def _format_default(parameter: inspect.Parameter, factories: Mapping[str, Any]) -> str:
    value = parameter.default
    if value is parameter.empty:
        return "required"
    factory: Callable[[], Any] | Any = factories.get(parameter.name, dataclasses.MISSING)
    if factory is not dataclasses.MISSING:
        value = factory()
    if isinstance(value, frozenset):
        return f"[{len(value)} fields](#what-reaches-the-target)"
    has_fields = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return f"`{type(value).__name__}()`" if has_fields and value == type(value)() else f"`{value!r}`"


def _table(found: re.Match[str]) -> str:
    name, words, left_out, old = found.groups()
    rows = [re.split(r"(?<!\\)\|", line) for line in old.splitlines()[2:]]
    texts = {row[1].strip(" `"): row[-2].strip() for row in rows}
    kind: type = pkgutil.resolve_name(name)
    given = defaults(kind)
    listed = _list_parameters(kind, (words or "").strip(), given, set((left_out or "").split()))
    missing = [one for one in listed if not texts.get(one)]
    if missing:
        raise TableError(f"docs/reference: describe {', '.join(missing)} of {name} in its table")
    head = [found.group(0).partition("\n")[0], "| parameter | default | effect |", "|---|---|---|"]
    return "\n".join([*head, *(f"| `{one}` | {given[one]} | {texts[one]} |" for one in listed), ""])


def _list_parameters(kind: type, words: str, given: Mapping[str, str], left_out: set[str]) -> list[str]:
    if words == "shared":
        return [one for one in SHARED if one in given]
    if words == "explicit":
        named = inspect.getfullargspec(inspect.unwrap(vars(kind)["__init__"]))
        return [one for one in given if one in named.args + named.kwonlyargs]
    if words == "own" and dataclasses.is_dataclass(kind):
        bases = [base for base in inspect.getmro(kind)[1:] if dataclasses.is_dataclass(base)]
        left_out = left_out.union(*({one.name for one in dataclasses.fields(base)} for base in bases))
    elif words == "own":
        left_out = left_out | set(SHARED)
    return [one for one in given if one not in left_out]


def _build_shared_line(found: re.Match[str]) -> str:
    given, usual = defaults(pkgutil.resolve_name(found.group(1))), defaults(InvocationsChannel)
    names = [one for one in SHARED if one in given]
    listed = ", ".join(f"`{one}`" for one in names)
    others = [f"`{one}={given[one].strip('`')}`" for one in names if given[one] != usual[one]]
    text = f"It also takes these [shared parameters](http-callers.md#shared-parameters): {listed}."
    text += f" Other defaults: {', '.join(others)}." if others else ""
    return f"<!-- shared: {found.group(1)} -->\n{text}\n"


def main() -> None:
    for path in PAGES:
        text = path.read_text("utf-8")
        path.write_text(render(text), "utf-8")


if __name__ == "__main__":
    main()
