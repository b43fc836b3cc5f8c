"""Our host: in-memory store, Responses channel, an agent that costs nothing."""

from __future__ import annotations

from typing import Any

from bench.setting import Setting
from bench.subjects.frontdesk import Served, limits, parse_target
from bench.subjects.responses_api import ResponsesApi


class Responses(ResponsesApi, Served):
    name = "responses"
    peers = ("agentserver", "af-hosting")
    import_package = "import frontdesk"
    import_app = "from frontdesk import AgentFrameworkHost; from frontdesk.channels.responses import ResponsesChannel"

    def build_app(self, setting: Setting) -> Any:
        from frontdesk import AgentFrameworkHost
        from frontdesk.channels.responses import ResponsesChannel

        return AgentFrameworkHost(target=parse_target(setting), channels=[ResponsesChannel(limits=limits())]).app


subject = Responses()
