"""Where checkpoints are kept: each with its session, found by its id and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowMessage,
)

from frontdesk.errors import UnavailableError
from frontdesk.models.session import CheckpointRef
from frontdesk.targets.checkpoints import Checkpoints, ReadOnly, answers_in, own_storage
from tests.scenarios.pausing import Clerk, Inn

KEYS = [
    *("..", "../up", "a/b", "a\\b", "", "x" * 10_000, "😀", "NUL", "a.", "a ", "\x00", "\ud800"),
    # What an encoder or a file system might take for the same.
    *("a", "A", "ß", "SS", "ss", "\u00e9", "e\u0301", "\u212b", "\u00c5"),
]


class Unpicklable:
    def __reduce__(self) -> Any:
        raise TypeError("not this one")


class Stranger:
    """A type that nobody has made known."""

    value = 7


def point(state: Any = "here", messages: Any = None) -> WorkflowCheckpoint:
    return WorkflowCheckpoint(
        workflow_name="inn", graph_signature_hash="g", state={"state": state}, messages=messages or {}
    )


def find_files(root: Path, pattern: str = "*") -> list[Path]:
    return sorted(root.glob(pattern))


def ref(session_id: str, checkpoint: WorkflowCheckpoint) -> CheckpointRef:
    return CheckpointRef(session_id=session_id, checkpoint_id=checkpoint.checkpoint_id)


async def save(checkpoints: Checkpoints, session_id: str, *points: WorkflowCheckpoint) -> list[CheckpointRef]:
    noted: list[CheckpointRef] = []
    storage = checkpoints.open(session_id, lambda _, saved: noted.append(saved))
    for one in points:
        assert await storage.save(one) == one.checkpoint_id
    return noted


@pytest.fixture(params=["memory", "files", "shared"])
def checkpoints(request: pytest.FixtureRequest, tmp_path: Path) -> Checkpoints:
    if request.param == "files":
        return Checkpoints.under(tmp_path / "points")
    return Checkpoints.in_memory() if request.param == "memory" else Checkpoints.of(InMemoryCheckpointStorage())


class TestEveryPlace:
    async def test_what_was_saved_is_found(self, checkpoints: Checkpoints) -> None:
        saved = point({"deep": [1, "two"]})
        assert await save(checkpoints, "s", saved) == [ref("s", saved)]
        there = await checkpoints.find(ref("s", saved))
        assert there is not None
        assert there.state == {"state": {"deep": [1, "two"]}}
        assert await checkpoints.find(ref("s", saved)) is not there

    async def test_of_another_session_it_does_not_exist(self, checkpoints: Checkpoints) -> None:
        saved = point()
        await save(checkpoints, "s", saved)
        assert await checkpoints.find(ref("t", saved)) is None

    @pytest.mark.parametrize("name", [*KEYS, "unknown", "%2e%2e", "../points/x", "a" * 250])
    async def test_an_id_that_nobody_saved_finds_nothing(self, checkpoints: Checkpoints, name: str) -> None:
        await save(checkpoints, "s", point())
        assert await checkpoints.find(CheckpointRef(session_id="s", checkpoint_id=name)) is None

    async def test_sessions_of_any_name_keep_apart(self, checkpoints: Checkpoints) -> None:
        saved = {key: point(key.encode(errors="surrogatepass").hex()) for key in KEYS}
        for key, one in saved.items():
            await save(checkpoints, key, one)
        for key, one in saved.items():
            there = await checkpoints.find(ref(key, one))
            assert there is not None
            assert there.state["state"] == key.encode(errors="surrogatepass").hex()
            for other in KEYS:
                assert other == key or await checkpoints.find(ref(other, one)) is None

    async def test_answers_are_kept_with_it(self, checkpoints: Checkpoints) -> None:
        saved = point()
        storage = checkpoints.open("s", lambda *_: None)
        storage.answers = {"name": "anna"}
        await storage.save(saved)
        there = await checkpoints.find(ref("s", saved))
        assert there is not None
        assert answers_in(there) == {"name": "anna"}
        assert answers_in(point()) == {}


class TestRuns:
    async def test_only_the_last_of_a_run_is_kept(self, tmp_path: Path) -> None:
        for checkpoints in (Checkpoints.in_memory(), Checkpoints.under(tmp_path)):
            earlier, first, second, third = point(), point(), point(), point()
            await save(checkpoints, "s", earlier)
            await save(checkpoints, "s", first, second, third)
            kept = [await checkpoints.find(ref("s", one)) is not None for one in (earlier, first, second, third)]
            assert kept == [True, False, False, True]
        assert len(find_files(tmp_path, "*/*")) == 2

    async def test_a_storage_of_the_operators_own_loses_nothing(self) -> None:
        storage = InMemoryCheckpointStorage()
        await save(Checkpoints.of(storage), "s", point(), point())
        assert len(await storage.list_checkpoint_ids(workflow_name="inn")) == 2

    async def test_one_that_is_not_ours_is_not_taken_from_a_shared_storage(self) -> None:
        storage = InMemoryCheckpointStorage()
        foreign = point()
        await storage.save(foreign)
        assert await Checkpoints.of(storage).find(ref("s", foreign)) is None

    @pytest.mark.parametrize("state", [Stranger(), Unpicklable()])
    async def test_a_save_that_fails_is_remembered_until_one_succeeds(self, state: Any, tmp_path: Path) -> None:
        noted: list[Any] = []
        storage = Checkpoints.under(tmp_path).open("s", lambda *saved: noted.append(saved))
        with pytest.raises((WorkflowCheckpointException, TypeError)):
            await storage.save(point(state))
        assert storage.failure is not None
        assert noted == []
        await storage.save(point())
        assert storage.failure is None
        assert len(noted) == 1

    async def test_types_can_be_allowed_by_hand(self, tmp_path: Path) -> None:
        checkpoints = Checkpoints.under(tmp_path, [Stranger])
        saved = point(Stranger())
        await save(checkpoints, "s", saved)
        there = await checkpoints.find(ref("s", saved))
        assert there is not None
        assert isinstance(there.state["state"], Stranger)

    async def test_a_run_reads_the_one_checkpoint_that_it_begins_with(self) -> None:
        known = point()
        for storage in (Checkpoints.in_memory().open("s", lambda *_: None, known), ReadOnly(known)):
            assert await storage.load(known.checkpoint_id) is known
            with pytest.raises(WorkflowCheckpointException, match="No checkpoint"):
                await storage.load("another")

    async def test_one_that_keeps_nothing_says_yes_to_everything(self) -> None:
        other = point()
        assert await ReadOnly(point()).save(other) == other.checkpoint_id


class TestMemory:
    async def test_the_longest_untouched_go_first(self) -> None:
        checkpoints = Checkpoints.in_memory(limit=3)
        points = [point(number) for number in range(3)]
        for number, one in enumerate(points):
            await save(checkpoints, str(number), one)
        assert await checkpoints.find(ref("0", points[0])) is not None
        await save(checkpoints, "3", point())
        assert await checkpoints.find(ref("1", points[1])) is None
        assert await checkpoints.find(ref("0", points[0])) is not None

    async def test_what_is_kept_is_a_copy(self) -> None:
        checkpoints = Checkpoints.in_memory()
        state = [1]
        saved = point(state)
        await save(checkpoints, "s", saved)
        state.append(2)
        there = await checkpoints.find(ref("s", saved))
        assert there is not None
        assert there.state["state"] == [1]

    def test_a_limit_below_one_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="at least 1"):
            Checkpoints.in_memory(limit=0)


class TestFiles:
    async def test_nothing_leaves_the_root(self, tmp_path: Path) -> None:
        root = tmp_path / "points"
        for key in KEYS:
            await save(Checkpoints.under(root), key, point())
        assert [one.name for one in find_files(tmp_path)] == ["points"]
        folders = [one.name for one in find_files(root)]
        assert len(folders) == len({name.casefold() for name in folders}) == len(KEYS)
        assert all(name.isalnum() and len(name) == 64 for name in folders)

    async def test_looking_for_what_is_not_there_makes_nothing(self, tmp_path: Path) -> None:
        await Checkpoints.under(tmp_path / "points").find(ref("s", point()))
        assert find_files(tmp_path) == []

    async def test_a_disk_that_does_not_answer_is_not_taken_for_an_empty_one(self, tmp_path: Path) -> None:
        checkpoints = Checkpoints.under(tmp_path)
        saved = point()
        await save(checkpoints, "s", saved)
        (kept,) = find_files(tmp_path, "*/*.json")
        kept.unlink()
        kept.mkdir()
        with pytest.raises(UnavailableError):
            await checkpoints.find(ref("s", saved))

    async def test_one_in_the_middle_of_a_run_is_kept_as_well(self, tmp_path: Path) -> None:
        checkpoints = Checkpoints.under(tmp_path)
        saved = point(messages={"clerk": [WorkflowMessage(data="bags", source_id="clerk")]})
        await save(checkpoints, "s", saved)
        there = await checkpoints.find(ref("s", saved))
        assert there is not None
        assert [one.data for one in there.messages["clerk"]] == ["bags"]


def test_the_storage_of_a_workflow_is_known(tmp_path: Path) -> None:
    own = FileCheckpointStorage(tmp_path)
    builder = WorkflowBuilder(name="inn", start_executor=Clerk([]), checkpoint_storage=own)
    assert own_storage(builder) is own
    assert own_storage(builder.build()) is own
    assert own_storage(Inn()()) is None
