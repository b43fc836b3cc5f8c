"""What each door is for, and what it takes."""

from typing import Any, NamedTuple

TASK = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SOCKET = "WEBSOCKET"
SAYING = {"items": [{"type": "message", "role": "user", "content": "planted"}]}


_SAID = {"id": "u1", "role": "user", "content": "hello"}


class Door(NamedTuple):
    """A method on a path."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Purpose(NamedTuple):
    """What a door is for, and a body that it takes."""

    kind: str
    body: Any = None
    more: tuple[Any, ...] = ()
    """Other bodies, for those who may send none of them."""


def _message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


# What a door is for. One that is not here fails the test: whoever adds a route says who may use it.
PURPOSES: dict[str, Purpose] = {
    "GET /healthz": Purpose("open"),
    "GET /readyz": Purpose("open"),
    "GET /liveness": Purpose("open"),
    "GET /readiness": Purpose("open"),
    "POST /responses": Purpose(
        "make",
        {"input": "hello"},
        (
            *({"input": "hello", **more} for more in ({"stream": True}, {"background": True}, {"store": False})),
            {"input": [{"type": "mcp_approval_response", "approval_request_id": "af-1", "approve": True}]},
            {"input": "hello", "conversation": "conv_1"},
        ),
    ),
    f"{SOCKET} /responses": Purpose("socket"),
    "POST /responses/compact": Purpose("make", {"model": "m", "input": "hello"}),
    "POST /responses/input_tokens": Purpose("info", {"input": "hello"}),
    "GET /responses/{run_id}": Purpose("thing"),
    "DELETE /responses/{run_id}": Purpose("thing"),
    "POST /responses/{run_id}/cancel": Purpose("thing"),
    "GET /responses/{run_id}/input_items": Purpose("thing"),
    "GET /models": Purpose("info"),
    "GET /models/{model:path}": Purpose("info"),
    "POST /chat/completions": Purpose(
        "make",
        {"messages": [{"role": "user", "content": "hello"}]},
        ({"messages": [{"role": "user", "content": "hello"}], "stream": True},),
    ),
    "POST /conversations": Purpose("make", {}),
    "GET /conversations/{conversation_id}": Purpose("thing"),
    "POST /conversations/{conversation_id}": Purpose("thing", {"metadata": {"mine": "now"}}),
    "DELETE /conversations/{conversation_id}": Purpose("thing"),
    "GET /conversations/{conversation_id}/items": Purpose("thing"),
    "POST /conversations/{conversation_id}/items": Purpose("thing", SAYING),
    "GET /conversations/{conversation_id}/items/{item_id}": Purpose("thing"),
    "DELETE /conversations/{conversation_id}/items/{item_id}": Purpose("thing"),
    "POST /invocations": Purpose(
        "make",
        {"message": "hello"},
        (
            *({"message": "hello", **more} for more in ({"stream": True}, {"background": True}, {"session_id": "s"})),
            {"approval": {"id": "af-1", "approved": True}},
            {"session_id": "s", "responses": {"r": 1}},
        ),
    ),
    "GET /invocations/docs/openapi.json": Purpose("info"),
    "GET /invocations/approvals/pending": Purpose("info"),
    "GET /invocations/{run_id}": Purpose("thing"),
    "POST /invocations/{run_id}/cancel": Purpose("thing"),
    **{
        f"{method} {path}/.well-known/agent-card.json": Purpose("open")
        for method in ("GET", "HEAD")
        for path in ("", "/a2a")
    },
    "POST /a2a": Purpose("task", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": TASK}),
    "POST /a2a/v1/message:send": Purpose("task", TASK),
    "POST /a2a/v1/message:stream": Purpose("task", TASK),
    "GET /a2a/v1/tasks": Purpose("info"),
    "GET /a2a/v1/extendedAgentCard": Purpose("info"),
    "GET /a2a/v1/tasks/{id}": Purpose("thing"),
    "POST /a2a/v1/tasks/{id}:cancel": Purpose("thing"),
    "GET /a2a/v1/tasks/{id}:subscribe": Purpose("thing"),
    "POST /a2a/v1/tasks/{id}:subscribe": Purpose("thing"),
    "GET /a2a/v1/tasks/{task_id}/pushNotificationConfigs": Purpose("thing"),
    "POST /a2a/v1/tasks/{task_id}/pushNotificationConfigs": Purpose("thing", {"url": "https://example.com"}),
    "GET /a2a/v1/tasks/{task_id}/pushNotificationConfigs/{id}": Purpose("thing"),
    "DELETE /a2a/v1/tasks/{task_id}/pushNotificationConfigs/{id}": Purpose("thing"),
    "POST /agui": Purpose(
        "make",
        {"threadId": "t", "runId": "r", "messages": [_SAID]},
        (
            {"threadId": "t", "runId": "r", "messages": [], "resume": [{"interruptId": "apr_1", "status": "resolved"}]},
            {"threadId": "t", "runId": "r", "messages": [_SAID], "forwardedProps": {"user_id": "owner"}},
        ),
    ),
    "GET /agui/threads/{thread_id}": Purpose("thing"),
    "POST /agui/runs/{run_id}/cancel": Purpose("thing"),
    "POST /mcp": Purpose(
        "make",
        _message("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}),
        (_message("tools/call", name="echo", arguments={"message": "hello"}), _message("tools/list"), _message("ping")),
    ),
    "GET /mcp": Purpose("session"),
    "DELETE /mcp": Purpose("session"),
    "GET /.well-known/oauth-protected-resource/mcp": Purpose("open"),
    "POST /messages/events": Purpose("webhook", {}),
    "GET /link/start/{text}": Purpose("page"),
    "POST /link/start/{text}": Purpose("page"),
    "GET /link/callback": Purpose("page"),
    "GET /link/confirm/{text}": Purpose("page"),
    "POST /link/confirm/{text}": Purpose("page"),
    "POST /link/cancel/{text}": Purpose("page"),
    "GET /chat": Purpose("open"),
    "GET /chat/static/{version}/{name:path}": Purpose("visitor"),
    "GET /chat/theme/{file}": Purpose("visitor"),
    "GET /chat/frame": Purpose("visitor"),
    "GET /chat/embed.js": Purpose("visitor"),
    "GET /chat/api/me": Purpose("visitor"),
    "POST /chat/api/conversations": Purpose("visitor", {"client_id": "c"}),
    "POST /chat/api/conversations/{chat}": Purpose("visitor", {"title": "t"}),
    "DELETE /chat/api/conversations/{chat}": Purpose("visitor"),
    "GET /chat/api/conversations/{chat}/messages": Purpose("visitor"),
    "GET /chat/api/conversations/{chat}/elsewhere": Purpose("visitor"),
    "POST /chat/api/conversations/{chat}/messages": Purpose("visitor", {"client_id": "c", "text": "hello"}),
    "POST /chat/api/conversations/{chat}/stop": Purpose("visitor", {"client_id": "c"}),
    "POST /chat/api/conversations/{chat}/everywhere": Purpose("visitor", {"client_id": "c"}),
    "GET /chat/api/search": Purpose("visitor"),
    "GET /chat/api/approvals/{approval_id}": Purpose("visitor"),
    "POST /chat/api/approvals/{approval_id}": Purpose("visitor", {"approved": True, "digest": "d"}),
    "GET /chat/api/files/{file}": Purpose("visitor"),
    "GET /chat/api/events": Purpose("visitor"),
    "GET /chat/api/poll": Purpose("visitor"),
    "GET /chat/api/account": Purpose("visitor"),
    "POST /chat/api/account/link": Purpose("visitor", {}),
    "POST /chat/api/account/code": Purpose("visitor", {"code": "AAAA-AAAA"}),
    "POST /chat/api/account/answer": Purpose("visitor", {"challenge_id": "c", "confirm": True}),
    "POST /chat/api/account/unlink": Purpose("visitor", {}),
    f"{SOCKET} /chat/api/feed": Purpose("visitor"),
    **{
        f"{method} {base}/{{path:path}}": Purpose("unknown")
        for method in METHODS
        for base in ("/responses", "/chat/completions", "/mcp", "", "/a2a", "/a2a/v1")
    },
    **{f"{method} /conversations/{{path:path}}": Purpose("unknown") for method in METHODS},
}


def purpose(door: Door) -> Purpose:
    """What a door is for; every one of the OpenAI doors is there three times."""
    return PURPOSES[name_door(door)]


def name_door(door: Door) -> str:
    """A door as it is called in the table."""
    path = door.path.removeprefix("/openai")
    return f"{door.method} {path.removeprefix('/v1')}"


def shape(door: Door) -> set[str]:
    """What an error of this door has."""
    if door.path.startswith("/a2a"):
        return {"code", "message"}
    plain = (
        door.path.startswith(("/invocations", "/agui", "/messages", "/mcp", "/chat"))
        and "/completions" not in door.path
    )
    return {"code", "message"} if plain else {"type", "code", "message", "param"}
