"""The OpenAPI document of the Invocations channel, generated from its body types."""

from collections.abc import Mapping
from typing import Any

import msgspec

from frontdesk.channels.invocations.parse import MAX_LISTED
from frontdesk.channels.invocations.schema import ID, ErrorEnvelope, InvocationBody, InvocationOut, WaitingList
from frontdesk.http.idempotency import MAX_KEY_LENGTH
from frontdesk.interfaces.target import TargetInfo

_IN: dict[str, str] = {"400": "The request is invalid.", "401": "Credentials are needed.", "403": "Refused."}
_ID: dict[str, Any] = {"type": "string", **ID}
_KEY: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": "^[ -~]*$"}
_SAID = {"message", "input", "approval", "responses"}
_KINDS = {
    "message": _SAID - {"message"},
    "input": _SAID - {"input"},
    "approval": (_SAID - {"approval"}) | {"session_id", "checkpoint_id", "options"},
}
_OF_WORKFLOWS = {"responses": (_SAID - {"responses"}) | {"options"}, "checkpoint_id": _SAID | {"options"}}
_ANSWERS = _OF_WORKFLOWS["responses"] | {"checkpoint_id"}


def document(
    path: str, target: TargetInfo, schemes: Mapping[str, Any], *, extra_fields: bool = False
) -> dict[str, Any]:
    """Return the body of `GET /invocations/docs/openapi.json`. Any of the security `schemes` is sufficient."""
    types = (InvocationBody, InvocationOut, ErrorEnvelope, WaitingList)
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    body, out, error, waiting = schemas
    components["InvocationBody"] = _build_union(components["InvocationBody"], target, extra_fields)
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": target.name, "version": "1.0.0", "description": target.description},
        "paths": {
            path or "/": {"post": _create(body, out, error)},
            f"{path}/approvals/pending": {"get": _list(waiting, error)},
            f"{path}/{{invocation_id}}": {"get": _get(out, error)},
            f"{path}/{{invocation_id}}/cancel": {"post": _read("cancel_invocation", "Cancels it.", out, error)},
        },
        "components": {"schemas": components},
    }
    if schemes:
        described["components"]["securitySchemes"] = dict(schemes)
        described["security"] = [{name: []} for name in schemes]
    return described


def _build_union(whole: dict[str, Any], target: TargetInfo, extra_fields: bool) -> dict[str, Any]:
    """Replace the body schema by one variant for each kind of body with its fields."""
    # A workflow that is run as an agent can be answered, but not sent back.
    taken = _OF_WORKFLOWS if target.kind == "workflow" else {"responses": _ANSWERS} if target.checkpoints else {}
    unknown = _OF_WORKFLOWS.keys() - taken.keys()
    kinds = [_kind(whole, name, without | unknown) for name, without in _KINDS.items()]
    for name, without in taken.items():
        kind = _kind(whole, name, without)
        kind["properties"].update({"session_id": _ID, **({name: _ID} if name == "checkpoint_id" else {})})
        kinds.append({**kind, "required": [name, "session_id"]})
    if extra_fields:
        # A hook makes the input of what is there.
        kinds = [*map(_allow_fields, kinds), _allow_fields(_kind(whole, None, _SAID | {"checkpoint_id"}))]
    return {"title": whole["title"], "description": whole["description"], "oneOf": kinds}


def _kind(whole: dict[str, Any], name: str | None, without: set[str]) -> dict[str, Any]:
    fields = {field: schema for field, schema in whole["properties"].items() if field not in without}
    required = [] if name is None else [name]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def _allow_fields(kind: dict[str, Any]) -> dict[str, Any]:
    """Allow additional fields in a kind of body, except the protocol fields of other kinds."""
    others = [name for name in InvocationBody.__struct_fields__ if name not in kind["properties"]]
    return {**kind, "additionalProperties": True, "not": {"anyOf": [{"required": [name]} for name in others]}}


def _create(body: Any, out: Any, error: Any) -> dict[str, Any]:
    conflicts = {
        "404": "No such session, approval or checkpoint.",
        "408": "The body did not arrive in time.",
        "409": "No session, a busy or a waiting one, or a known invocation id.",
        "413": "The body is too large.",
        "415": "The body must be JSON.",
        "422": "A hook refused the request, or its idempotency key came with another one.",
        "429": "Too many at once.",
        "500": "The host failed before the agent was asked.",
        "501": "This host is not set up for that.",
        "503": "The service can't answer at the moment.",
    }
    answers = {"application/json": {"schema": out}, "text/event-stream": {}}
    return {
        "operationId": "create_invocation",
        "summary": "Runs the agent.",
        "parameters": [
            {"name": "agent_session_id", "in": "query", "schema": _ID},
            {"name": "x-agent-invocation-id", "in": "header", "schema": _ID},
            {"name": "idempotency-key", "in": "header", "schema": _KEY},
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {"description": "How the run ended, or with `stream` its events.", "content": answers},
            "202": _build_waiting("It runs in the background.", out),
            **_errors({**_IN, **conflicts}, error),
        },
    }


def _get(out: Any, error: Any) -> dict[str, Any]:
    operation = _read("get_invocation", "An invocation, or the events of its stream.", out, error)
    operation["parameters"] += [
        {"name": "stream", "in": "query", "schema": {"type": "boolean"}},
        {"name": "starting_after", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}},
    ]
    operation["responses"]["200"]["content"]["text/event-stream"] = {}
    operation["responses"] |= _errors({"409": "It keeps no events."}, error)
    return operation


def _list(waiting: Any, error: Any) -> dict[str, Any]:
    return {
        "operationId": "list_pending_approvals",
        "summary": "The tool calls of the caller that wait, and those of others that wait for the caller.",
        "parameters": [
            {"name": "after", "in": "query", "schema": _ID},
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED}},
        ],
        "responses": {
            "200": {"description": "The oldest first.", "content": {"application/json": {"schema": waiting}}},
            **_errors(_IN, error),
        },
    }


def _read(operation: str, summary: str, out: Any, error: Any) -> dict[str, Any]:
    return {
        "operationId": operation,
        "summary": summary,
        "parameters": [{"name": "invocation_id", "in": "path", "required": True, "schema": _ID}],
        "responses": {
            "200": {"description": "The invocation.", "content": {"application/json": {"schema": out}}},
            "202": _build_waiting("It waits in the background.", out),
            **_errors({**_IN, "404": "No such invocation.", "422": "A hook refused to show it."}, error),
        },
    }


def _build_waiting(description: str, out: Any) -> dict[str, Any]:
    location = {"description": "The path at which the run is found.", "schema": {"type": "string"}}
    return {
        "description": description,
        "headers": {"location": location},
        "content": {"application/json": {"schema": out}},
    }


def _errors(meanings: dict[str, str], error: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": error}}
    return {status: {"description": text, "content": content} for status, text in meanings.items()}
