"""Our host: in-memory store, Invocations channel, an agent that costs nothing."""

from __future__ import annotations

import json
from typing import Any

from bench.setting import Setting
from bench.subjects.base import USUAL, Case, Store, Subject

PATH = "/invocations"
API_KEY = "the-key-that-the-bench-comes-with"


class Served(Subject):
    """A host of ours, as `frontdesk serve` runs it."""

    store: Store | None = "memory"
    served = "as `frontdesk serve` does: the collector skips what is loaded and comes less often; heads have limits"

    def server(self, config: Any) -> Any:
        from frontdesk.server.uvicorn_server import Server

        return Server(config)

    def prepare_started(self) -> None:
        from frontdesk.cli.serve import spare_the_collector

        spare_the_collector()


class Frontdesk(Served):
    name = "frontdesk"
    measures = (*USUAL, "long", "agent", "guarded")
    import_package = "import frontdesk"
    import_app = (
        "from frontdesk import AgentFrameworkHost; from frontdesk.channels.invocations import InvocationsChannel"
    )

    def build_app(self, setting: Setting) -> Any:
        from frontdesk import AgentFrameworkHost
        from frontdesk.channels.invocations import InvocationsChannel

        guarded: dict[str, Any] = guards() if setting.door == "guarded" else {}
        channel = InvocationsChannel(limits=limits(), **guarded)
        return AgentFrameworkHost(parse_target(setting), channels=[channel], **self.keep(setting)).app

    def keep(self, setting: Setting) -> dict[str, Any]:
        """What tells the host where its state goes."""
        return {}

    def request(self, case: Case) -> tuple[str, bytes]:
        return PATH, to_json({"message": case, "stream": case != "json"})

    def turn_request(self, text: str, session_id: str | None) -> tuple[str, bytes]:
        session = {"session_id": session_id} if session_id else {}
        return PATH, to_json({"message": text, "stream": False, **session})

    def session_id_in(self, body: bytes) -> str | None:
        return json.loads(body)["session_id"]


def limits() -> Any:
    """The default limits, with room for all the streams that the bench opens as one caller."""
    from frontdesk import HttpLimits

    return HttpLimits(max_running_per_caller=10_000, max_running=10_000)


def guards() -> dict[str, Any]:
    """An API key, and an allowlist with its owner among others."""
    from frontdesk import ApiKeyAuth, NativeIdAllowlist

    people = ["bench", *(f"somebody-{number}" for number in range(1_000))]
    keys = {name: f"{name}-{API_KEY}" for name in people[1:]}
    return {"auth": ApiKeyAuth({"bench": API_KEY, **keys}), "allowlist": NativeIdAllowlist(people)}


def parse_target(setting: Setting) -> Any:
    if setting.target != "stub":
        from bench.real_agent import build_agent

        return build_agent(tools=setting.target == "tools")
    from bench.stub_agent import StubAgent

    return StubAgent()


def to_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


subject = Frontdesk()
