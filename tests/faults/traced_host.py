"""A host on the fake platform in a process of its own, which tells the spans that it begins and ends on its output."""

import asyncio
import json
import sys
from collections.abc import Mapping

from frontdesk import AgentFrameworkHost
from frontdesk.interfaces.telemetry import SpanKind
from frontdesk_testing.messages import MessageChannel
from frontdesk_testing.telemetry import RecordedSpan
from tests.faults.chat_host import Voice


class ToldSpan(RecordedSpan):
    """A span that is told when it begins and when it ends."""

    def __init__(self, kind: SpanKind, parent: str | None, labels: Mapping[str, str]) -> None:
        super().__init__(kind, parent, labels)
        self._tell("begun")

    def end(self, outcome: str) -> None:
        super().end(outcome)
        self._tell(outcome)

    def _tell(self, what: str) -> None:
        sys.stdout.write(json.dumps([self.kind, self.trace_id, self.span_id, self.parent_id, what]) + "\n")
        sys.stdout.flush()


class ToldTelemetry:
    """Tells every span."""

    def begin(self, kind: SpanKind, parent: str | None, labels: Mapping[str, str]) -> ToldSpan:
        return ToldSpan(kind, parent, labels)


async def _serve(url: str, token: str, state_dir: str, how: str) -> None:
    channel = MessageChannel(platform_url=url, token=token, intake="polling")
    telemetry = ToldTelemetry()
    host = AgentFrameworkHost(Voice(how == "wait"), channels=[channel], state_dir=state_dir, telemetry=telemetry)
    async with host.app.router.lifespan_context(host.app):
        await asyncio.Event().wait()


def main(url: str, token: str, state_dir: str, how: str) -> None:
    """Serve until the process is killed."""
    asyncio.run(_serve(url, token, state_dir, how))
