"""A channel keeps files for its callers, and each caller has their own."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, Caller, Channel, ChannelContribution, ChannelIdentity, FileLimits
from frontdesk.access.allowlists import NativeIdAllowlist
from frontdesk.errors import FilesFullError, FileTooLargeError, ForbiddenError, NotFoundError
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore

LIMITS = FileLimits(max_file_bytes=10, max_owner_bytes=15)


class Album(Channel):
    """A channel that keeps files."""

    name, path, requires_auth_when_public = "album", "/album", False

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.context = context
        return ChannelContribution()


async def echo(text: str) -> str:
    return text


def caller(name: str) -> Caller:
    return Caller(identity=ChannelIdentity(channel="album", native_id=name))


@pytest.fixture(params=["memory", "sqlite"])
async def album(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Album]:
    store: Any = InMemoryStateStore(file_limits=LIMITS)
    if request.param == "sqlite":
        store = SqliteStateStore(tmp_path / "frontdesk.db", file_limits=LIMITS)
    channel = Album()
    channel.allowlist = NativeIdAllowlist(["ann", "bob", "nobody"])
    app = AgentFrameworkHost(echo, channels=[channel], store=store).app
    async with app.router.lifespan_context(app):
        yield channel


async def test_a_file_is_there_for_its_caller_alone(album: Album) -> None:
    file = await album.context.storage.put_file(caller("ann"), b"cat", media_type="image/png", name="cat.png")
    assert await album.context.storage.get_file(caller("ann"), file.file_id) == (file, b"cat")
    await album.context.storage.put_file(caller("bob"), b"dog", media_type="image/png")
    for other in ("bob", "nobody"):
        with pytest.raises(NotFoundError):
            await album.context.storage.get_file(caller(other), file.file_id)


async def test_what_has_no_room_is_refused(album: Album) -> None:
    with pytest.raises(FileTooLargeError, match="larger than 10 B"):
        await album.context.storage.put_file(caller("ann"), bytes(11), media_type="image/png")
    await album.context.storage.put_file(caller("ann"), bytes(10), media_type="image/png")
    with pytest.raises(FilesFullError, match="more than 15 B"):
        await album.context.storage.put_file(caller("ann"), bytes(6), media_type="image/png")
    await album.context.storage.put_file(caller("bob"), bytes(6), media_type="image/png")


async def test_a_stranger_leaves_nothing_behind(album: Album) -> None:
    with pytest.raises(ForbiddenError):
        await album.context.storage.put_file(caller("eve"), b"cat", media_type="image/png")
