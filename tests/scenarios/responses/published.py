"""The published schema of Open Responses, where it is found: what is made of the kinds that it knows must obey it."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

VARIABLE = "OPEN_RESPONSES_SCHEMA"
BESIDE = Path(__file__).parents[4] / "shared" / "schemas" / "open-responses.openapi.json"

_NAME = "urn:open-responses"
# Whatever a caller may put into a body by itself says nothing about the kinds that the body is made of.
_FREE = frozenset({"metadata", "parameters", "schema"})


class PublishedSchema:
    """Validates bodies and events against the document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._registry = Registry().with_resource(_NAME, Resource(contents=document, specification=DRAFT202012))
        self._validators: dict[str, Draft202012Validator] = {}
        schemas: dict[str, Any] = document["components"]["schemas"]
        self._kinds = {kind for schema in schemas.values() for kind in _kinds(schema)}
        self._efforts = {*schemas["ReasoningEffortEnum"]["enum"], None}
        self._events = {
            kind: name for name, schema in schemas.items() if name.endswith("StreamingEvent") for kind in _kinds(schema)
        }

    def knows(self, value: Any) -> bool:
        """Whether everything in a value is of a kind that the schema has."""
        if isinstance(value, list):
            return all(self.knows(one) for one in value)
        if not isinstance(value, dict):
            return True
        if isinstance(value.get("type"), str) and value["type"] not in self._kinds:
            return False
        if value.get("effort") not in self._efforts:
            return False
        return all(self.knows(one) for name, one in value.items() if name not in _FREE)

    def response(self, body: Any) -> list[str]:
        """What is wrong with a response."""
        return self._wrong("ResponseResource", body)

    def compaction(self, body: Any) -> list[str]:
        """What is wrong with a compacted conversation."""
        return self._wrong("CompactResource", body)

    def socket_error(self, event: Any) -> list[str]:
        """What is wrong with an error that is told on a WebSocket."""
        return self._wrong("WebSocketErrorEvent", event)

    def item(self, item: Any) -> list[str]:
        """What is wrong with an item."""
        return self._wrong("ItemField", item)

    def event(self, event: Any) -> list[str]:
        """What is wrong with an event of a stream."""
        return self._wrong(self._events[event["type"]], event)

    def _wrong(self, name: str, value: Any) -> list[str]:
        validator = self._validators.get(name)
        if validator is None:
            reference = {"$ref": f"{_NAME}#/components/schemas/{name}"}
            validator = self._validators[name] = Draft202012Validator(reference, registry=self._registry)
        return [f"{name}: {error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def _kinds(schema: dict[str, Any]) -> list[str]:
    return schema.get("properties", {}).get("type", {}).get("enum", [])


def find_schema() -> Path | None:
    """Where the schema is: named by the environment, or beside the checkout."""
    named = os.environ.get(VARIABLE)
    place = Path(named) if named else BESIDE
    return place if place.is_file() else None


@cache
def load_schema() -> PublishedSchema | None:
    """The schema, if it is anywhere."""
    place = find_schema()
    return None if place is None else PublishedSchema(json.loads(place.read_bytes()))
