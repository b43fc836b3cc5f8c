"""Where a host keeps its state: what the settings mean, what is wrong with them, and what has no effect."""

from pathlib import Path
from typing import Any

import pytest
from agent_framework import InMemoryCheckpointStorage

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, HostStatePaths
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.clock import SystemClock
from frontdesk.interfaces.linker import SupportsLinkStorePath
from frontdesk.state_dir.paths import HostState, choose_store
from frontdesk.stores.memory.store import InMemoryStateStore
from tests.scenarios.cast import echo, parrot


class Linker:
    """A linker that asks nobody for a place."""

    name = "plain"
    gives_claims = False

    def use(self, desk: Any) -> None: ...

    async def begin(self, identity: Any) -> Any: ...

    async def complete(self, identity: Any, proof: str) -> Any: ...

    async def resolve(self, identity: Any) -> None: ...

    async def unlink(self, identity: Any) -> None: ...


class KeepingLinker(Linker, SupportsLinkStorePath):
    """A linker that keeps its own store."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def use_link_store(self, path: str) -> None:
        self.told.append(path)


def state(state_dir: Any = None, location: Any = None, store: Any = None, linker: Any = None) -> HostState:
    return HostState(state_dir, location, store, linker)


def host_with(target: Any = echo, **options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(target, channels=[InvocationsChannel()], **options)


class TestPlaces:
    def test_nothing_is_on_disk_by_default(self) -> None:
        found = state()
        assert (found.database, found.checkpoints, found.choose_checkpoints()) == (None, None, None)
        assert isinstance(choose_store(None, found.database, SystemClock()), InMemoryStateStore)

    @pytest.mark.parametrize("kind", [str, Path])
    def test_a_directory_has_a_place_for_everything(self, kind: Any, tmp_path: Path) -> None:
        linker = KeepingLinker()
        found = state(kind(tmp_path / "state"), linker=linker)
        found.offer_links()
        assert found.findings == []
        assert found.database == tmp_path / "state" / "frontdesk.db"
        assert found.checkpoints == tmp_path / "state" / "checkpoints"
        assert linker.told == [str(tmp_path / "state" / "links")]
        assert not (tmp_path / "state").exists()

    @pytest.mark.parametrize("kind", [HostStatePaths, dict])
    def test_each_part_has_a_place_of_its_own(self, kind: Any, tmp_path: Path) -> None:
        linker = KeepingLinker()
        paths = {name: tmp_path / name for name in ("runner", "checkpoints", "links")}
        found = state(kind(**paths, sessions=str(tmp_path / "x" / ".." / "runner")), linker=linker)
        found.offer_links()
        assert found.findings == []
        assert (found.database, found.checkpoints) == (tmp_path / "runner", tmp_path / "checkpoints")
        assert linker.told == [str(tmp_path / "links")]

    @pytest.mark.parametrize("name", ["runner", "sessions"])
    def test_either_of_two_names_names_the_database(self, name: str, tmp_path: Path) -> None:
        assert state({name: tmp_path / "a.db"}).database == tmp_path / "a.db"

    def test_a_part_that_is_not_named_is_not_on_disk(self, tmp_path: Path) -> None:
        linker = KeepingLinker()
        found = state({"checkpoints": tmp_path, "links": None}, linker=linker)
        found.offer_links()
        assert (found.database, linker.told) == (None, [])

    def test_a_path_does_not_follow_the_current_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert state("state").database == tmp_path / "state" / "frontdesk.db"

    def test_a_store_of_the_operators_own_is_the_store(self, tmp_path: Path) -> None:
        own = InMemoryStateStore()
        found = state(tmp_path, store=own)
        assert found.database is None
        assert found.checkpoints == tmp_path / "checkpoints"
        assert choose_store(own, tmp_path, SystemClock()) is own

    @pytest.mark.parametrize("where", [None, "state"])
    def test_an_explicit_place_of_checkpoints_wins(self, where: Any, tmp_path: Path) -> None:
        assert state(where, str(tmp_path)).checkpoints == tmp_path
        assert state(where, InMemoryCheckpointStorage()).checkpoints is None


WRONG: dict[str, tuple[Any, Any, str]] = {
    "two databases": (
        HostStatePaths(runner="a.db", sessions="b.db"),
        None,
        "runner names a.db and sessions b.db; they must name one database, because one transaction",
    ),
    "an unknown key": (
        {"checkpoint": "x", "links": "y"},
        None,
        "'checkpoint' is not one of runner, sessions, checkpoints, links",
    ),
    "nothing": ("", None, "state_dir: '' is not a path"),
    "an empty part": (HostStatePaths(links=""), None, "state_dir: links: '' is not a path"),
    "a number": (3, None, "state_dir: int is not a path, a HostStatePaths or a mapping"),
    "a number for a part": ({"links": 3}, None, "state_dir: links: int is not a path"),
    "a character of no path": ("a\0b", None, r"state_dir: 'a\x00b' is not a path"),
    "no storage": (None, 3, "checkpoint_location: int is not a path or a CheckpointStorage"),
    "no place": (None, "", "checkpoint_location: '' is not a path"),
}


@pytest.mark.parametrize(("state_dir", "location", "told"), WRONG.values(), ids=WRONG)
def test_a_wrong_setting_was(state_dir: Any, location: Any, told: str) -> None:
    with pytest.raises(ChannelConfigurationError) as caught:
        host_with(state_dir=state_dir, checkpoint_location=location)
    (finding,) = caught.value.findings
    assert told in finding


def test_a_file_is_no_directory_and_a_directory_no_database(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (finding,) = state(tmp_path / "file").findings
    assert finding == f"state_dir: {tmp_path / 'file'} is not a directory"
    (finding,) = state(HostStatePaths(sessions=tmp_path)).findings
    assert "sessions names the directory" in finding


def test_a_path_that_leads_nowhere_is_found_at_the_start_only(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert state(tmp_path / "loop").findings == []


def test_every_wrong_setting_is_told_at_once() -> None:
    linker = KeepingLinker()
    with pytest.raises(ChannelConfigurationError) as caught:
        host_with(
            "no target", state_dir={"a": 1, "b": 2, "links": "x", "runner": 3}, checkpoint_location=4, linker=linker
        )
    assert [finding.split(" ")[1] for finding in caught.value.findings] == ["'a'", "'b'", "runner:", "int", "str"]
    assert linker.told == []


ALL = HostStatePaths(runner="a.db", sessions="a.db", checkpoints="c", links="l")
STORE = InMemoryStateStore()
STORAGE = InMemoryCheckpointStorage()
NO_WORKFLOW = "the target is not a workflow"
NO_LINKER = "there is no linker that keeps its own store"
GIVEN = "store= is given"

# A title, the settings, the kind of the target, and the warnings.
IDLE: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "nothing": ({}, "agent", []),
    "a directory for an agent": ({"state_dir": "s"}, "agent", []),
    "a directory for a workflow": ({"state_dir": "s"}, "workflow", []),
    "a directory beside a store, for a workflow": ({"state_dir": "s", "store": STORE}, "workflow", []),
    "a directory beside a store, for a linker": (
        {"state_dir": "s", "store": STORE, "linker": KeepingLinker()},
        "agent",
        [],
    ),
    "a directory beside a store, for nobody": (
        {"state_dir": "s", "store": STORE},
        "function",
        [f"state_dir has no effect: {GIVEN}; {NO_WORKFLOW}; {NO_LINKER}"],
    ),
    "a directory and a place of checkpoints": (
        {"state_dir": "s", "location": STORAGE},
        "workflow",
        ["state_dir: checkpoints has no effect: checkpoint_location= is given"],
    ),
    "all parts, all used": ({"state_dir": ALL, "linker": KeepingLinker()}, "workflow", []),
    "all parts, two used": (
        {"state_dir": ALL, "linker": Linker()},
        "agent",
        [f"state_dir: checkpoints has no effect: {NO_WORKFLOW}", f"state_dir: links has no effect: {NO_LINKER}"],
    ),
    "all parts, none used": (
        {"state_dir": ALL, "store": STORE, "location": STORAGE},
        "workflow",
        [
            f"state_dir: runner has no effect: {GIVEN}",
            f"state_dir: sessions has no effect: {GIVEN}",
            "state_dir: checkpoints has no effect: checkpoint_location= is given",
            f"state_dir: links has no effect: {NO_LINKER}",
        ],
    ),
    "a place of checkpoints for an agent": (
        {"location": "c"},
        "agent",
        [f"checkpoint_location has no effect: {NO_WORKFLOW}"],
    ),
    "a place of checkpoints for a workflow": ({"location": "c"}, "workflow", []),
}


@pytest.mark.parametrize(("settings", "kind", "told"), IDLE.values(), ids=IDLE)
def test_what_has_no_effect_is_a_warning(settings: dict[str, Any], kind: str, told: list[str]) -> None:
    found = state(**settings)
    assert (found.findings, found.warnings(kind)) == ([], told)


def test_a_host_tells_its_linker_once_and_warns_of_the_rest(tmp_path: Path) -> None:
    linker = KeepingLinker()
    paths = HostStatePaths(checkpoints=tmp_path / "c", links=tmp_path / "l")
    host = host_with(parrot(), state_dir=paths, linker=linker)
    assert linker.told == [str(tmp_path / "l")]
    assert host.warnings == [f"state_dir: checkpoints has no effect: {NO_WORKFLOW}"]
