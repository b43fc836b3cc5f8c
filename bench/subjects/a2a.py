"""Our host: in-memory store, A2A channel over JSON-RPC, an agent that costs nothing."""

from __future__ import annotations

import itertools
import json
from typing import Any

from bench.setting import Setting
from bench.subjects.base import Case
from bench.subjects.frontdesk import Served, limits, parse_target

PATH = "/a2a"
MESSAGE_ID = "message-0000000000000000"
"""The id in every request. A message runs once, so the app numbers the messages as they come in."""


class A2A(Served):
    name = "a2a"
    measures = ("json", "stream")
    peers = ("responses", "responses-background")
    import_package = "import frontdesk"
    import_app = "from frontdesk import AgentFrameworkHost; from frontdesk.channels.a2a import A2AChannel"
    # The task, that it is worked on, and the first chunk.
    idle_events = 3

    def build_app(self, setting: Setting) -> Any:
        from frontdesk import AgentFrameworkHost
        from frontdesk.channels.a2a import A2AChannel

        host = AgentFrameworkHost(
            target=parse_target(setting),
            channels=[A2AChannel(limits=limits())],
            max_background_runs=256,
            max_background_runs_per_caller=100_000,
        )
        return numbered(host.app)

    def request(self, case: Case) -> tuple[str, bytes]:
        return self._build("SendMessage" if case == "json" else "SendStreamingMessage", case, None)

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        return self._build("SendMessage", text, session_id)

    def _build(self, method: str, text: str, context_id: str | None) -> tuple[str, bytes]:
        message = {"messageId": MESSAGE_ID, "role": "ROLE_USER", "parts": [{"text": text}]}
        if context_id:
            message["contextId"] = context_id
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}
        return PATH, json.dumps(call, separators=(",", ":")).encode()

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body)["result"]["task"]["contextId"]


def numbered(app: Any) -> Any:
    """Give each message an id of its own."""
    numbers = itertools.count()
    fixed = MESSAGE_ID.encode()

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)

        async def receive_numbered() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                message["body"] = message["body"].replace(fixed, b"message-%016d" % next(numbers))
            return message

        # The generator sends no headers of its own.
        headers = [*scope["headers"], (b"a2a-version", b"1.0")]
        return await app({**scope, "headers": headers}, receive_numbered, send)

    return serve


subject = A2A()
