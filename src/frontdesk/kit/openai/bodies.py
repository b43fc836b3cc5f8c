"""Reads what the bodies of Responses and of Chat Completions have in common. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from frontdesk.kit.framework.json_schema import need_schema
from frontdesk.kit.http.bodies import refuse_body

T = TypeVar("T")
OptionNames = tuple[str, str]
"""The name of an option in the API, and in the framework."""

COMMON_OPTIONS: tuple[OptionNames, ...] = (
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("presence_penalty", "presence_penalty"),
    ("frequency_penalty", "frequency_penalty"),
    ("parallel_tool_calls", "allow_multiple_tool_calls"),
    ("model", "model"),
    ("metadata", "metadata"),
    ("service_tier", "service_tier"),
    ("safety_identifier", "safety_identifier"),
    ("prompt_cache_key", "prompt_cache_key"),
)
# Without options a target can still answer; it only answers as it always does.
COMMON_IGNORED = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "parallel_tool_calls"})


def convert(value: Any, kind: type[T], where: str) -> T:
    """Return a part of a body as its type, or raise an error that names the parameter which is wrong."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        refuse_body(error, where)


def given_options(body: msgspec.Struct, names: Iterable[OptionNames]) -> dict[OptionNames, Any]:
    """Return those of the options that a body has."""
    return {both: value for both in names if (value := getattr(body, both[0])) is not None}


def chosen_tools(choice: Any) -> tuple[str, Sequence[str]]:
    """Return what a choice of tools comes to, in the framework's form: how, and which ones it names."""
    if not isinstance(choice, dict):
        return choice or "auto", ()
    chosen = cast("dict[str, Any]", choice)
    name = chosen.get("required_function_name")
    return chosen["mode"], chosen["allowed_tools"] if name is None else [name]


def json_schema_format(
    name: str, schema: Mapping[str, Any], strict: bool | None, description: str | None, where: str
) -> dict[str, Any]:
    """Return the framework's form of an answer that follows a JSON schema."""
    need_schema(schema, where)
    form: dict[str, Any] = {"name": name, "schema": schema, "strict": bool(strict)}
    if description is not None:
        form["description"] = description
    return {"type": "json_schema", "json_schema": form}
