"""The socket of operators: who can open it, what is replaced, and what is refused."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.admin import socket_server
from frontdesk.admin.actions import AdminParts
from frontdesk.admin.desk import AdminDesk
from frontdesk.admin.socket_server import LONGEST_PATH, LONGEST_REQUEST, AdminSocket
from frontdesk.clock import SystemClock
from frontdesk.errors import AdminSocketError
from frontdesk.ids import RandomIds
from frontdesk.stores.memory import InMemoryStateStore
from frontdesk.testing.store_ledger import fill
from tests.admin.asking import ask, exchange


def make(path: Path, store: InMemoryStateStore | None = None) -> AdminSocket:
    parts = AdminParts.of_store(store or InMemoryStateStore(), SystemClock(), RandomIds())
    return AdminSocket(path, AdminDesk(parts))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[AdminSocket]:
    """A socket with some rows behind it."""
    store = InMemoryStateStore()
    await fill(store, 3)
    answering = make(tmp_path / "desk.sock", store)
    await answering.start()
    yield answering
    await answering.stop()


async def test_requests_are_answered_one_after_the_other(served: AdminSocket) -> None:
    page, shown, counts, state = await exchange(
        served.path,
        ask("page", kind="deliveries", limit=2),
        ask("show", kind="runs", name={"id": "run_1"}),
        ask("counts"),
        ask("state"),
    )
    assert [row["delivery_id"] for row in page["answer"]["items"]] == ["dlv_2", "dlv_1"]
    assert shown["answer"]["status"] == "failed"
    assert counts["answer"] == {"dead": 1, "pending": 2}
    assert state["answer"] == {"path": None}
    (rest,) = await exchange(served.path, ask("page", kind="deliveries", after=page["answer"]["next"]))
    assert [row["delivery_id"] for row in rest["answer"]["items"]] == ["dlv_0"]


async def test_an_action_is_done(served: AdminSocket) -> None:
    (shown,) = await exchange(served.path, ask("show", kind="approvals", name={"id": "apr_1"}))
    asked = {"kind": "approvals", "action": "cancel", "name": {"id": "apr_1"}, "by": "ann"}
    done, again = await exchange(
        served.path, ask("act", **asked, seen=shown["answer"]["seen"]), ask("act", **asked, seen="old")
    )
    assert done["answer"]["status"] == "cancelled"
    assert again["error"]["code"] == "changed"


async def test_only_its_user_can_open_it(served: AdminSocket) -> None:
    assert stat.S_IMODE(served.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "request_line",
    [
        b"{}\n",
        b"GET / HTTP/1.1\n",
        b"\xff\n",
        b'{"call": "page"}\n',
        b'{"call": "page", "given": {"kind": 1}}\n',
        b'{"call": "page", "given": {"kind": "runs", "filters": []}}\n',
        b'{"call": "page", "given": {"kind": "runs", "limit": "2"}}\n',
        b'{"call": "page", "given": {"kind": "runs", "filters": {"person": 1}}}\n',
        b'{"call": "page", "given": {"kind": "runs", "after": "x"}}\n',
        b'{"call": "drop_tables"}\n',
        b'{"call": "act", "given": {"kind": "runs", "action": "cancel", "name": {"id": "run_1"}, "by": "a"}}\n',
        b"[" * 5000 + b"\n",
        b'{"call": "page", "given": {"kind": ' + b"[" * 5000 + b"\n",
        b'{"call": "\xff"}\n',
    ],
)
async def test_a_wrong_request_is_refused_and_the_next_is_answered(served: AdminSocket, request_line: bytes) -> None:
    refused, counts = await exchange(served.path, request_line, ask("counts"))
    assert refused["error"]["code"] == "invalid_request"
    assert "answer" in counts


async def test_a_request_that_is_too_long_or_cut_off_is_not_acted_on(served: AdminSocket) -> None:
    (refused,) = await exchange(served.path, b"x" * (LONGEST_REQUEST + 1) + b"\n")
    assert refused["error"]["code"] == "body_too_large"
    reader, writer = await asyncio.open_unix_connection(served.path)
    writer.write(ask("counts")[:-1])
    writer.write_eof()
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()


async def test_there_is_a_limit_of_connections(served: AdminSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_server, "MOST_CONNECTIONS", 1)
    reader, writer = await asyncio.open_unix_connection(served.path)
    writer.write(ask("counts"))
    await reader.readline()
    (refused,) = await exchange(served.path, b"")
    assert refused["error"]["code"] == "too_many_requests"
    writer.close()


async def test_an_idle_client_is_let_go(served: AdminSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_server, "IDLE_SECONDS", 0.01)
    reader, writer = await asyncio.open_unix_connection(served.path)
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()


async def test_its_end_ends_its_connections_and_removes_it(served: AdminSocket) -> None:
    reader, writer = await asyncio.open_unix_connection(served.path)
    writer.write(ask("counts"))
    await reader.readline()
    await served.stop()
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()
    assert not served.path.exists()


async def test_what_a_dead_process_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "desk.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))
    answering = make(path)
    await answering.start()
    assert "answer" in (await exchange(path, ask("counts")))[0]
    await answering.stop()


async def test_what_another_uses_is_left_alone(served: AdminSocket, tmp_path: Path) -> None:
    with pytest.raises(AdminSocketError, match="another process answers there"):
        await make(served.path).start()
    assert "answer" in (await exchange(served.path, ask("counts")))[0]
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(AdminSocketError, match="something else"):
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
    path = tmp_path / ("x" * LONGEST_PATH)
    with pytest.raises(AdminSocketError, match=rf"has {len(str(path))} bytes, and a socket can have {LONGEST_PATH}"):
        await make(path).start()
