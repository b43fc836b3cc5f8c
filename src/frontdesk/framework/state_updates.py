"""Changes of the state shared with a client, as updates of a stream, and JSON Patch (RFC 6902). Pure.

Such an update has no contents. Channels and processes that do not know it therefore show nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import AgentResponseUpdate

_KEY = "shared_state"
_SNAPSHOT, _DELTA = "snapshot", "delta"
Operation = Mapping[str, Any]


def state_update(before: bytes | None, text: bytes) -> AgentResponseUpdate:
    """Return the update that changes the state, given as JSON: a delta if that is shorter, or a snapshot."""
    changed = {_SNAPSHOT: text.decode()}
    if before is not None:
        delta = msgspec.json.encode(diff(msgspec.json.decode(before), msgspec.json.decode(text)))
        if len(delta) < len(text):
            changed = {_DELTA: delta.decode()}
    return AgentResponseUpdate(contents=[], additional_properties={_KEY: changed})


def state_in(update: AgentResponseUpdate) -> tuple[Any, Sequence[Operation]] | None:
    """Return the snapshot or the delta of an update that changes the shared state. The other one is unset."""
    properties: Mapping[str, Any] | None = update.additional_properties
    changed: Any = properties.get(_KEY) if properties else None
    if not isinstance(changed, dict):
        return None
    texts = cast("dict[str, str]", changed)
    if _SNAPSHOT in texts:
        return msgspec.json.decode(texts[_SNAPSHOT]), ()
    return msgspec.UNSET, msgspec.json.decode(texts.get(_DELTA, "[]"))


def diff(old: Any, new: Any, path: str = "") -> list[dict[str, Any]]:
    """Return the operations of JSON Patch (RFC 6902) that turn one JSON value into another."""
    if isinstance(old, dict) and isinstance(new, dict):
        return _diff_objects(cast("dict[str, Any]", old), cast("dict[str, Any]", new), path)
    if isinstance(old, list) and isinstance(new, list):
        return _diff_lists(cast("list[Any]", old), cast("list[Any]", new), path)
    return [] if _is_same(old, new) else [{"op": "replace", "path": path, "value": new}]


def _diff_objects(old: dict[str, Any], new: dict[str, Any], path: str) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = [
        {"op": "remove", "path": f"{path}/{_escape(name)}"} for name in old if name not in new
    ]
    for name, value in new.items():
        inner = f"{path}/{_escape(name)}"
        operations += diff(old[name], value, inner) if name in old else [{"op": "add", "path": inner, "value": value}]
    return operations


def _diff_lists(old: list[Any], new: list[Any], path: str) -> list[dict[str, Any]]:
    shared = min(len(old), len(new))
    start = next((index for index in range(shared) if not _is_same(old[index], new[index])), shared)
    end = next((back for back in range(shared - start) if not _is_same(old[-1 - back], new[-1 - back])), shared - start)
    common = min(len(old), len(new)) - start - end
    operations: list[dict[str, Any]] = []
    for index in range(start, start + common):
        operations += diff(old[index], new[index], f"{path}/{index}")
    for _ in range(len(old) - start - end - common):
        operations.append({"op": "remove", "path": f"{path}/{start + common}"})
    for index in range(start + common, len(new) - end):
        operations.append({"op": "add", "path": f"{path}/{index}", "value": new[index]})
    return operations


def _is_same(old: Any, new: Any) -> bool:
    """Return True for equal JSON. Python takes `True`, `1` and `1.0` for equal."""
    if type(old) is not type(new):
        return False
    if isinstance(old, (dict, list)):
        return old == new and msgspec.json.encode(old, order="sorted") == msgspec.json.encode(new, order="sorted")
    return old == new


def apply_patch(value: Any, operations: Sequence[Operation]) -> Any:
    """Return a JSON value after operations of JSON Patch (RFC 6902). The value itself is modified."""
    for number, operation in enumerate(operations):
        try:
            value = _apply(value, operation)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"Operation {number} of the patch can't be applied.") from error
    return value


def _apply(value: Any, operation: Operation) -> Any:
    kind, path = operation["op"], _parts(operation["path"])
    if kind == "add":
        return _add(value, path, _copy(operation["value"]))
    if kind == "replace":
        return _add(_remove(value, path)[0], path, _copy(operation["value"]))
    if kind == "remove":
        return _remove(value, path)[0]
    if kind == "test":
        if not _is_same(_get(value, path), operation["value"]):
            raise ValueError
        return value
    source = _parts(operation["from"])
    if kind == "copy":
        return _add(value, path, _copy(_get(value, source)))
    if kind != "move" or (len(path) > len(source) and path[: len(source)] == source):
        raise ValueError
    value, moved = _remove(value, source)
    return _add(value, path, moved)


def _parts(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise ValueError
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _index(part: str, length: int) -> int:
    if not (part.isascii() and part.isdigit()) or (part != "0" and part.startswith("0")) or int(part) > length:
        raise IndexError
    return int(part)


def _get(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(value, list):
            many = cast("list[Any]", value)
            value = many[_index(part, len(many) - 1)]
        else:
            value = value[part]
    return value


def _add(value: Any, path: Sequence[str], added: Any) -> Any:
    if not path:
        return added
    holder = _get(value, path[:-1])
    if isinstance(holder, list):
        many = cast("list[Any]", holder)
        many.insert(len(many) if path[-1] == "-" else _index(path[-1], len(many)), added)
    elif isinstance(holder, dict):
        holder[path[-1]] = added
    else:
        raise TypeError
    return value


def _remove(value: Any, path: Sequence[str]) -> tuple[Any, Any]:
    if not path:
        return None, value
    holder = _get(value, path[:-1])
    if isinstance(holder, list):
        many = cast("list[Any]", holder)
        return value, many.pop(_index(path[-1], len(many) - 1))
    if isinstance(holder, dict):
        return value, cast("dict[str, Any]", holder).pop(path[-1])
    raise TypeError


def _copy(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
