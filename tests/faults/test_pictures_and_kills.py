"""A host is killed around each commit of a message with a picture: it is answered once, and the picture is whole."""

import base64
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from frontdesk_testing.messages import message_platform
from frontdesk_testing.messages.wire import Media
from frontdesk_testing.store_samples import data_uri
from tests.faults.inbox.desk import wait_for_answers
from tests.faults.inbox.processes import Desks

RAW = data_uri("cat", 60_000).partition(",")[2]
# Of the event: the row of its file, the chunks, the event. It is claimed. Of the turn: the same three.
COMMITS = 7


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("passes", range(1, COMMITS + 1))
async def test_a_kill_around_each_commit_of_a_picture(passes: int, point: str, tmp_path: Path) -> None:
    async with message_platform(tmp_path / "log") as platform:
        ann = await platform.user("Ann")
        async with Desks("sqlite", str(tmp_path / "state"), platform, tmp_path / "ledger") as desks:
            host = await desks.host()
            await host.arm(point, passes)
            await platform.say(ann, "look", media=[Media(media_type="image/png", data=RAW)])
            assert await host.wait_for_end() == -signal.SIGKILL
            await desks.host()
            assert await wait_for_answers(platform, ann, 1) == ["heard look"]
            await platform.say(ann, "after")
            assert await wait_for_answers(platform, ann, 2) == ["heard look", "heard after"]
    with closing(sqlite3.connect(tmp_path / "state" / "frontdesk.db")) as connection:
        rows = connection.execute("SELECT files.file_id, size, complete FROM files").fetchall()
        assert sorted({kind for (kind,) in connection.execute("SELECT kind FROM file_uses")}) == [
            "event",
            "run",
            "session",
        ]
        chunks = "SELECT data FROM file_chunks WHERE file_id = ? ORDER BY number"
        for file_id, size, complete in rows:
            content = b"".join(bytes(data) for (data,) in connection.execute(chunks, (file_id,)))
            assert (size, complete, content) == (60_000, 1, base64.b64decode(RAW))
    assert len(rows) == 2
