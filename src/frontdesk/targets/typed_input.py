"""Converts input and answers to the types that a workflow accepts."""

from collections.abc import Sequence
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

import msgspec
from agent_framework import Content, Message
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from frontdesk.errors import InvalidRequestError
from frontdesk.framework.contents import build_said


def fit(value: Any, messages: Sequence[Message], types: Sequence[Any]) -> Any:
    """Return the input if the workflow takes its type, else its text, its message, its messages or its fields."""
    if not types or any(is_instance(value, kind) for kind in types):
        return value
    if messages:
        forms: list[Any] = ["\n".join(message.text for message in messages), list(messages)]
        if len(messages) == 1:
            forms.insert(1, messages[0])
        for form in forms:
            if any(is_instance(form, kind) for kind in types):
                return form
    if isinstance(value, dict) and (made := _from_fields(cast("dict[str, Any]", value), types)) is not None:
        return made
    names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in types)
    raise InvalidRequestError(f"The workflow requires {names}. Adapt the input with a hook.", param="input")


def _from_fields(value: dict[str, Any], types: Sequence[Any]) -> Any:
    """Return the object of a JSON object: of the first type that has its fields. None if there is none."""
    for kind in types:
        try:
            return TypeAdapter(kind).validate_json(msgspec.json.encode(value))
        except (PydanticSchemaGenerationError, PydanticUserError, ValidationError, TypeError, UnicodeEncodeError):
            continue
    return None


def is_instance(value: Any, wanted: Any) -> bool:
    """Return True if a value has a type, including the arguments of generics."""
    if wanted is Any:
        return True
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin is None:
        return isinstance(value, wanted) if isinstance(wanted, type) else False
    if origin in (Union, UnionType):
        return any(is_instance(value, argument) for argument in arguments)
    if not isinstance(origin, type) or not isinstance(value, origin) or isinstance(value, (str, bytes)):
        return False
    if isinstance(value, dict) and len(arguments) == 2:
        items = cast("dict[Any, Any]", value).items()
        return all(is_instance(key, arguments[0]) and is_instance(item, arguments[1]) for key, item in items)
    if isinstance(value, (list, set, frozenset)) and len(arguments) == 1:
        return all(is_instance(item, arguments[0]) for item in cast("list[Any]", value))
    return True


def fit_answer(value: Any, wanted: Any, name: str) -> Any:
    """Convert a received answer to the requested type: as is, as a message, or parsed from its JSON."""
    value = _extract_text(value)
    if is_instance(value, wanted):
        return value
    if isinstance(value, str):
        for form in (build_said(value), [build_said(value)], Content.from_text(value)):
            if is_instance(form, wanted):
                return form
    for form in _json_forms(value):
        try:
            return TypeAdapter(wanted).validate_json(form, strict=True)
        except PydanticSchemaGenerationError:
            break
        except ValidationError:
            continue
    kind = wanted.__name__ if isinstance(wanted, type) else str(wanted)
    raise InvalidRequestError(f"The answer to {name} must be of type {kind}.", param="input")


def _extract_text(value: Any) -> Any:
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    if parts and all(isinstance(part, Content) and part.type == "text" for part in parts):
        return "".join(part.text or "" for part in parts)
    return cast(Any, value)


def _json_forms(value: Any) -> list[bytes]:
    """Return the possible JSON of a value. A string is JSON itself, or a value that JSON encodes as a string."""
    try:
        plain = msgspec.json.encode(value)
        return [value.encode(), plain] if isinstance(value, str) else [plain]
    except (TypeError, UnicodeEncodeError):
        return []
