"""Our host: in-memory store, Chat Completions channel, an agent that costs nothing."""

from __future__ import annotations

import json
from typing import Any

from bench.setting import Setting
from bench.subjects.base import Case
from bench.subjects.frontdesk import Served, limits, parse_target, to_json

PATH = "/chat/completions"


class ChatCompletions(Served):
    name = "chat_completions"
    measures = ("json", "stream", "fresh")
    import_package = "import frontdesk"
    import_app = (
        "from frontdesk import AgentFrameworkHost; "
        "from frontdesk.channels.chat_completions import ChatCompletionsChannel"
    )

    def build_app(self, setting: Setting) -> Any:
        from frontdesk import AgentFrameworkHost
        from frontdesk.channels.chat_completions import ChatCompletionsChannel

        return AgentFrameworkHost(parse_target(setting), channels=[ChatCompletionsChannel(limits=limits())]).app

    def request(self, case: Case) -> tuple[str, bytes]:
        messages = [{"role": "user", "content": case}]
        return PATH, to_json({"model": "stub", "messages": messages, "stream": case != "json"})

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        return PATH, to_json({"model": "stub", "messages": [{"role": "user", "content": text}]})

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body)["id"]


subject = ChatCompletions()
