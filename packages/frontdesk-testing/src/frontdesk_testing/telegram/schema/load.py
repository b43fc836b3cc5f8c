"""Reads the schema of the Bot API."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


class Field(msgspec.Struct, frozen=True, array_like=True):
    """A parameter of a method, or a field of a type."""

    kind: str
    """A name of a type, `Array of ...`, or several with `or` between them."""
    required: bool | int = 0
    limits: Mapping[str, Any] = {}
    """`is` for a constant; `characters`, `bytes`, `items` or `range` with the least and the greatest number."""


class Schema(msgspec.Struct, frozen=True):
    """The methods and types of one version of the Bot API."""

    version: str
    methods: dict[str, dict[str, Field]]
    types: dict[str, dict[str, Field]]
    unions: dict[str, tuple[str, ...]]


@cache
def bot_api() -> Schema:
    """Return the schema. It is read when it is first used."""
    content = (files("frontdesk_testing.telegram.schema") / "bot_api.json").read_bytes()
    return msgspec.json.decode(content, type=Schema, strict=False)
