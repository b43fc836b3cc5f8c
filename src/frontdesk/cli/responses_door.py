"""The client's side of the Responses API, for a host that does not serve Invocations."""

import json
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any, cast

from frontdesk.cli.door import Door, Event, RefusedError, error_text

_TEXTS = ("response.output_text.delta", "response.refusal.delta")
_CONVERSATION = "conv_"
"""The beginning of the id of a conversation; any other session is the id of a response."""


class ResponsesDoor(Door):
    """Sends what the Invocations protocol says as requests of the Responses API, and its answers the other way."""

    def _place(self, url: Any) -> Any:
        path = url.path.rstrip("/")
        for name in ("/invocations", "/responses", "/v1"):
            path = path.removesuffix(name)
        return url.copy_with(path=f"{path}/v1/responses")

    def agent(self) -> str | None:
        """Return the name of the agent, if the API is served here; raise if the server refuses us."""
        try:
            return str(self._get(f"{self._url.path.removesuffix('/responses')}/models")["data"][0]["id"])
        except (ValueError, LookupError, TypeError):
            return None

    def send(self, body: Mapping[str, Any]) -> Generator[Event, None, None]:
        """Yield the events of the answer, as the Invocations protocol has them."""
        with closing(super().send(to_responses(body))) as events:
            for name, data in events:
                if name in _TEXTS:
                    yield "update", {"text": data.get("delta")}
                elif name == "error":
                    raise RefusedError(500, error_text(data))
                elif data.get("object") == "response":
                    yield "end", to_invocation(data)
                elif name in ("response.completed", "response.incomplete", "response.failed"):
                    yield "end", to_invocation(_object_of(data, "response"))


def to_responses(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body of the Responses API that asks for what one of Invocations does."""
    if "approval" in body:
        approval = body["approval"]
        answer = {
            "type": "mcp_approval_response",
            "approval_request_id": approval["id"],
            "approve": approval["approved"],
        }
        return {"input": [answer], "stream": True}
    request: dict[str, Any] = {"input": body["message"], "stream": True}
    session = body.get("session_id")
    if session is not None:
        request["conversation" if session.startswith(_CONVERSATION) else "previous_response_id"] = session
    return request


def to_invocation(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response as an answer of Invocations; the next turn goes on from it, unless it has failed."""
    output = _objects_of(response, "output")
    parts = [part for item in output if item.get("type") == "message" for part in _objects_of(item, "content")]
    conversation = _object_of(response, "conversation").get("id")
    failed = response.get("status") in ("failed", "cancelled")
    return {
        "id": response.get("id"),
        "status": str(response.get("status")),
        "session_id": conversation or (None if failed else response.get("id")),
        "text": "".join(str(part.get("text") or part.get("refusal") or "") for part in parts),
        "approvals": [_approval(item) for item in output if item.get("type") == "mcp_approval_request"],
        "error": response.get("error"),
    }


def _approval(item: Mapping[str, Any]) -> dict[str, Any]:
    given = item.get("arguments")
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        arguments = given
    return {"id": item.get("id"), "tool": item.get("name"), "arguments": arguments}


def _objects_of(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    given = value.get(name)
    values = cast("list[Any]", given) if isinstance(given, list) else []
    return [part for part in values if isinstance(part, dict)]


def _object_of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    given = value.get(name)
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}
