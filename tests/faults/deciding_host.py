"""A host in a process of its own whose questions are decided at once, and which ends itself around a commit.

Its settings are JSON: those of `paying_host`, with `point` and `passes` for the commit, counted from the decision, and
with a `dsn` where the state is in Postgres.
"""

import json
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing.crash import CrashPlan, _watch_commits
from frontdesk_testing.internals import get_components, get_store
from tests.faults.paying_host import die, parse_target
from tests.faults.sweeping import stop_sweep


class Deciding(InvocationsChannel):
    """Decides questions by a call of its own, as the person who was asked."""

    host: Any = None
    plan: CrashPlan | None = None
    moment = "never"

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._deciding = context
        plain = super().contribute(context)
        route = Route("/decide/{approval_id}", self._decide, methods=["POST"])
        return plain.replace(routes=[route, Route("/decided", self._list_decided), *plain.routes])

    async def _list_decided(self, request: Request) -> JSONResponse:
        """Return how the runs after decisions ended, and what is left of their events."""
        store: Any = get_store(self.host)
        names = await store._engine.read("SELECT owner, run_id FROM runs WHERE kind = 'background'")
        runs = [await store.runs.get(*name) for name in names]
        ((left,),) = await store._engine.read("SELECT COUNT(*) FROM inbox WHERE done_at IS NULL")
        ends = [(run.status, None if run.failure is None else run.failure.code) for run in runs]
        return JSONResponse({"left": left, "runs": ends})

    async def _decide(self, request: Request) -> JSONResponse:
        store: Any = get_store(self.host)
        parts: Any = get_components(self.host)
        approval_id = request.path_params["approval_id"]
        ((owner,),) = await store._engine.read("SELECT owner FROM approvals")
        question = await store.approvals.get(owner, approval_id)
        if self.plan is not None:
            await stop_sweep(self.host)
            _watch_commits(store._engine, self.plan)
        if self.moment == "undecided":
            parts.decisions._settling.rows = _die
        if self.moment == "decided":
            parts.events.intake.wake = _die
        decision = await self._deciding.approvals.decide(question.requester, approval_id, True)
        return JSONResponse({"outcome": decision.outcome, "run_id": decision.run_id})


async def _die(*_: Any) -> None:
    die()


def main(settings: str) -> None:
    """Serve until the process is killed."""
    given: dict[str, Any] = json.loads(settings)
    root, channel = Path(given["root"]), Deciding()
    if "point" in given:
        channel.plan = CrashPlan(given["point"], given["passes"])
    target = parse_target("agent", root, given.get("moment", "never"))
    place: dict[str, Any] = {"state_dir": root}
    if "dsn" in given:
        timeouts: dict[str, Any] = {"lease_seconds": 5.0, "statement_timeout": 3.0, "connect_timeout": 1.5}
        place = {"store": PostgresStateStore(given["dsn"], **timeouts)}
    host = AgentFrameworkHost(target, channels=[channel], **place)
    channel.host, channel.moment = host, given.get("moment", "never")
    host.serve(port=given["port"], log_level="critical")
