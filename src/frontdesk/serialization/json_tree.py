"""Converts Python values to JSON trees and back. Types select writers, tags select readers.

null, true, "text", 1, 1.5, [...], {"key": ...}    themselves
    {"$": "tuple", "items": [...]}                      a value without a JSON type
    {"$": "dict", "items": [[key, value], ...]}         a dict with a key that is not text, or is "$"
    {"$": "ChannelIdentity", "channel": ...}            an object, field by field

Depth is counted in values, not in brackets, so that everything written can be read.
"""

import importlib
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import is_dataclass
from datetime import date, datetime
from functools import cache
from math import inf, isfinite, nan
from types import NoneType
from typing import Any, cast

from frontdesk.errors import CodecError

Kind = type[Any]
Tree = dict[str, Any]
Writer = Callable[[Any, int], Any]
Reader = Callable[[Tree, int], Any]

TAG = "$"
MAX_DEPTH = 100
TOO_DEEP = f"the value is nested deeper than {MAX_DEPTH} levels, or contains itself"
PLAIN = frozenset[Kind]({str, bool, NoneType})

# The same function, with a type that pyright accepts for `Any`.
detect_kind: Callable[[object], Kind] = type

_SCALARS = frozenset[Kind]({str, bool, NoneType, int, float})
_NOT_FINITE = {"nan": nan, "inf": inf, "-inf": -inf}

_writers: dict[Kind, Writer] = {}
_readers: dict[str, Reader] = {}
_types: dict[str, Kind] = {"str": str, "bool": bool, "None": NoneType, "list": list}
_names: dict[Kind, str] = {kind: name for name, kind in _types.items()}
_lazy: dict[str, tuple[str, Writer]] = {}


class NoFormError(CodecError):
    """The value's type is not registered with the codec."""

    def __init__(self, kind: Kind) -> None:
        if hasattr(kind, "model_validate_json"):
            how = "register_model(TYPE, NAME)"
        elif is_dataclass(kind):
            how = "register_dataclass(TYPE, NAME)"
        else:
            how = "register(TYPE, NAME, to_json, from_json)"
        super().__init__(
            f"{kind.__module__}.{kind.__qualname__} has no JSON form; "
            f"give it one with frontdesk.serialization.codec.{how}"
        )


def write(value: Any, depth: int) -> Any:
    """Return the tree of a value at nesting level `depth`."""
    kind = detect_kind(value)
    if kind in PLAIN:
        return value
    if depth > MAX_DEPTH:
        raise CodecError(TOO_DEEP)
    return (_writers.get(kind) or _look_up(kind))(value, depth + 1)


def read(tree: Any, depth: int) -> Any:
    """Return the value of a tree at nesting level `depth`."""
    kind = detect_kind(tree)
    if kind in _SCALARS:
        return tree
    if depth > MAX_DEPTH:
        raise CodecError(f"the record is nested deeper than {MAX_DEPTH} levels")
    if kind is list:
        return [read(item, depth + 1) for item in tree]
    if kind is not dict:
        raise CodecError(f"{kind.__qualname__} is not a JSON type")
    if TAG not in tree:
        return {key: read(item, depth + 1) for key, item in tree.items()}
    reader = _readers.get(tree[TAG]) if type(tree[TAG]) is str else None
    if reader is None:
        raise CodecError(f"the record has a part of unknown type: {tree[TAG]!r}")
    return reader(tree, depth + 1)


def part(tree: Tree, name: str, kind: Kind) -> Any:
    """Return the only part of a tagged tree. Anything else is a malformed record."""
    value = tree.get(name)
    if len(tree) != 2 or type(value) is not kind:
        raise CodecError(f"a {tree[TAG]!r} in the record is malformed")
    return value


def check_items(items: Any, tag: str) -> None:
    """Reject anything but a list of objects of one type."""
    kind = get_kind(tag)
    if detect_kind(items) is not list:
        raise CodecError(f"{detect_kind(items).__qualname__} is not a list of {tag} objects")
    for item in items:
        if detect_kind(item) is not kind:
            raise CodecError(f"{detect_kind(item).__qualname__} is not a {tag}")


def add(kind: Kind, tag: str, writer: Writer, reader: Reader) -> None:
    name = get_name(kind)
    if name is not None:
        raise CodecError(f"{kind.__module__}.{kind.__qualname__} is already registered as {name!r}")
    if tag in _readers:
        raise CodecError(f"the name {tag!r} is used by another type")
    _writers[kind], _readers[tag] = writer, reader
    _types[tag], _names[kind] = kind, tag


def add_lazy(package: str, name: str, writer: Writer, reader: Reader) -> None:
    """Register a type by its public name, without importing it."""
    _lazy[name], _readers[name] = (package, writer), reader


def get_name(kind: Any) -> str | None:
    if not isinstance(kind, type):
        return None
    return _names.get(kind) or (kind.__name__ if _lazy_writer(kind) else None)


def refusal(kind: Any) -> NoFormError | None:
    """Return the error for a type whose values cannot be written, if the type alone determines that."""
    if not isinstance(kind, type) or kind in _writers or kind in PLAIN or kind is object or _lazy_writer(kind):
        return None
    return NoFormError(kind)


@cache
def get_kind(name: str) -> Kind:
    """Return the type of a name. Only registered names are imported."""
    if name in _lazy:
        return getattr(importlib.import_module(_lazy[name][0]), name)
    if name not in _types:
        raise CodecError(f"the record names an unknown type: {name!r}")
    return _types[name]


def _look_up(kind: Kind) -> Writer:
    writer = _lazy_writer(kind)
    if writer is None:
        raise NoFormError(kind)
    _writers[kind] = writer
    return writer


def _lazy_writer(kind: Kind) -> Writer | None:
    package, writer = _lazy.get(kind.__name__, ("", None))
    # The name alone is not enough: it must be the type that the package exports under it.
    if not package or kind.__module__.partition(".")[0] != package:
        return None
    return writer if getattr(sys.modules.get(package), kind.__name__, None) is kind else None


def _write_list(value: list[Any], depth: int) -> list[Any]:
    return [item if type(item) in PLAIN else write(item, depth) for item in value]


def _write_dict(value: dict[Any, Any], depth: int) -> Tree:
    if not value:
        return value
    tree: Tree = {}
    for key, item in value.items():
        if type(key) is not str or key == TAG:
            return {TAG: "dict", "items": [[write(key, depth), write(item, depth)] for key, item in value.items()]}
        tree[key] = item if type(item) in PLAIN else write(item, depth)
    return tree


def _read_dict(tree: Tree, depth: int) -> dict[Any, Any]:
    return {read(key, depth): read(item, depth) for key, item in part(tree, "items", list)}


def _write_int(value: int, depth: int) -> int | Tree:
    # Hexadecimal, because Python refuses decimals of more than 4300 digits.
    return value if -(2**63) <= value < 2**63 else {TAG: "int", "value": hex(value)}


def _write_float(value: float, depth: int) -> float | Tree:
    return value if isfinite(value) else {TAG: "float", "value": repr(value)}


def _add_text(kind: Kind, tag: str, to_text: Callable[[Any], str], from_text: Callable[[str], Any]) -> None:
    def write_text(value: Any, depth: int) -> Tree:
        return {TAG: tag, "value": to_text(value)}

    def read_text(tree: Tree, depth: int) -> Any:
        return from_text(part(tree, "value", str))

    add(kind, tag, write_text, read_text)


def _add_items(kind: Callable[[Any], Any], order: Callable[[list[Any]], list[Any]]) -> None:
    tag = cast(type, kind).__name__

    def write_items(value: Any, depth: int) -> Tree:
        return {TAG: tag, "items": order([write(item, depth) for item in value])}

    def read_items(tree: Tree, depth: int) -> Any:
        return kind(read(item, depth) for item in part(tree, "items", list))

    add(cast(type, kind), tag, write_items, read_items)


def _sort(trees: list[Any]) -> list[Any]:
    # The order of a set changes from process to process; that of its record should not.
    return sorted(trees, key=repr)


class Shared(dict[str, Any]):
    """An immutable mapping shared by many records. Its tree is built once. It is decoded as a plain dict."""

    __slots__ = ("tree",)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Pickle it as a plain dict, because a workflow's checkpoint contains messages with it."""
        return dict, (dict(self),)


def _write_shared(value: Shared, depth: int) -> Tree:
    try:
        return value.tree
    except AttributeError:
        value.tree = _write_dict(value, depth)
        return value.tree


class Prepared(Shared):
    """A mapping encoded before it is stored. The encoded form is kept until released."""

    __slots__ = ("size",)

    size: int

    def release(self) -> None:
        """Free the encoded form. It is rebuilt if needed."""
        if hasattr(self, "tree"):
            del self.tree


_writers[list] = _write_list
_writers[Shared] = _write_shared
_writers[Prepared] = _write_shared
add(dict, "dict", _write_dict, _read_dict)
add(int, "int", _write_int, lambda tree, depth: int(part(tree, "value", str), 16))
add(float, "float", _write_float, lambda tree, depth: _NOT_FINITE[part(tree, "value", str)])
_add_text(bytes, "bytes", lambda value: b64encode(value).decode(), lambda text: b64decode(text, validate=True))
# A time zone comes back as its offset from UTC.
_add_text(datetime, "datetime", datetime.isoformat, datetime.fromisoformat)
_add_text(date, "date", date.isoformat, date.fromisoformat)
_add_items(tuple, list)
_add_items(set, _sort)
_add_items(frozenset, _sort)
