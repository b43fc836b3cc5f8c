"""A running host answers operators by a socket, and does at once what they ask of it."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, InMemoryStateStore
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import AdminSocketError, ChannelConfigurationError, StateDirectoryError
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import EchoAgent
from frontdesk_testing.store_samples import delivery
from tests.admin.asking import call
from tests.cli.processes import frontdesk
from tests.scenarios.cast import echo
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import open_chat
from tests.scenarios.messages.test_stopping import Holding, list_failed


@asynccontextmanager
async def start_host(target: Any = echo, **settings: Any) -> AsyncIterator[AgentFrameworkHost]:
    host = AgentFrameworkHost(target, channels=[InvocationsChannel()], **settings)
    async with host.app.router.lifespan_context(host.app):
        yield host


def open_to_all(directory: Path) -> None:
    directory.chmod(0o777)


async def act(path: Path, kind: str, action: str, **name: str) -> Any:
    row = await call(path, "show", kind=kind, name=name)
    return await call(path, "act", kind=kind, action=action, name=name, seen=row["seen"], by="ann")


async def test_a_host_with_a_state_directory_has_a_socket_in_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "frontdesk.sock"
    for _ in range(2):
        async with start_host(state_dir=tmp_path / "state"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert await call(path, "state") == {"path": str(tmp_path / "state" / "frontdesk.db")}
        assert not path.exists()


async def test_the_directory_of_a_store_counts_too(tmp_path: Path) -> None:
    async with start_host(store=SqliteStateStore(tmp_path / "mine.db"), admin_socket=True):
        assert (await call(tmp_path / "frontdesk.sock", "state"))["path"] == str(tmp_path / "mine.db")


async def test_there_is_none_if_it_is_not_wanted_or_has_no_place(tmp_path: Path) -> None:
    async with start_host(state_dir=tmp_path / "state", admin_socket=False):
        assert not (tmp_path / "state" / "frontdesk.sock").exists()
    async with start_host() as host:
        assert host._operators.path is None


async def test_it_can_be_anywhere_that_others_can_not_change(tmp_path: Path) -> None:
    path = tmp_path / "run" / "desk.sock"
    async with start_host(admin_socket=path):
        assert (await call(path, "page", kind="runs"))["items"] == []
    (tmp_path / "open").mkdir()
    open_to_all(tmp_path / "open")
    with pytest.raises(StateDirectoryError):
        async with start_host(admin_socket=tmp_path / "open" / "desk.sock"):
            pass


async def test_a_directory_that_others_can_change_has_none_unless_it_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_to_all(tmp_path)
    async with start_host(state_dir=tmp_path, allow_unsafe_state_dir=True):
        assert not (tmp_path / "frontdesk.sock").exists()
    assert "Commands for operators need the host to be stopped." in caplog.text
    done = frontdesk("runs", "list", "--state", str(tmp_path))
    assert (done.returncode, "can be changed by every user" in done.stderr) == (1, True)


async def test_two_hosts_do_not_share_one(tmp_path: Path) -> None:
    async with start_host(admin_socket=str(tmp_path / "desk.sock")):
        with pytest.raises(AdminSocketError, match="another process listens on it"):
            async with start_host(admin_socket=str(tmp_path / "desk.sock")):
                pass
        assert await call(tmp_path / "desk.sock", "counts") == {}


async def test_a_directory_with_a_long_path_has_none_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with start_host(state_dir=tmp_path / ("x" * 100)) as host:
        assert host._operators._socket is None
    assert "a socket can have" in caplog.text


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (True, "there is no state directory to put it in"),
        ("x" * 200, "bytes, and a socket can have"),
        ("", "must be a path"),
        (7, "must be a path"),
        ("nul\0", "must be a path"),
    ],
)
def test_a_place_that_is_none_is_a_finding(place: Any, told: str) -> None:
    with pytest.raises(ChannelConfigurationError, match=told):
        AgentFrameworkHost(echo, channels=[InvocationsChannel()], admin_socket=place)


async def test_a_run_in_the_background_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def endless(text: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return text

    path = tmp_path / "state" / "frontdesk.sock"
    async with start_host(endless, state_dir=tmp_path / "state") as host:
        who = ChannelIdentity(channel="invocations", native_id="ann")
        token = await host.run_in_background(ChannelRequest(channel="invocations", input="hi"), identity=who)
        async with asyncio.timeout(60):
            await begun.wait()
        (row,) = (await call(path, "page", kind="runs", filters={"status": "running"}))["items"] or (
            await call(path, "page", kind="runs", filters={"status": "queued"})
        )["items"]
        assert row["run_id"] == token.run_id
        after = await act(path, "runs", "cancel", id=token.run_id)
        assert after["status"] == "cancelled"
        record = await host.get_continuation(token, identity=who)
        assert record.status == "cancelled"
        lines = (await call(path, "page", kind="audit", filters={"by": "operator:ann"}))["items"]
        assert [(line["action"], line["subject"]) for line in lines] == [("run_cancelled", token.run_id)]


async def test_a_turn_ends_when_its_event_is_cancelled_and_the_next_is_answered(tmp_path: Path) -> None:
    agent = Holding()
    path = tmp_path / "state" / "frontdesk.sock"
    async with open_chat(agent, state_dir=tmp_path / "state") as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hold one")
        await agent.held.wait()
        await chat.platform.say(ada, "two")
        await chat.platform.say(ada, "three")

        async def waiting() -> list[Any]:
            return (await call(path, "page", kind="inbox", filters={"status": "waiting"}))["items"]

        async def both_wait() -> bool:
            return len(await waiting()) == 2

        await until(both_wait)
        (working,) = (await call(path, "page", kind="inbox", filters={"status": "working"}))["items"]
        dropped = (await waiting())[1]
        assert (await act(path, "inbox", "cancel", id=str(dropped["number"])))["status"] == "cancelled"
        await act(path, "inbox", "cancel", id=str(working["number"]))
        assert await chat.wait_for_answers(ada.chat_id) == ["three"]
        assert sorted(await list_failed(chat)) == [("hold one", "cancelled"), ("two", "cancelled")]
    assert agent.list_asked() == [["hold one"], ["hold one", "three"]]


async def test_a_dead_delivery_is_sent_at_once_when_it_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "desk.sock"
    store = InMemoryStateStore()
    async with open_chat(EchoAgent(), store=store, admin_socket=path) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        await chat.wait_for_answers(ada.chat_id)

        async def is_noted() -> bool:
            return await call(path, "counts") == {"accepted": 1}

        await until(is_noted)
        (row,) = (await call(path, "page", kind="deliveries", filters={"status": "accepted"}))["items"]
        sent = await store.outbox.get(row["delivery_id"])
        assert sent is not None
        dead = sent.replace(delivery_id="dlv_dead", answer_id="ans_dead", status="dead", fence=0, receipt=None)
        async with store.transaction() as transaction:
            transaction.add_delivery(dead)
            transaction.add_delivery(delivery("dlv_other", channel="gone", status="dead", ended_at=1.0))
        await act(path, "deliveries", "retry", id="dlv_dead")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello", "hello"]
