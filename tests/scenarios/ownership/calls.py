"""Every request that can name something: each a function of ids and words."""

from collections.abc import Callable
from typing import Any, NamedTuple

Body = dict[str, Any] | None


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Body = None
    headers: dict[str, str] | None = None


class Kind(NamedTuple):
    """A kind of request, and what its ids usually begin with."""

    make: Callable[..., Call]
    wants: tuple[str, ...] = ()
    family: str = "openai"
    names: bool = False
    """Whether its ids are names of the caller's own choice, so that the same ones mean other things for others."""
    word: str = "hello"


def _respond(text: str, **more: Any) -> Call:
    return Call("POST", "/v1/responses", {"input": text, "metadata": {"said": text}, **more})


def _yes(approval_id: str, **more: Any) -> Call:
    answer = {"type": "mcp_approval_response", "approval_request_id": approval_id, "approve": True}
    return Call("POST", "/v1/responses", {"input": [answer], **more})


def _item(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def _refer(item_id: str) -> dict[str, Any]:
    return {"type": "item_reference", "id": item_id}


def _response(method: str, end: str = "") -> Callable[..., Call]:
    return lambda text, one: Call(method, f"/v1/responses/{one}{end}")


def _conversation(method: str, end: str = "") -> Callable[..., Call]:
    return lambda text, one, *more: Call(method, f"/v1/conversations/{one}{end.format(*more)}")


def _invoke(text: str, headers: dict[str, str] | None = None, **more: Any) -> Call:
    return Call("POST", "/invocations", {"message": text, "metadata": {"said": text}, **more}, headers)


RESPONSES: dict[str, Kind] = {
    "ask": Kind(lambda text: _respond(text)),
    "ask for money": Kind(lambda text: _respond(text), word="pay"),
    "ask later": Kind(lambda text: _respond(text, background=True), word="wait"),
    "ask for a stream later": Kind(lambda text: _respond(text, background=True, stream=True)),
    "go on": Kind(lambda text, one: _respond(text, previous_response_id=one), ("resp_",)),
    "go on in a stream": Kind(lambda text, one: _respond(text, previous_response_id=one, stream=True), ("resp_",)),
    "go on later": Kind(lambda text, one: _respond(text, previous_response_id=one, background=True), ("resp_",)),
    "go on, forgotten": Kind(lambda text, one: _respond(text, previous_response_id=one, store=False), ("resp_",)),
    "go on with an item": Kind(
        lambda text, one, two: Call("POST", "/v1/responses", {"input": [_refer(two)], "previous_response_id": one}),
        ("resp_", "msg_"),
    ),
    "refer": Kind(lambda text, one: Call("POST", "/v1/responses", {"input": [_item(text), _refer(one)]}), ("msg_",)),
    "compact": Kind(
        lambda text, one: Call("POST", "/v1/responses/compact", {"model": "m", "previous_response_id": one}),
        ("resp_",),
    ),
    "open a summary": Kind(
        lambda text, one: Call(
            "POST", "/v1/responses", {"input": [{"type": "compaction", "encrypted_content": one}, _item(text)]}
        ),
        ("fd1.",),
    ),
    "answer": Kind(lambda text, one: _yes(one), ("apr_",)),
    "answer there": Kind(lambda text, one, two: _yes(two, previous_response_id=one), ("resp_", "apr_")),
    "read": Kind(_response("GET"), ("resp_",)),
    "read its stream": Kind(_response("GET", "?stream=true"), ("resp_",)),
    "read its input": Kind(_response("GET", "/input_items"), ("resp_",)),
    "read its input after": Kind(
        lambda text, one, two: Call("GET", f"/v1/responses/{one}/input_items?after={two}"), ("resp_", "msg_")
    ),
    "cancel": Kind(_response("POST", "/cancel"), ("resp_",)),
    "delete": Kind(_response("DELETE"), ("resp_",)),
}
CONVERSATIONS: dict[str, Kind] = {
    "begin": Kind(lambda text: Call("POST", "/v1/conversations", {"items": [_item(text)], "metadata": {"said": text}})),
    "ask in it": Kind(lambda text, one: _respond(text, conversation=one), ("conv_",)),
    "ask in it later": Kind(lambda text, one: _respond(text, conversation=one, background=True), ("conv_",)),
    "repeat in it": Kind(
        lambda text, one, two: Call("POST", "/v1/responses", {"input": [_refer(two)], "conversation": one}),
        ("conv_", "msg_"),
    ),
    "look": Kind(_conversation("GET"), ("conv_",)),
    "mark": Kind(lambda text, one: Call("POST", f"/v1/conversations/{one}", {"metadata": {"said": text}}), ("conv_",)),
    "end": Kind(_conversation("DELETE"), ("conv_",)),
    "list": Kind(_conversation("GET", "/items"), ("conv_",)),
    "list after": Kind(_conversation("GET", "/items?after={}"), ("conv_", "msg_")),
    "add": Kind(lambda text, one: Call("POST", f"/v1/conversations/{one}/items", {"items": [_item(text)]}), ("conv_",)),
    "look at an item": Kind(_conversation("GET", "/items/{}"), ("conv_", "msg_")),
    "take an item": Kind(_conversation("DELETE", "/items/{}"), ("conv_", "msg_")),
}
INVOCATIONS: dict[str, Kind] = {
    "invoke": Kind(lambda text: _invoke(text), family="invocations"),
    "invoke for money": Kind(lambda text: _invoke(text), family="invocations", word="pay"),
    "invoke later": Kind(lambda text: _invoke(text, background=True), family="invocations", word="wait"),
    "invoke in a session": Kind(
        lambda text, one: _invoke(text, session_id=one), ("ses_",), family="invocations", names=True
    ),
    "invoke under a name": Kind(
        lambda text, one: _invoke(text, {"x-agent-invocation-id": one}), ("run_",), family="invocations", names=True
    ),
    "say yes": Kind(
        lambda text, one: Call("POST", "/invocations", {"approval": {"id": one, "approved": True}}),
        ("apr_",),
        family="invocations",
    ),
    "look at a run": Kind(lambda text, one: Call("GET", f"/invocations/{one}"), ("run_",), family="invocations"),
    "follow a run": Kind(
        lambda text, one: Call("GET", f"/invocations/{one}?stream=true"), ("run_",), family="invocations"
    ),
    "cancel a run": Kind(lambda text, one: Call("POST", f"/invocations/{one}/cancel"), ("run_",), family="invocations"),
}
KINDS: dict[str, Kind] = {**RESPONSES, **CONVERSATIONS, **INVOCATIONS}
