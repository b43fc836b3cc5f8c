"""Our host: in-memory store, AG-UI channel, an agent that costs nothing. Every run has its own thread."""

from __future__ import annotations

import json
from typing import Any

from bench.setting import Setting
from bench.subjects.base import Case
from bench.subjects.frontdesk import Served, limits, parse_target, to_json

PATH = "/agui"


class AGUI(Served):
    name = "agui"
    measures = ("stream", "fresh", "paced", "first", "idle", "import", "start")
    peers = ("responses",)
    # The start of the run, that of the message, and the first delta, in two pieces.
    idle_events = 3
    import_package = "import frontdesk"
    import_app = "from frontdesk import AgentFrameworkHost; from frontdesk.channels.agui import AGUIChannel"

    def build_app(self, setting: Setting) -> Any:
        from frontdesk import AgentFrameworkHost, ChannelRequest
        from frontdesk.channels.agui import AGUIChannel

        number = iter(range(1_000_000_000))

        def distinguish(request: ChannelRequest, **_: Any) -> ChannelRequest:
            # The generator repeats one request. With one run id it would be one run that is replayed.
            run_id = f"run-{next(number)}"
            session = None if request.session is None else request.session.replace(key=run_id)
            return request.replace(run_id=run_id, idempotency_key=run_id, session=session)

        channel = AGUIChannel(limits=limits(), run_hook=distinguish)
        return AgentFrameworkHost(target=parse_target(setting), channels=[channel]).app

    def request(self, case: Case) -> tuple[str, bytes]:
        message = {"id": "u1", "role": "user", "content": case}
        body = {"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": [message], "state": {}}
        return PATH, to_json(body)

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        raise NotImplementedError("AG-UI is measured by its streams")

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body).get("threadId")


subject = AGUI()
