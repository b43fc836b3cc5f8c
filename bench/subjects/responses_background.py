"""Our host with the Responses channel, whose streams are those of background runs."""

from __future__ import annotations

from typing import Any

from bench.setting import Setting
from bench.subjects.base import Case
from bench.subjects.frontdesk import limits, parse_target
from bench.subjects.responses import Responses
from bench.subjects.responses_api import PATH, to_json


class ResponsesBackground(Responses):
    name = "responses-background"
    measures = ("stream",)
    peers = ()

    def build_app(self, setting: Setting) -> Any:
        from frontdesk import AgentFrameworkHost
        from frontdesk.channels.responses import ResponsesChannel

        return AgentFrameworkHost(
            target=parse_target(setting),
            channels=[ResponsesChannel(limits=limits())],
            max_background_runs=256,
            max_background_runs_per_caller=100_000,
        ).app

    def request(self, case: Case) -> tuple[str, bytes]:
        body = {"model": "stub", "input": case, "stream": case != "json", "background": case != "json"}
        return PATH, to_json(body)


subject = ResponsesBackground()
