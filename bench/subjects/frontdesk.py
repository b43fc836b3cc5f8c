"""Our host: in-memory store, Invocations channel, an agent that costs nothing."""

from __future__ import annotations

import json
from typing import Any

from bench.sample import Sample
from bench.subjects.base import Case, Subject

PATH = "/invocations"


class Served(Subject):
    """A host of ours, as `frontdesk serve` runs it."""

    served = "as `frontdesk serve` does, the garbage collector skips what is loaded and comes less often"

    def started(self) -> None:
        from frontdesk.cli.serve import spare_the_collector

        spare_the_collector()


class Frontdesk(Served):
    name = "frontdesk"
    import_package = "import frontdesk"
    import_app = (
        "from frontdesk import AgentFrameworkHost; from frontdesk.channels.invocations import InvocationsChannel"
    )

    def build_app(self, sample: Sample | None) -> Any:
        from bench.stub_agent import StubAgent
        from frontdesk import AgentFrameworkHost
        from frontdesk.channels.invocations import InvocationsChannel

        return AgentFrameworkHost(target=StubAgent(), channels=[InvocationsChannel()]).app

    def request(self, case: Case) -> tuple[str, bytes]:
        return PATH, to_json({"message": case, "stream": case != "json"})

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        session = {"session_id": session_id} if session_id else {}
        return PATH, to_json({"message": text, "stream": False, **session})

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body)["session_id"]


def to_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


subject = Frontdesk()
