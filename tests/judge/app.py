"""The host under judgement, for `frontdesk serve` and `frontdesk worker`: `JUDGE` holds its settings as JSON."""

import inspect
import json
import os
import time
from pathlib import Path
from typing import Any

from frontdesk import AgentFrameworkHost, ApiKeyAuth, OneTimeCodeIdentityLinker, RetryPolicy
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.interfaces.chat import LiveTerms, PushTerms
from frontdesk.models.operations import Expiry
from frontdesk.runners.base import InProcessTaskRunner
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.messages import MessageChannel
from tests.judge.listener import agent

PAGE = "/page"
"""Where the page is."""
PRINCIPALS = 8
LIVE_TIMEOUT = 2.0
"""For how many seconds a call may last that shows more of an answer."""
_SECRET = "a secret of the judge's own platform"
_SEND_LIMITS = ("send_seconds", "send_timeout", "write_timeout")
"""The names under which a channel may bound how long a reader takes; those that it does not know are left out."""


class FileClock:
    """Tell the machine's time, moved by as many seconds as a file says."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def now(self) -> float:
        """Seconds since the epoch."""
        try:
            return time.time() + float(self._path.read_text() or "0")
        except FileNotFoundError:
            return time.time()

    def steady(self) -> float:
        """Seconds that pass whatever the file says."""
        return time.monotonic()


def get_key(principal: int) -> str:
    """The API key of one of the judge's callers."""
    return f"key-number-{principal:04}-of-the-judge"


def make() -> AgentFrameworkHost:
    """Build the host."""
    given = json.loads(os.environ["JUDGE"])
    directory = Path(given["directory"])
    clock = FileClock(directory / "clock")
    auth = ApiKeyAuth({f"p{number}": get_key(number) for number in range(PRINCIPALS)})
    limits = _select_known(InvocationsChannel, dict.fromkeys(_SEND_LIMITS, given.get("send_seconds", 3.0)))
    channels: list[Any] = [
        InvocationsChannel(auth=auth, **limits),
        ResponsesChannel(auth=auth),
        ConversationsChannel(auth=auth),
    ]
    channels += [_chat(**chat) for chat in given.get("chats", ())]
    channels += [WebChatChannel(path=PAGE)] if given.get("web") else []
    expiry = Expiry(**given.get("expiry", {}))
    return AgentFrameworkHost(
        agent(directory),
        channels=channels,
        linker=OneTimeCodeIdentityLinker(max_attempts_per_identity=1_000, max_attempts_per_code=1_000),
        clock=clock,
        session_wait_seconds=given.get("session_wait", 10.0),
        cancel_grace_seconds=1.0,
        shutdown_grace_seconds=2.0,
        max_background_runs=given.get("max_background_runs", 100),
        max_background_runs_per_caller=100,
        **_state(given, expiry, clock),
    )


def _state(given: dict[str, Any], expiry: Expiry, clock: FileClock) -> dict[str, Any]:
    if given["kind"] == "sqlite":
        return {"store": SqliteStateStore(given["place"], expiry=expiry, clock=clock)}
    from frontdesk.runners.procrastinate import ProcrastinateTaskRunner
    from frontdesk.stores.sql.postgres.engine import PostgresStateStore

    store = PostgresStateStore(
        given["place"],
        expiry=expiry,
        clock=clock,
        lease_seconds=given.get("lease", 3.0),
        statement_timeout=given.get("statement_timeout", 1.0),
        connect_timeout=given.get("connect_timeout", 1.0),
    )
    kind = ProcrastinateTaskRunner if given.get("runner") == "procrastinate" else InProcessTaskRunner
    return {"store": store, "runner": kind(store, clock=clock)}


def _chat(
    name: str, url: str, token: str, *, idempotent: bool = True, longest_delay: float = 0.2, live: bool = False
) -> MessageChannel:
    channel = MessageChannel(
        name=name,
        path=f"/{name}",
        platform_url=url,
        token=token,
        secret=_SECRET,
        intake="polling",
        poll_seconds=1.0,
        call_timeout=2.0,
        idempotent=idempotent,
        live="always" if live else "off",
    )
    channel.live_terms = LiveTerms(interval=0.1, timeout=LIVE_TIMEOUT)
    retry = RetryPolicy(attempts=1_000_000, first_delay=0.02, longest_delay=longest_delay)
    channel.push_terms = PushTerms(at_once=50, timeout=2.0, retry=retry, failures=1_000_000)
    return channel


def _select_known(kind: type, settings: dict[str, Any]) -> dict[str, Any]:
    names = inspect.signature(kind).parameters
    return {name: value for name, value in settings.items() if name in names}
