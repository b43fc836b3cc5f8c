"""Crash injection: a process that ends itself at a chosen moment, as a power cut would end it."""

import inspect
import os
import signal
from typing import Any, Literal, get_args

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk.host.host import AgentFrameworkHost

CrashPoint = Literal["before_commit", "after_commit", "before_send", "after_send"]
CRASH_POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)


class CrashPlan:
    """Where the process ends: at a point, when it is passed for the given time. Nothing is said, nothing is closed."""

    def __init__(self, point: CrashPoint, passes: int = 1) -> None:
        if point not in CRASH_POINTS or passes < 1:
            raise ValueError(f"a plan has one of {', '.join(CRASH_POINTS)} and at least one pass")
        self.point = point
        self.passes = passes

    def reach(self, point: CrashPoint) -> None:
        """Passes a point; a store of one's own can call it around its commits."""
        if point != self.point:
            return
        self.passes -= 1
        if self.passes == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def crashing(host: AgentFrameworkHost, plan: CrashPlan) -> ASGIApp:
    """The app of a host whose process ends as planned: around a commit of its SQL store, or a message of an answer."""
    if plan.point in ("before_commit", "after_commit"):
        # The points lie inside, and nothing but a test has business there.
        inner: Any = host
        store = inner._parts.store
        if not hasattr(store, "_engine"):
            raise ValueError(f"{type(store).__name__} has no commits to crash at; a SQL store has")
        _watch_commits(store._engine, plan)
    return _WatchedApp(host.app, plan)


def _watch_commits(engine: Any, plan: CrashPlan) -> None:
    finish = engine._finish

    def at_once(*connection: Any) -> None:
        plan.reach("before_commit")
        finish(*connection)
        plan.reach("after_commit")

    async def awaited(*connection: Any) -> None:
        plan.reach("before_commit")
        await finish(*connection)
        plan.reach("after_commit")

    engine._finish = awaited if inspect.iscoroutinefunction(finish) else at_once


class _WatchedApp:
    def __init__(self, app: ASGIApp, plan: CrashPlan) -> None:
        self._app = app
        self._plan = plan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            self._plan.reach("before_send")
            await send(message)
            self._plan.reach("after_send")

        await self._app(scope, receive, watched if scope["type"] == "http" else send)
