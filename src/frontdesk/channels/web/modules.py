"""Joins the modules of the page into one, so that a browser asks once for all of them. Pure.

Each module becomes a function that is called once and returns what the module exports. So it takes the forms of
`import` and `export` that hand over values which never change, and refuses all others: nothing is left out unseen.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import NamedTuple

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_IMPORT = re.compile(r'import\s*\{([^{}]*)\}\s*from\s*"(\.[^"]+)";')
_DECLARED = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_LISTED = re.compile(r"(?<=[;}])export\s*\{([^{}]*)\};?\s*\Z")
_LATER = re.compile(r'\bimport\("\./([^"]+)"\)')
_LEFT = re.compile(r"^(?:import|export)\b.*|\bimport\s*[{*\"'(].*", re.MULTILINE)
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*\n?", re.MULTILINE)
_NAMED = re.compile(r"([\w$]+)(?:\s+as\s+([\w$]+))?")


class _Module(NamedTuple):
    imports: dict[str, list[tuple[str, str]]]
    """The names that it imports of each other module: theirs, and its own."""
    exports: list[tuple[str, str]]
    """The names that it exports: its own, and that for others."""
    body: str


class Joined(NamedTuple):
    """The text of a module that was joined, and the paths of those that it imports later."""

    text: str
    later: frozenset[str]


def join_modules(files: Mapping[str, str], first: str) -> Joined:
    """Return one module that does what `first` does with all that it imports; `files` are the texts by their paths.

    An `import("./...")` loads its module when it is called, and names it from the folder of the joined one.
    """
    read: dict[str, _Module] = {}
    _load(first, files, read, ())
    numbers = {name: number for number, name in enumerate(read)}
    text = "".join(_as_function(name, module, numbers) for name, module in read.items())
    later = frozenset(_LATER.findall(text))
    if missing := later - files.keys():
        raise ValueError(f"{', '.join(sorted(missing))} is imported later, and is not there")
    return Joined(text, later)


def _load(name: str, files: Mapping[str, str], read: dict[str, _Module], users: tuple[str, ...]) -> None:
    """Read the modules that one imports, and then the module itself."""
    if name in users:
        raise ValueError(f"{name} imports itself by way of {users[-1]}")
    if name in read:
        return
    if name not in files:
        raise ValueError(f"{name} is imported by {users[-1]}, and is not there" if users else f"{name} is not there")
    module = _parse(name, files[name])
    for other in module.imports:
        _load(other, files, read, (*users, name))
    for other, names in module.imports.items():
        if missing := {theirs for theirs, _ in names} - {known for _, known in read[other].exports}:
            raise ValueError(f"{name} imports {', '.join(sorted(missing))}, which {other} does not export")
    read[name] = module


def _parse(name: str, text: str) -> _Module:
    imports: dict[str, list[tuple[str, str]]] = {}
    text = _SOURCE_MAP.sub("", text)
    start = _first_statement(text, 0)
    while (found := _IMPORT.match(text, start)) is not None:
        imports[posixpath.normpath(posixpath.join(posixpath.dirname(name), found[2]))] = _pairs(name, found[1])
        # Comments stay where they are: some hold a licence.
        text = text[:start] + text[found.end() :]
        start = _first_statement(text, start)
    exports = [(found[1], found[1]) for found in _DECLARED.finditer(text)]
    if (listed := _LISTED.search(text)) is not None:
        exports += _pairs(name, listed[1])
    body = _LISTED.sub("", _DECLARED.sub("", text))
    if (left := _LEFT.search(_LATER.sub("", body))) is not None:
        raise ValueError(f"{name}: {left[0][:80]!r} is a form of import or export that can't be joined")
    return _Module(imports, exports, body)


def _first_statement(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return start if found is None else found.end()


def _pairs(name: str, names: str) -> list[tuple[str, str]]:
    """Return the names of a list, each with the one that it is given by `as`."""
    pairs: list[tuple[str, str]] = []
    for given in filter(None, (given.strip() for given in names.split(","))):
        found = _NAMED.fullmatch(given)
        if found is None:
            raise ValueError(f"{name}: {given!r} is no name")
        pairs.append((found[1], found[2] or found[1]))
    return pairs


def _as_function(name: str, module: _Module, numbers: Mapping[str, int]) -> str:
    head = f"// {name}\nconst module{numbers[name]} = (() => {{\n"
    for other, names in module.imports.items():
        head += f"const {{ {', '.join(f'{theirs}: {own}' for theirs, own in names)} }} = module{numbers[other]};\n"
    returned = ", ".join(f"{known}: {own}" for own, known in module.exports)
    return f"{head}{module.body.strip()}\nreturn {{ {returned} }};\n}})();\n"
