"""A host and its state directory: it holds it while it runs, and finds there what it left."""

import logging
from pathlib import Path
from typing import Any, Never

import pytest
from agent_framework import Executor, InMemoryCheckpointStorage, WorkflowBuilder, WorkflowContext, handler

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, HostStatePaths, StateDirectoryInUseError
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.clock import SystemClock
from frontdesk.errors import StateDirectoryError
from frontdesk.state_dir.lock import LOCK, lock_directory
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import serving
from tests.scenarios.cast import build_scripted, echo, parrot, two_voices


def host_with(target: Any = echo, **options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(target, channels=[InvocationsChannel()], **options)


def parrot_of_all() -> Any:
    """An agent that repeats all that it was ever told in its session."""
    return build_scripted(lambda messages: [" ".join(one.text for one in messages if one.role == "user")])


class Watched(InMemoryStateStore):
    """A store that writes down when it is opened and closed, and whether the directory was held then."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.watched = directory
        self.seen: list[tuple[str, bool]] = []

    async def open(self) -> None:
        self.seen.append(("open", is_held(self.watched)))

    async def close(self) -> None:
        self.seen.append(("close", is_held(self.watched)))


def is_held(directory: Path) -> bool:
    try:
        with lock_directory(directory, SystemClock()):
            return False
    except StateDirectoryInUseError:
        return True


async def never() -> None:
    pytest.fail("it began")


class TestOwner:
    async def test_the_directory_is_held_before_the_store_opens_and_until_it_has_closed(self, tmp_path: Path) -> None:
        store = Watched(tmp_path)
        host = host_with(two_voices(), state_dir=tmp_path, store=store)
        for _ in range(2):
            async with serving(host):
                assert is_held(tmp_path)
            assert not is_held(tmp_path)
        assert store.seen == [("open", True), ("close", True)] * 2

    async def test_the_file_of_a_store_that_is_given_has_one_owner_too(self, tmp_path: Path) -> None:
        stores = [SqliteStateStore(tmp_path / "own" / "hotel.db") for _ in range(2)]
        async with serving(host_with(store=stores[0])):
            assert is_held(tmp_path / "own")
            with pytest.raises(StateDirectoryInUseError):
                async with serving(host_with(store=stores[1])):
                    pytest.fail("it began")
        async with serving(host_with(store=stores[1])):
            pass

    async def test_a_second_host_opens_nothing(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        began: list[str] = []

        async def begin() -> None:
            began.append("callback")

        store = Watched(tmp_path)
        second = host_with(two_voices(), state_dir=tmp_path, store=store, on_startup=[begin], on_shutdown=[begin])
        async with serving(host_with(two_voices(), state_dir=tmp_path, store=InMemoryStateStore())):
            with caplog.at_level(logging.ERROR, "frontdesk.host"), pytest.raises(StateDirectoryInUseError):
                async with second.app.router.lifespan_context(second.app):
                    pytest.fail("two owners")
            assert (store.seen, began) == ([], [])
            (told,) = [one for one in caplog.records if one.name == "frontdesk.host"]
            assert str(tmp_path) in told.getMessage()
            assert not told.exc_info
        async with serving(second):
            assert began == ["callback"]

    async def test_a_failed_start_frees_it(self, tmp_path: Path) -> None:
        async def fail() -> None:
            raise RuntimeError("no database")

        host = host_with(two_voices(), state_dir=tmp_path, store=InMemoryStateStore(), on_startup=[fail])
        with pytest.raises(RuntimeError, match="no database"):
            async with host.app.router.lifespan_context(host.app):
                pytest.fail("it started")
        assert not is_held(tmp_path)

    async def test_nothing_begins_without_the_store(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "frontdesk.db").write_text("This is a letter, and no database at all. " * 99)
        host = host_with(state_dir=tmp_path, on_startup=[never], on_shutdown=[never])
        with pytest.raises(Exception, match="file is not a database"):
            async with host.app.router.lifespan_context(host.app):
                pytest.fail("it started")
        (told,) = [one for one in caplog.records if one.levelno == logging.ERROR]
        place = tmp_path / "frontdesk.db"
        assert told.getMessage() == (
            "callback failed: callback=start-up owner=store: "
            f"the database {place} can't be opened: file is not a database"
        )
        assert not told.exc_info
        assert not is_held(tmp_path)

    async def test_a_directory_that_is_not_used_is_not_touched(self, tmp_path: Path) -> None:
        async with serving(host_with(state_dir=tmp_path / "s", store=InMemoryStateStore())):
            assert not (tmp_path / "s").exists()

    async def test_places_that_hosts_may_share_are_not_held(self, tmp_path: Path) -> None:
        def one() -> AgentFrameworkHost:
            return host_with(two_voices(), state_dir={"checkpoints": tmp_path / "c"}, store=InMemoryStateStore())

        async with serving(one()), serving(one()):
            assert not (tmp_path / LOCK).exists()
            assert not (tmp_path / "c" / LOCK).exists()

    async def test_a_directory_that_can_t_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        host = host_with(two_voices(), state_dir=tmp_path / "file" / "state", store=InMemoryStateStore())
        with pytest.raises(StateDirectoryError, match="file/state can't be used: Not a directory"):
            async with serving(host):
                pytest.fail("it started")


class TestDatabase:
    """The store that a host opens itself."""

    async def test_a_session_survives_the_host(self, tmp_path: Path) -> None:
        for number in range(1, 4):
            async with serving(host_with(parrot_of_all(), state_dir=tmp_path / "state")) as client:
                answer = await client.invoke(f"line {number}", session_id="mine")
                assert answer["text"] == " ".join(f"line {line}" for line in range(1, number + 1))

    async def test_its_files_are_for_this_user_only(self, tmp_path: Path) -> None:
        async with serving(host_with(parrot(), state_dir=tmp_path / "state")) as client:
            await client.invoke("hello")
            modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()}
        assert {"frontdesk.db", LOCK} <= set(modes)
        assert {mode for name, mode in modes.items() if (tmp_path / "state" / name).is_file()} == {0o600}

    async def test_a_database_elsewhere_is_held_too(self, tmp_path: Path) -> None:
        paths = HostStatePaths(sessions=tmp_path / "deep" / "own.db")
        async with serving(host_with(state_dir=paths)) as client:
            await client.invoke("hello")
            assert (tmp_path / "deep" / "own.db").stat().st_size > 0
            with pytest.raises(StateDirectoryInUseError):
                async with serving(host_with(state_dir=tmp_path / "deep")):
                    pytest.fail("two owners")

    def test_a_host_that_is_only_built_leaves_nothing(self, tmp_path: Path) -> None:
        host = host_with(two_voices(), state_dir=tmp_path / "state")
        assert host.warnings == []
        assert list(tmp_path.iterdir()) == []


class Counter(Executor):
    """Counts its turns, and keeps the number in its checkpoints."""

    number = 0

    @handler
    async def count(self, text: str, context: WorkflowContext[Never, str]) -> None:
        self.number += 1
        await context.yield_output(f"{text} {self.number}")

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"number": self.number}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.number = state["number"]


def build_counting(storage: Any = None) -> Any:
    """A function that builds a workflow, perhaps with a storage of its own."""

    def build() -> Any:
        counter = Counter("counter")
        return WorkflowBuilder(
            name="counting", start_executor=counter, output_from=[counter], checkpoint_storage=storage
        ).build()

    return build


class TestCheckpoints:
    """Where those of a workflow are kept."""

    async def test_they_are_in_the_state_directory(self, tmp_path: Path) -> None:
        places = [path / "checkpoints" for path in (tmp_path, tmp_path / "deep" / "state")]
        for place in places:
            assert await count_twice(state_dir=place.parent) == ["turn 1", "turn 2"]
            assert files_in(place)
            assert place.stat().st_mode & 0o777 == 0o700

    async def test_they_are_where_they_are_named(self, tmp_path: Path) -> None:
        named = {"checkpoints": tmp_path / "named", "sessions": tmp_path / "a.db"}
        assert await count_twice(state_dir=named) == ["turn 1", "turn 2"]
        assert files_in(tmp_path / "named")
        assert await count_twice(state_dir=tmp_path / "s", checkpoint_location=tmp_path / "c") == ["turn 1", "turn 2"]
        assert files_in(tmp_path / "c")
        assert not files_in(tmp_path / "s" / "checkpoints")

    async def test_they_are_in_a_storage_of_the_operators(self, tmp_path: Path) -> None:
        storage = InMemoryCheckpointStorage()
        assert await count_twice(state_dir=tmp_path, checkpoint_location=storage) == ["turn 1", "turn 2"]
        assert await storage.list_checkpoint_ids(workflow_name="counting")
        assert not files_in(tmp_path / "checkpoints")

    async def test_a_directory_for_everything_gives_way_to_a_storage_of_the_workflows_own(self, tmp_path: Path) -> None:
        storage = InMemoryCheckpointStorage()
        assert await count_twice(build_counting(storage), state_dir=tmp_path) == ["turn 1", "turn 2"]
        assert await storage.list_checkpoint_ids(workflow_name="counting")
        assert not files_in(tmp_path / "checkpoints")

    @pytest.mark.parametrize("setting", ["state_dir", "checkpoint_location"])
    def test_two_storages_are_a_finding(self, setting: str, tmp_path: Path) -> None:
        value = {"checkpoints": tmp_path} if setting == "state_dir" else tmp_path
        with pytest.raises(ChannelConfigurationError, match="the host was given one too") as caught:
            host_with(build_counting(InMemoryCheckpointStorage()), **{setting: value})
        assert len(caught.value.findings) == 1

    async def test_a_place_that_can_t_be_written_is_named_at_the_start(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StateDirectoryError, match="file/c can't be used"):
            async with serving(host_with(build_counting(), checkpoint_location=tmp_path / "file" / "c")):
                pytest.fail("it started")


async def count_twice(target: Any = None, **options: Any) -> list[str]:
    """What a session is answered by two hosts, one after the other."""
    said: list[str] = []
    for _ in range(2):
        async with serving(host_with(target or build_counting(), **options)) as client:
            said.append((await client.invoke("turn", session_id="mine"))["text"])
    return said


def files_in(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]
