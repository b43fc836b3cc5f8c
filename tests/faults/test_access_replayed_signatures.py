"""A signature counted twice: after a restart, on another replica, and with another id in a header."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, AnyAuth, ApiKeyAuth, HmacAuth, InMemoryStateStore
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import EchoAgent, FakeClock, HostClient, serving

SECRET = "a secret that both sides know"
BODY = b'{"message": "hello"}'
PATH = "/invocations"
ROOT = Path(__file__).parents[2] / "src/frontdesk"
READERS = ("asgi", "auth", "channels", "chat", "foundry", "framework", "http", "openai", "outbound")


def host_of(auth: Any, agent: EchoAgent, store: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=auth)], store=store)


async def send(client: HostClient, headers: dict[str, str]) -> tuple[int, str | None]:
    answer = await client.http.post(PATH, content=BODY, headers={"content-type": "application/json", **headers})
    return answer.status_code, (answer.json()["error"] or {}).get("code")


@pytest.fixture(params=["sqlite", "postgres"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[FakeClock], Any]:
    """Opens the same database again and again."""
    if request.param == "sqlite":
        return lambda clock: SqliteStateStore(tmp_path / "frontdesk.db", clock=clock)
    conninfo = request.getfixturevalue("postgres")
    return lambda clock: PostgresStateStore(conninfo, clock=clock)


async def test_a_signature_of_a_clock_that_is_ahead_counted_again_after_a_restart(
    durable: Callable[[FakeClock], Any],
) -> None:
    clock, agent = FakeClock(), EchoAgent()
    headers: dict[str, str] = {}
    for start in range(3):
        auth = HmacAuth({"alice": SECRET}, clock=clock)
        async with serving(host_of(auth, agent, durable(clock))) as client:
            if not start:
                headers = auth.sign("alice", "POST", PATH, BODY, timestamp=int(clock.now()) + 4)
                assert await send(client, headers) == (200, None)
            assert await send(client, headers) == (401, "signature_replayed")
            # What was never used is good at once: nothing has to be refused for the sake of the restart.
            assert (await send(client, auth.sign("alice", "POST", PATH, BODY)))[0] == 200
        clock.advance(2)
    assert len(agent.seen) == 4


async def test_where_nothing_survives_a_restart_forgot_what_a_clock_that_is_ahead_had_signed() -> None:
    clock, agent = FakeClock(), EchoAgent()
    first = HmacAuth({"alice": SECRET}, clock=clock)
    async with serving(host_of(first, agent, InMemoryStateStore())) as client:
        clock.advance(100)
        headers = first.sign("alice", "POST", PATH, BODY, timestamp=int(clock.now()) + 4)
        assert await send(client, headers) == (200, None)
    again = HmacAuth({"alice": SECRET}, clock=clock)
    async with serving(host_of(again, agent, InMemoryStateStore())) as client:
        for seconds in (0, 2, 4, 100):
            clock.advance(seconds)
            assert (await send(client, headers))[0] in (401, 503)
        assert (await send(client, again.sign("alice", "POST", PATH, BODY)))[0] == 200
    assert len(agent.seen) == 2


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with others"])
async def test_another_replica_took_a_signature_once_more(postgres: str, alone: bool) -> None:
    agent, clock = EchoAgent(), FakeClock()

    def replica() -> tuple[HmacAuth, AgentFrameworkHost]:
        auth = HmacAuth({"alice": SECRET}, clock=clock)
        offered = auth if alone else AnyAuth([ApiKeyAuth({"bob": "a-key-of-bob's-own"}), auth])
        return auth, host_of(offered, agent, PostgresStateStore(postgres, clock=clock))

    auth, one = replica()
    _, two = replica()
    async with serving(one) as here, serving(two) as there:
        headers = auth.sign("alice", "POST", PATH, BODY)
        assert await send(here, headers) == (200, None)
        assert await send(there, headers) == (401, "signature_replayed")
        # The id is chosen by a header, which was not signed.
        assert await send(there, {**headers, "x-agent-invocation-id": "mine"}) == (401, "unauthenticated")
    assert len(agent.seen) == 1


async def test_an_id_was_put_on_a_signed_request() -> None:
    clock, agent = FakeClock(), EchoAgent()
    auth = HmacAuth({"alice": SECRET}, clock=clock)
    async with serving(host_of(auth, agent, InMemoryStateStore())) as client:
        clock.advance(100)
        stolen = auth.sign("alice", "POST", PATH, BODY)
        assert (await send(client, {**stolen, "x-agent-invocation-id": "theirs"}))[0] == 401
        chosen = {"x-agent-invocation-id": "mine"}
        headers = auth.sign("alice", "POST", PATH, BODY, headers=chosen)
        for other in ({}, {"x-agent-invocation-id": "other"}):
            assert (await send(client, {**headers, **other}))[0] == 401
        assert await send(client, {**headers, **chosen}) == (200, None)
        # One that was refused has not counted.
        assert await send(client, stolen) == (200, None)
    assert len(agent.seen) == 2


HARMLESS = {
    "accept": "says how an answer is shown",
    "accept-encoding": "says how a file is packed",
    "accept-language": "says in which language the page is shown",
    "access-control-request-headers": "asked before a request, when nothing runs",
    "access-control-request-method": "asked before a request, when nothing runs",
    "api-key": "credentials of another kind",
    "authorization": "credentials of another kind",
    "connection": "about the connection",
    "content-encoding": "can only have a request refused",
    "content-length": "the body is signed",
    "content-type": "what is not JSON is refused",
    "last-event-id": "where the feed of a visitor goes on; visitors don't sign",
    "mcp-method": "compared with the body, which is signed",
    "mcp-name": "compared with the body, which is signed",
    "if-modified-since": "says which agent card the client has",
    "if-none-match": "says which agent card the client has",
    "host": "a signature is bound to a secret, which hosts don't share",
    "origin": "can only have a request refused",
    "sec-fetch-site": "can only have a request refused",
    "traceparent": "names a trace, and counts from a trusted platform alone",
    "transfer-encoding": "the body is signed, however it comes",
    "x-api-key": "credentials of another kind",
    "x-request-id": "is sent back, and means nothing",
    "x-telegram-bot-api-secret-token": "credentials of another kind",
}


def test_a_header_that_chooses_what_runs_was_not_signed() -> None:
    """Every name in bytes that the kit or a channel looks up among the headers is signed, or has a reason."""
    read: set[str] = set()
    for path in sorted(path for part in READERS for path in (ROOT / part).rglob("*.py")):
        source = path.read_text("utf-8")
        # A constant that is looked up later counts like a name that is looked up here.
        names = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
        if path.name != "local_callers.py" and "headers.get" in source:
            texts = [name.decode("latin-1") for name in names if isinstance(name, bytes)]
            read |= {text for text in texts if re.fullmatch(r"[a-z]+(-[a-z0-9]+)+|origin|host|authorization", text)}
    assert {"x-agent-invocation-id", "x-request-id", "origin"} <= read
    answers = {"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"}
    answers |= {"retry-after", "www-authenticate", "x-should-retry", "set-cookie", "cache-control"}
    answers |= {"content-language", "last-modified", "access-control-expose-headers", "access-control-max-age"}
    answers |= {f"access-control-allow-{what}" for what in ("credentials", "headers", "methods", "origin")}
    answers |= {"content-security-policy", "permissions-policy", "referrer-policy", "x-content-type-options"}
    answers |= {"cross-origin-opener-policy", "cross-origin-resource-policy", "x-frame-options"}
    # Values, and no names.
    answers |= {"cross-origin", "no-referrer", "no-store", "same-origin"}
    unsigned = {name for name in read if not name.startswith("x-agent-")} - answers
    assert unsigned <= HARMLESS.keys(), "sign it, or say why it need not be"
