"""A host with a message channel in a process of its own, made to be killed; `FD_DESK` holds its settings as JSON.

Served by `main`, it says its port on its output when it is ready. `/arm?point=passes`
makes the process end itself, `/deliver` says things to people, `/deliveries` tells how far they are. A worker of the
same host is started by `work`. The agent repeats what it hears, and writes it down;
asked to hold, it waits for a file; asked to exit, it ends its process.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from agent_framework import AgentResponseUpdate
from starlette.types import ASGIApp, Receive, Scope, Send

from frontdesk import (
    AgentFrameworkHost,
    ChannelCommand,
    ChannelCommandContext,
    ChannelIdentity,
    ChannelRequest,
    OneTimeCodeIdentityLinker,
    Reply,
    RetryPolicy,
)
from frontdesk.cli import main as command
from frontdesk.clock import SystemClock
from frontdesk.concurrency import timeouts
from frontdesk.delivery import destination_drain
from frontdesk.delivery.destination_drain import DestinationDrain
from frontdesk.inbox import awaited, quarantine
from frontdesk.inbox.batching import MessageBatcher
from frontdesk.inbox.claimed import ClaimedEvents
from frontdesk.interfaces.chat import LiveTerms, PushTerms
from frontdesk.models.delivery import InboxItem
from frontdesk.runners.procrastinate import ProcrastinateTaskRunner
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns
from frontdesk_testing import CrashPlan, EchoAgent, crashing
from frontdesk_testing.internals import get_components
from frontdesk_testing.messages import LookupMessageChannel, MessageChannel
from tests.databases import short_lease
from tests.faults.inbox.asking import build_workflow
from tests.faults.inbox.newer import become_newer
from tests.faults.inbox.telling import build_agent
from tests.faults.paying_host import parse_target
from tests.faults.sweeping import stop_sweep
from tests.scenarios.desk import until

DOUBTS = ("interrupted", "timeout", "push_unknown", "unexpected")
SECRET = "a secret of sixteen characters or more"
TERMS = PushTerms(
    at_once=50,
    timeout=2.0,
    retry=RetryPolicy(attempts=1000, first_delay=0.02, longest_delay=0.2),
    failures=1000,
)


class Teller(EchoAgent):
    """Says its first word at once, and the rest when it has heard all: as a whole, or with a pause before each word."""

    def __init__(self, repeat: Callable[[str], Awaitable[str]], pause: float) -> None:
        super().__init__()
        self._repeat = repeat
        self._pause = pause

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        async for update in super().speak(["heard "]):
            yield update
        answer = await self._repeat("".join(words))
        async for update in super().speak(words if self._pause else [answer.removeprefix("heard ")]):
            await asyncio.sleep(self._pause)
            yield update


def make() -> AgentFrameworkHost:
    """The host."""
    given = json.loads(os.environ["FD_DESK"])
    if given.get("newer"):
        become_newer()
    timeouts.LEFT_ALONE_SECONDS = given.get("left_alone", timeouts.LEFT_ALONE_SECONDS)
    # So many processes die here that nobody has the time to wait for each of them.
    destination_drain._MARGIN_SECONDS = 0.5
    awaited.HOLD_SECONDS = 0.5
    # Tests whose events end their processes do not depend on the time that this takes.
    quarantine.MAX_FIRST_SECONDS = quarantine.MAX_HELD_SECONDS = given.get("quarantine_seconds", 3600.0)
    ledger = Path(given["ledger"])
    if "stops" in given:
        _stop_once(given["stops"], ledger)
    if "claims_wait_for" in given:
        _hold_claims(given["claims_wait_for"], ledger.with_name("stored"))

    async def repeat(text: str) -> str:
        word, _, rest = text.partition(" ")
        place = os.open(ledger, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(place, f"{text}\n".encode())
        os.close(place)
        if word == "hold":
            await until(ledger.with_name(f"{rest}.go").exists, within=60)
        if word == "die" and not ledger.with_name(f"{rest}.dead").exists():
            os.kill(os.getpid(), 9)
        if word == "exit":
            os._exit(3)
        return f"heard {text}"

    kind = LookupMessageChannel if given.get("lookup") else MessageChannel
    channel = kind(
        platform_url=given["platform"],
        token=given["token"],
        secret=SECRET,
        intake=given.get("intake", "polling"),
        poll_seconds=1.0,
        call_timeout=2.0,
        idempotent=given.get("idempotent", True),
        text_limit=given.get("text_limit", 4096),
        gather_seconds=given.get("gather", 0.0),
        album_seconds=given.get("album", 1.0),
        reply_seconds=given.get("reply_seconds", 5.0),
        live="auto" if given.get("live") else "off",
        run_hook=_to_background if "on_interrupt" in given else None,
        live_terms=LiveTerms(interval=0.01, timeout=2.0),
    )
    channel.push_terms = TERMS
    channel.commands = (ChannelCommand("say", "Say each word", _say_words),)
    where: dict[str, Any] = {"state_dir": given["place"]}
    if given["kind"] == "postgres":
        store = short_lease(given["place"], given.get("lease", 2.0))
        where = {"store": store, "runner": ProcrastinateTaskRunner(store)}
    target = (
        partial(build_workflow, ledger)
        if given.get("asks")
        else Teller(repeat, given.get("pause", 0.0))
        if given.get("live")
        else repeat
    )
    if given.get("links"):
        where["linker"] = OneTimeCodeIdentityLinker()
    if given.get("pays"):
        target = parse_target("agent", ledger.parent, "never")
    if "on_interrupt" in given:
        target, where["on_interrupt"] = build_agent(repeat, given.get("pause", 0.0)), given["on_interrupt"]
    return AgentFrameworkHost(target, channels=[channel], shutdown_grace_seconds=1.0, **where)


def _to_background(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
    return request.replace(background=request.input != "after")


def _hold_claims(count: int, seen: Path) -> None:
    """Claim nothing before so many events were stored once, however long that takes on a busy machine."""
    plain = MessageBatcher.claim

    async def claim(gathering: Any, *given: Any, **more: Any) -> Any:
        if not os.path.exists(seen):  # noqa: ASYNC240
            if len(await gathering._store.inbox.waiting("nobody")) < count:
                return SystemClock().now() + 0.05
            open(seen, "w").close()  # noqa: ASYNC230
        return await plain(gathering, *given, **more)

    setattr(MessageBatcher, "claim", claim)  # noqa: B010


def _stop_once(where: str, ledger: Path) -> None:
    """Stand still, in the first process, right after an event or a delivery was claimed, or when a session is free.

    What renews leases there does not notice it first.
    """
    if ledger.with_name("stopped").exists():
        return
    setattr(ClaimedEvents, "start", lambda held: setattr(held, "stopping", False))  # noqa: B010
    kind, name = {
        "claim": (MessageBatcher, "claim"),
        "session": (Turns, "open"),
        "delivery": (DestinationDrain, "_commit"),
    }[where]
    plain = getattr(kind, name)

    async def stop(*given: Any, **more: Any) -> Any:
        found = await plain(*given, **more)
        if isinstance(found, InboxItem | Turn) or more.get("hold"):
            setattr(kind, name, plain)
            ledger.with_name("stopped").touch()
            os.kill(os.getpid(), signal.SIGSTOP)
        return found

    setattr(kind, name, stop)


async def _say_words(call: ChannelCommandContext) -> None:
    for word in str(call.request.input).split():
        await call.reply(Reply(word, to="direct"))


def _die_at_decision(host: AgentFrameworkHost, point: str) -> None:
    """Have the process end itself right before or after the commit of the next decision, whatever else is written."""
    decisions: Any = get_components(host).decisions
    plain = decisions.note_answers

    def die_before(transaction: Any) -> None:
        os.kill(os.getpid(), 9)

    async def die_after() -> None:
        os.kill(os.getpid(), 9)

    async def note(*given: Any) -> Any:
        add, finish = await plain(*given)
        return (die_before, finish) if point == "before_decision" else (add, die_after)

    decisions.note_answers = note


class InboxServer:
    """The app, and what a test does to it."""

    def __init__(self, host: AgentFrameworkHost) -> None:
        self._host = host
        self._app: ASGIApp = host.app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in ("/arm", "/deliver", "/deliveries"):
            await self._app(scope, receive, send)
            return
        answer = b""
        if scope["path"] == "/deliveries":
            answer = await self._deliveries()
        elif scope["path"] == "/arm":
            point, passes = scope["query_string"].decode().split("=")
            if point.endswith("_decision"):
                _die_at_decision(self._host, point)
            else:
                self._app = crashing(self._host, CrashPlan(point, int(passes)))  # pyright: ignore[reportArgumentType]
        else:
            body, more = b"", True
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
            for one in json.loads(body):
                who = ChannelIdentity(channel="messages", native_id=one["to"])
                await self._host.deliver(who, one["text"], idempotency_key=one["key"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    async def _deliveries(self) -> bytes:
        """How far each delivery is, by its idempotency key, and how often nobody knew whether it had arrived."""
        found: dict[str, tuple[str, int]] = {}
        last: str | None = None
        while page := await self._host.deliveries.list(before=last, limit=1000):
            for one in page:
                doubts = sum(entry.code in DOUBTS for entry in one.history)
                found[one.idempotency_key] = (one.status if one.ended_at else "open", doubts)
            last = page[-1].delivery_id
            if len(page) < 1000:
                break
        return json.dumps(found).encode()


def main() -> None:
    """Serves until it is killed."""
    listener = socket.create_server(("127.0.0.1", 0))
    host = make()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            await stop_sweep(host)
            print(listener.getsockname()[1], flush=True)

    config = uvicorn.Config(
        InboxServer(host), log_level="critical", timeout_keep_alive=300, timeout_graceful_shutdown=2
    )
    Server(config).run(sockets=[listener])


def work() -> None:
    """Work as `frontdesk worker` does, until it is killed."""
    sys.exit(command(["worker", "tests.faults.inbox.server:make", "--log-level", "error"]))
