"""The HTTP API of operators, on its socket: who can open it, what is replaced, and what is refused."""

import asyncio
import os
import shlex
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from frontdesk import OperatorClient, OperatorError
from frontdesk.admin import http_api
from frontdesk.admin.actions import AdminParts
from frontdesk.admin.http_api import AdminSocket
from frontdesk.admin.service import AdminService
from frontdesk.admin.socket_file import MAX_BODY_BYTES, MAX_PATH_BYTES
from frontdesk.clock import SystemClock
from frontdesk.errors import AdminSocketError
from frontdesk.ids import RandomIds
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.store_ledger import fill
from tests.admin.asking import call
from tests.docs.pages import commands


def make(path: Path, store: InMemoryStateStore | None = None) -> AdminSocket:
    parts = AdminParts.of_store(store or InMemoryStateStore(), SystemClock(), RandomIds())
    return AdminSocket(path, AdminService(parts))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[AdminSocket]:
    """A socket with some rows behind it."""
    store = InMemoryStateStore()
    await fill(store, 3)
    answering = make(tmp_path / "desk.sock", store)
    await answering.start()
    yield answering
    await answering.stop()


def client_of(answering: AdminSocket) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(answering.path))
    return httpx.AsyncClient(transport=transport, base_url="http://frontdesk", timeout=60)


async def answers(client: httpx.AsyncClient, path: str) -> Any:
    return (await client.get(path)).raise_for_status().json()


async def raw(path: Path, *pieces: bytes, end: bool = False) -> bytes:
    """All that a connection is answered until the host closes it."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.writelines(pieces)
    if end:
        writer.write_eof()
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    return answer


async def test_requests_are_answered_one_after_the_other(served: AdminSocket) -> None:
    async with client_of(served) as client:
        page = await answers(client, "/deliveries?limit=2")
        assert [row["delivery_id"] for row in page["items"]] == ["dlv_2", "dlv_1"]
        assert (await answers(client, "/runs/run_1"))["status"] == "failed"
        assert await answers(client, "/deliveries/counts") == {"dead": 1, "pending": 2}
        assert await answers(client, "/state") == {"path": None}
        rest = await answers(client, f"/deliveries?after={page['next']}")
        assert [row["delivery_id"] for row in rest["items"]] == ["dlv_0"]
        failed = await answers(client, "/runs?status=failed")
        assert {row["status"] for row in failed["items"]} == {"failed"}
        assert await answers(client, "/principals?by=ann") == {"items": [], "next": None, "channels": {}}


async def test_the_curl_lines_of_the_documents_are_answered(served: AdminSocket) -> None:
    lines = {command for _, command in commands("curl") if "--unix-socket" in command}
    assert lines
    async with client_of(served) as client:
        for line in lines:
            (url,) = [word for word in shlex.split(line) if "://" in word]
            assert (await answers(client, url))["items"]


async def test_an_action_is_done(served: AdminSocket) -> None:
    async with client_of(served) as client:
        shown = await answers(client, "/approvals/apr_1")
        done = await client.post("/approvals/apr_1/cancel", json={"seen": shown["seen"], "by": "ann"})
        again = await client.post("/approvals/apr_1/cancel", json={"seen": "old", "by": "ann"})
        lines = (await answers(client, "/audit?by=operator:ann"))["items"]
    assert done.json()["status"] == "cancelled"
    assert (again.status_code, again.json()["error"]["code"]) == (409, "changed")
    assert [(line["action"], line["subject"]) for line in lines] == [("cancelled", "apr_1")]


async def test_only_its_user_can_open_it(served: AdminSocket) -> None:
    assert stat.S_IMODE(served.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/", b"", 404, "invalid_request"),
        ("GET", "/tables", b"", 400, "invalid_request"),
        ("DELETE", "/runs/run_1", b"", 405, "invalid_request"),
        ("GET", "/runs?limit=x", b"", 400, "invalid_request"),
        ("GET", "/runs?limit=-1", b"", 400, "invalid_request"),
        ("GET", "/runs?limit=201", b"", 400, "invalid_request"),
        ("GET", "/runs?colour=red", b"", 400, "invalid_request"),
        ("GET", "/runs?after=x", b"", 400, "invalid_request"),
        ("GET", "/runs/none", b"", 404, "not_found"),
        ("GET", "/principals", b"", 400, "invalid_request"),
        ("POST", "/runs/run_1/cancel", b'{"by": "ann"}', 400, "invalid_request"),
        ("POST", "/runs/run_1/cancel", b'{"by": 1, "seen": ""}', 400, "invalid_request"),
        ("POST", "/runs/run_1/cancel", b"", 400, "invalid_json"),
        ("POST", "/runs/run_1/cancel", b"[]", 400, "invalid_request"),
        ("POST", "/runs/run_1/cancel", b"\xff", 400, "invalid_json"),
        ("POST", "/runs/run_1/cancel", b"[" * 5000, 400, "invalid_request"),
        ("POST", "/runs/run_1/cancel", b'{"by": ' + b"[" * 5000, 400, "invalid_json"),
        ("POST", "/messages", b'{"by": "a", "text": "x", "to": []}', 404, "no_host"),
        ("POST", "/messages", b"x" * (MAX_BODY_BYTES + 1), 413, "body_too_large"),
        ("GET", "/" + "x" * 9000, b"", 414, "invalid_request"),
    ],
)
async def test_a_wrong_request_is_refused_and_the_next_is_answered(
    served: AdminSocket, method: str, path: str, body: bytes, status: int, code: str
) -> None:
    async with client_of(served) as client:
        refused = await client.request(method, path, content=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
        assert refused.json()["error"]["message"]
        assert await answers(client, "/state") == {"path": None}


async def test_a_request_that_is_cut_off_is_not_acted_on(served: AdminSocket) -> None:
    shown = await call(served.path, "show", kind="approvals", name={"id": "apr_1"})
    body = msgspec.json.encode({"seen": shown["seen"], "by": "ann"})
    head = b"POST /approvals/apr_1/cancel HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body)
    assert await raw(served.path, head, body[:-1], end=True) == b""
    assert await call(served.path, "show", kind="approvals", name={"id": "apr_1"}) == shown


async def test_a_body_that_never_ends_is_refused(served: AdminSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "BODY_SECONDS", 0.01)
    reader, writer = await asyncio.open_unix_connection(served.path)
    writer.write(b"POST /runs HTTP/1.1\r\ncontent-length: 9\r\n\r\n{")
    async with asyncio.timeout(60):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
    writer.close()


@asynccontextmanager
async def another(path: Path) -> AsyncIterator[AdminSocket]:
    answering = make(path)
    await answering.start()
    yield answering
    await answering.stop()


async def test_there_is_a_limit_of_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "MAX_CONNECTIONS", 1)
    async with another(tmp_path / "desk.sock") as answering, client_of(answering) as client:
        await answers(client, "/state")
        with pytest.raises(OperatorError) as refused:
            await call(answering.path, "counts")
        assert refused.value.code == "too_many_requests"


async def test_an_idle_client_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "IDLE_SECONDS", 0.01)
    async with another(tmp_path / "desk.sock") as answering:
        assert await raw(answering.path) == b""
        answer = await raw(answering.path, b"GET /state HTTP/1.1\r\n\r\n")
        assert answer.endswith(b'{"path":null}')


async def test_its_end_ends_its_connections_and_removes_it(served: AdminSocket) -> None:
    reader, writer = await asyncio.open_unix_connection(served.path)
    writer.write(b"GET /state HTTP/1.1\r\n\r\n")
    await reader.readuntil(b'{"path":null}')
    await served.stop()
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()
    assert not served.path.exists()


async def test_a_request_that_has_begun_is_answered_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    class Slow(AdminService):
        async def call(self, name: str, given: Any) -> Any:
            begun.set()
            await may_end.wait()
            return await super().call(name, given)

    parts = AdminParts.of_store(InMemoryStateStore(), SystemClock(), RandomIds())
    answering = AdminSocket(tmp_path / "desk.sock", Slow(parts))
    await answering.start()
    async with client_of(answering) as client, asyncio.timeout(60):
        asked = asyncio.ensure_future(client.get("/state"))
        await begun.wait()
        stopping = asyncio.ensure_future(answering.stop())
        await asyncio.sleep(0)
        may_end.set()
        assert (await asked).json() == {"path": None}
        await stopping
        # The next one has no end, and is cancelled when the time is over.
        begun.clear()
        may_end.clear()
        monkeypatch.setattr(http_api, "_STOP_SECONDS", 0.01)
        await answering.start()
        asked = asyncio.ensure_future(client.get("/state"))
        await begun.wait()
        await answering.stop()
        assert (await asked).status_code == 500


def ids() -> list[str]:
    return ["..", ".", "a/b", "a/revoke", "a b?c#d%2F", "é\n", "29:1x-/y"]


@pytest.mark.parametrize("name", ids())
async def test_any_id_can_be_named(name: str, tmp_path: Path) -> None:
    seen: list[tuple[str, Any]] = []

    class Noting(AdminService):
        async def call(self, name: str, given: Any) -> Any:
            seen.append((name, given))
            return {}

    parts = AdminParts.of_store(InMemoryStateStore(), SystemClock(), RandomIds())
    answering = AdminSocket(tmp_path / "desk.sock", Noting(parts))
    await answering.start()
    named = {"id": name, "channel": "chat & co", "person": name}
    await call(answering.path, "show", kind="links", name=named, content=True, by="ann")
    await call(answering.path, "act", kind="links", action="revoke", name=named, seen="1", by="ann", reason=None)
    await answering.stop()
    (_, shown), (_, acted) = [each for each in seen if each[0] != "state"]
    assert shown == {"kind": "links", "name": named, "id": name, "content": True, "export": False, "by": "ann"}
    assert {key: acted[key] for key in ("kind", "action", "name", "seen", "by", "reason")} == {
        "kind": "links",
        "action": "revoke",
        "name": named,
        "seen": "1",
        "by": "ann",
        "reason": None,
    }


async def test_a_command_of_an_earlier_version_is_told_and_does_not_wait(served: AdminSocket) -> None:
    answer = await raw(served.path, b'{"call": "counts", "given": {}}\n')
    assert answer.endswith(b"\n")
    assert answer.count(b"\n") == 1
    assert msgspec.json.decode(answer)["error"]["code"] == "http_required"


async def test_a_host_of_an_earlier_version_is_told_and_not_waited_for(tmp_path: Path) -> None:
    async def answer_lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(b'{"error":{"code":"invalid_request","message":"The request can\'t be understood."}}\n')
            await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(answer_lines, tmp_path / "desk.sock"):
        with pytest.raises(OperatorError, match="has an earlier version without HTTP"):
            async with asyncio.timeout(60):
                await asyncio.to_thread(OperatorClient, tmp_path / "desk.sock", timeout=50)


async def test_what_a_dead_process_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "desk.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    answering = make(path)
    await answering.start()
    assert await call(path, "counts") == {}
    await answering.stop()


async def test_what_another_uses_is_left_alone(served: AdminSocket, tmp_path: Path) -> None:
    with pytest.raises(AdminSocketError, match="another process listens on it"):
        await make(served.path).start()
    assert await call(served.path, "counts") == {"dead": 1, "pending": 2}
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(AdminSocketError, match="not a socket"):
        await make(file).start()
    assert file.read_text() == "mine"
    with pytest.raises(AdminSocketError, match="No such file"):
        await make(tmp_path / "nowhere" / "desk.sock").start()


async def test_one_that_was_replaced_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "desk.sock"
    first = make(path)
    await first.start()
    os.rename(path, tmp_path / "moved.sock")
    second = make(path)
    await second.start()
    await first.stop()
    assert path.exists()
    await second.stop()
    assert not path.exists()


async def test_a_path_that_is_too_long_is_told_with_its_length(tmp_path: Path) -> None:
    path = tmp_path / ("x" * MAX_PATH_BYTES)
    with pytest.raises(AdminSocketError, match=rf"has {len(str(path))} bytes, and a socket can have {MAX_PATH_BYTES}"):
        await make(path).start()
