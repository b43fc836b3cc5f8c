"""A function that blocks the event loop is logged with its name, and with the tool that it is."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.concurrency.loop_lag import MAX_LAG_SECONDS, LoopLag, locate
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import serving
from tests.scenarios.desk import until


def _list_blocked(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "event loop blocked" in record.message]


async def _wait_for_log(caplog: pytest.LogCaptureFixture) -> str:
    await until(lambda: bool(_list_blocked(caplog)), within=60)
    return _list_blocked(caplog)[0]


def _block(host: AgentFrameworkHost) -> None:
    """Block the loop, until it was seen often enough and for long enough."""
    begun = time.monotonic()
    while host._lag._seen.total() < 3 or time.monotonic() - begun < MAX_LAG_SECONDS + 1:
        threading.Event().wait(0.05)


async def test_a_tool_that_blocked_every_caller_was_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    @tool(approval_mode="never_require")
    async def look_up(place: str) -> str:
        """Look up."""
        _block(host)
        return "closed"

    call = Content.from_function_call("c1", "look_up", arguments='{"place": "bar"}')
    agent = Agent(ScriptedChatClient([[call], "It is closed."]), name="Desk", tools=[look_up])
    caplog.set_level(logging.WARNING, logger="frontdesk.runs")
    host = AgentFrameworkHost(agent, channels=[InvocationsChannel()])
    async with serving(host) as client:
        assert (await client.invoke("is the bar open?"))["status"] == "completed"
        message = await _wait_for_log(caplog)
    assert "tool=look_up" in message
    assert "_block (" in message.partition("function=")[2]
    assert "test_loop_lag.py" in message
    assert "asyncio.to_thread" in message
    assert "is the bar open?" not in message


async def test_a_function_target_that_blocks_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def concierge(text: str) -> str:
        _block(host)
        return text

    host = AgentFrameworkHost(concierge, channels=[InvocationsChannel()])
    async with serving(host) as client:
        await client.invoke("hello")
        message = await _wait_for_log(caplog)
        assert "tool=None" in message
        assert "_block (" in message


class _Steps:
    """A clock that goes when it is told."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at


def _beats(lag: LoopLag, clock: Any, places: list[Callable[[], Any]], seconds: float) -> None:
    for place in places:
        lag._seen[place()] += 1
    clock.at += seconds
    lag._beat()
    if lag._timer is not None:
        lag._timer.cancel()


def _here() -> Any:
    return locate(sys._getframe())


def _there() -> Any:
    return locate(sys._getframe())


@pytest.mark.parametrize(
    ("places", "seconds", "logged"),
    [
        ([_here, _here], 3.0, True),
        # Too short, seen once, and a process that gets no processor.
        ([_here, _here], 1.0, False),
        ([_here], 30.0, False),
        ([_here, _there], 30.0, False),
        ([], 30.0, False),
    ],
)
async def test_what_is_logged(
    places: list[Callable[[], Any]], seconds: float, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    clock: Any = _Steps()
    lag = LoopLag(clock=clock)
    _beats(lag, clock, places, seconds)
    assert bool(_list_blocked(caplog)) == logged
    # Once for each function: it would be said with every request.
    _beats(lag, clock, places, seconds)
    assert len(_list_blocked(caplog)) == int(logged)


async def test_the_loop_itself_is_no_code_of_the_user() -> None:
    place = locate(sys._getframe())
    assert place is not None
    assert "test_the_loop_itself" in place.function
    frame = sys._getframe()
    while frame.f_back is not None and not frame.f_code.co_filename.endswith("asyncio/events.py"):
        frame = frame.f_back
    assert locate(frame) is None
