"""A state directory that others could change is refused, whoever they are and however they could."""

import logging
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.clock import SystemClock
from frontdesk.errors import StateDirectoryError
from frontdesk.state_dir import lock
from frontdesk.state_dir.lock import LOCK, find_unsafe, lock_directory, make_private
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.scenarios.cast import echo, two_voices

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are not kept there")
as_root = pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give files away")

SOMEBODY = 65_534
A_GROUP = 54_321


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir(mode=0o700)
    return tmp_path / "state"


def set_mode(path: Path, mode: int) -> None:
    path.chmod(mode)


def is_empty(path: Path) -> bool:
    return not list(path.iterdir())


def host_on(place: Path, **options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(echo, channels=[InvocationsChannel()], state_dir=place, **options)


async def start(host: AgentFrameworkHost) -> None:
    async with host.app.router.lifespan_context(host.app):
        pass


@as_root
async def test_a_host_used_a_directory_of_another_user(state: Path) -> None:
    os.chown(state, SOMEBODY, SOMEBODY)
    with pytest.raises(StateDirectoryError, match=f"belongs to the user {SOMEBODY}.* give it to this user") as caught:
        await start(host_on(state))
    assert caught.value.path == state
    assert is_empty(state)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o707, 0o702])
async def test_a_host_used_a_directory_that_everybody_can_write(state: Path, mode: int) -> None:
    set_mode(state, mode)
    with pytest.raises(StateDirectoryError, match=f"changed by every user .mode {mode:04o}.; chmod go-w {state}"):
        await start(host_on(state))
    # What it advises helps.
    await start(host_on(state / "own"))
    assert stat.S_IMODE((state / "own").stat().st_mode) == 0o700
    set_mode(state, mode & ~0o022)
    await start(host_on(state))


@as_root
async def test_a_host_used_a_directory_that_a_group_can_write(state: Path) -> None:
    os.chown(state, -1, A_GROUP)
    set_mode(state, 0o2770)
    with pytest.raises(StateDirectoryError, match=f"changed by the group {A_GROUP}"):
        await start(host_on(state))
    await start(host_on(state / "own"))


@as_root
@pytest.mark.parametrize("name", ["frontdesk.db", "frontdesk.db-wal", LOCK])
async def test_a_host_used_a_file_that_another_user_had_put_there(state: Path, name: str) -> None:
    (state / name).touch(mode=0o600)
    os.chown(state / name, SOMEBODY, SOMEBODY)
    with pytest.raises(StateDirectoryError, match=f"its file {name} belongs to the user {SOMEBODY}"):
        await start(host_on(state))


async def test_a_lock_that_is_a_link_was_overwritten_where_it_led(state: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (state / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(StateDirectoryError):
        await start(host_on(state))
    assert (tmp_path / "precious").read_text() == "precious"


async def test_a_store_and_checkpoints_elsewhere_are_looked_at_too(state: Path, tmp_path: Path) -> None:
    set_mode(state, 0o777)
    store = SqliteStateStore(state / "own.db")
    named = AgentFrameworkHost(echo, channels=[InvocationsChannel()], store=store)
    held = AgentFrameworkHost(two_voices(), channels=[InvocationsChannel()], checkpoint_location=state)
    for host in (named, held):
        with pytest.raises(StateDirectoryError, match="changed by every user"):
            await start(host)
    assert is_empty(state)


@pytest.mark.parametrize("target", [echo, two_voices()])
async def test_an_operator_can_say_that_it_is_safe(target: Any, state: Path, caplog: pytest.LogCaptureFixture) -> None:
    set_mode(state, 0o777)
    host = AgentFrameworkHost(target, channels=[InvocationsChannel()], state_dir=state, allow_unsafe_state_dir=True)
    await start(host)
    assert (state / "frontdesk.db").exists()
    told, socket = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "changed by every user" in told
    assert "because the host was told to" in told
    # Whoever can change the directory could put a socket of their own there.
    assert "Commands for operators need the host to be stopped." in socket


@pytest.mark.parametrize(
    ("above", "mode", "told"), [(0o755, 0o644, True), (0o700, 0o644, False), (0o755, 0o600, False)]
)
async def test_a_database_that_others_can_read_is_a_warning(
    above: int, mode: int, told: bool, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await start(host_on(state))
    set_mode(state, above)
    (state / "frontdesk.db").chmod(mode)
    await start(host_on(state))
    found = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert [str(state / "frontdesk.db") in one for one in found] == [True] * told


@as_root
def test_a_directory_of_root_is_safe_for_a_user(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a volume that belongs to root, and of which this user may write a part."""
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert find_unsafe(state) is None
    os.chown(state, 4321, -1)
    assert find_unsafe(state) is not None


@pytest.mark.parametrize(
    ("name", "members", "safe"),
    [("ann", [], True), ("ann", ["ann"], True), ("ann", ["ann", "ben"], False), ("staff", [], False)],
)
def test_the_private_group_of_a_user_is_the_user(
    name: str, members: list[str], safe: bool, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a umask of 0002, as some systems set it, all that a person makes can be written by that group."""
    set_mode(state, 0o775)
    monkeypatch.setattr(lock.pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="ann"))
    monkeypatch.setattr(lock.grp, "getgrgid", lambda _: SimpleNamespace(gr_name=name, gr_mem=members))
    assert (find_unsafe(state) is None) == safe


def test_a_user_without_a_name_has_no_private_group(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> Any:
        raise KeyError

    monkeypatch.setattr(lock.pwd, "getpwuid", unknown)
    set_mode(state, 0o770)
    assert find_unsafe(state) is not None


@given(st.integers(0, 0o1777))
def test_a_mode_that_lets_others_write_is_never_taken(mode: int) -> None:
    found = SimpleNamespace(st_uid=os.geteuid(), st_gid=A_GROUP, st_mode=stat.S_IFDIR | mode)
    path: Any = SimpleNamespace(stat=lambda: found)
    assert (find_unsafe(path) is not None) == bool(mode & 0o022)


def test_what_is_made_is_safe_whatever_the_umask_is(tmp_path: Path) -> None:
    for number, mask in enumerate((0, 0o002, 0o022, 0o077)):
        directory = tmp_path / str(number) / "deep" / "state"
        previous = os.umask(mask)
        try:
            make_private(directory)
            with lock_directory(directory, SystemClock()):
                pass
        finally:
            os.umask(previous)
        for one in (directory, directory.parent, directory / LOCK):
            assert find_unsafe(one) is None
