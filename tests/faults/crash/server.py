"""A host in a process of its own, made to be killed.

It says its port on its output when it is ready. Its agent repeats what it hears; asked to recall, it tells what it was
sent of the conversation; asked to pay, it wants to be allowed first, and writes each payment down; asked to hold, it
waits for a file. `POST /arm` makes the process end itself at a point of `frontdesk_testing.CRASH_POINTS`.
"""

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
from agent_framework import Agent, Content, Message, tool
from starlette.types import ASGIApp, Receive, Scope, Send

from frontdesk import AgentFrameworkHost
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import CrashPlan, crashing
from tests.databases import short_lease
from tests.faults.sweeping import stop_sweep
from tests.scenarios.desk import until

RECALL = "recall"
TOLD = "I was told: "


def reply(messages: Sequence[Message]) -> Any:
    """What the agent says."""
    last = messages[-1]
    if last.role == "tool":
        return f"done {last.contents[-1].result}"
    word, _, rest = last.text.partition(" ")
    if word in ("pay", "hold"):
        arguments = json.dumps({"item": rest})
        return [Content.from_function_call(f"call-{rest}", word, arguments=arguments)]
    if word == RECALL:
        texts = [(one.role, one.text) for one in messages if one.text and one.text != RECALL]
        return TOLD + json.dumps([one for one in texts if not one[1].startswith(TOLD)])
    return f"heard {last.text}"


def concierge(ledger: Path) -> Agent:
    """The agent, and its two tools."""

    @tool(approval_mode="always_require")
    def pay(item: str) -> str:
        """Pays for something."""
        place = os.open(ledger, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(place, f"{item}\n".encode())
        os.fsync(place)
        os.close(place)
        return item

    @tool(approval_mode="never_require")
    async def hold(item: str) -> str:
        """Says that it has begun, and waits to be let go."""
        ledger.with_name(f"{item}.begun").touch()
        await until(ledger.with_name(f"{item}.go").exists, within=60)
        return item

    return Agent(client=ScriptedChatClient(reply), name="Concierge", tools=[pay, hold])


class Armed:
    """The app, until it is told how to end."""

    def __init__(self, host: AgentFrameworkHost) -> None:
        self._host = host
        self._app: ASGIApp = host.app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/arm":
            await self._app(scope, receive, send)
            return
        point, passes = scope["query_string"].decode().split("=")
        self._app = crashing(self._host, CrashPlan(point, int(passes)))  # pyright: ignore[reportArgumentType]
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


def main(kind: str, place: str, ledger: str, lease: str, wait: str) -> None:
    """Serves until it is killed."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    async def ready() -> None:
        await stop_sweep(host)
        print(port, flush=True)

    where: dict[str, Any] = {
        "memory": lambda: {},
        "sqlite": lambda: {"state_dir": place},
        "postgres": lambda: {"store": short_lease(place, float(lease))},
    }[kind]()
    host = AgentFrameworkHost(
        concierge(Path(ledger)),
        channels=[InvocationsChannel(), ResponsesChannel(), ConversationsChannel()],
        session_wait_seconds=float(wait),
        on_startup=[ready],
        **where,
    )
    config = uvicorn.Config(Armed(host), log_level="critical", timeout_keep_alive=300)
    uvicorn.Server(config).run(sockets=[listener])
