"""Crash injection: a process that kills itself at a chosen point."""

import inspect
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, get_args

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk.host.host import AgentFrameworkHost
from frontdesk_testing.internals import get_store

RequestPoint = Literal["before_commit", "after_commit", "before_send", "after_send"]
PushPoint = Literal["before_push", "after_push"]
LivePoint = Literal["before_live", "after_live"]
CrashPoint = RequestPoint | PushPoint | LivePoint
CRASH_POINTS: tuple[RequestPoint, ...] = get_args(RequestPoint)
"""The points that every request passes."""
PUSH_POINTS: tuple[PushPoint, ...] = get_args(PushPoint)
"""The points around what a channel pushes."""
LIVE_POINTS: tuple[LivePoint, ...] = get_args(LivePoint)
"""The points around what a channel shows of an answer while it is written."""
_ALL = (*CRASH_POINTS, *PUSH_POINTS, *LIVE_POINTS)


class CrashPlan:
    """The point at which the process ends, and how often it is passed before. Nothing is flushed or closed."""

    def __init__(self, point: CrashPoint, passes: int = 1) -> None:
        if point not in _ALL or passes < 1:
            raise ValueError(f"a plan has one of {', '.join(_ALL)} and at least one pass")
        self.point = point
        self.passes = passes

    def reach(self, point: CrashPoint) -> None:
        """Pass a point. A custom store can call it around its commits."""
        if point != self.point:
            return
        self.passes -= 1
        if self.passes == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def crashing(host: AgentFrameworkHost, plan: CrashPlan) -> ASGIApp:
    """Return the app of a host whose process ends as planned: around a commit, a message of an answer, or a push."""
    if plan.point in ("before_commit", "after_commit"):
        store: Any = get_store(host)
        if not hasattr(store, "_engine"):
            raise ValueError(f"{type(store).__name__} has no commits to crash at: use a SQL store")
        _watch_commits(store._engine, plan)
    if plan.point in PUSH_POINTS:
        for channel in host.channels:
            pushes = [method for method in ("push_part", "push") if hasattr(channel, method)]
            _watch(channel, pushes[:1], plan, PUSH_POINTS)
    if plan.point in LIVE_POINTS:
        for channel in host.channels:
            shows = [method for method in ("open_live", "update_live") if hasattr(channel, method)]
            _watch(channel, shows, plan, LIVE_POINTS)
    return _WatchedApp(host.app, plan)


def _watch_commits(engine: Any, plan: CrashPlan) -> None:
    finish = engine._finish

    def at_once(*connection: Any) -> None:
        plan.reach("before_commit")
        finish(*connection)
        plan.reach("after_commit")

    async def finish_watched(*connection: Any) -> None:
        plan.reach("before_commit")
        await finish(*connection)
        plan.reach("after_commit")

    engine._finish = finish_watched if inspect.iscoroutinefunction(finish) else at_once


def _watch(channel: Any, methods: Sequence[str], plan: CrashPlan, points: tuple[CrashPoint, ...]) -> None:
    for name in methods:
        setattr(channel, name, _surround(getattr(channel, name), plan, points))


def _surround(
    call: Callable[..., Awaitable[Any]], plan: CrashPlan, points: tuple[CrashPoint, ...]
) -> Callable[..., Awaitable[Any]]:
    before, after = points

    async def call_watched(*given: Any) -> Any:
        plan.reach(before)
        answer = await call(*given)
        plan.reach(after)
        return answer

    return call_watched


class _WatchedApp:
    def __init__(self, app: ASGIApp, plan: CrashPlan) -> None:
        self._app = app
        self._plan = plan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_watched(message: Message) -> None:
            self._plan.reach("before_send")
            await send(message)
            self._plan.reach("after_send")

        await self._app(scope, receive, send_watched if scope["type"] == "http" else send)
