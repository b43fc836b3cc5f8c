"""`bench.table`: versions of the package in one run."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench import readme, table
from bench.checkouts import current_checkout, find_checkout
from bench.figures import Row
from bench.load import LoadFailed
from bench.machine import Cores
from bench.process import ROOT, Server

needs_history = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the sources are no git checkout")


@needs_history
def test_the_quick_table_compares_this_checkout_with_another_commit() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench", "--against", "HEAD", "--quick", "--starts", "1", "--only", "json-memory"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "this/other" in run.stdout
    assert "at least 0.45 wanted" in run.stdout


@needs_history
def test_a_process_imports_the_package_of_its_checkout() -> None:
    other = find_checkout("HEAD")
    command = [sys.executable, "-c", "import frontdesk, bench; print(frontdesk.__file__, bench.__file__)"]
    printed = subprocess.check_output(command, env=other.environment(), text=True)
    package, bench = map(Path, printed.split())
    assert other.root in package.parents
    assert bench == ROOT / "bench" / "__init__.py"


class _Closing(asyncio.Protocol):
    """Sends the first event of a stream, and ends every second connection after it."""

    count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        event = b"data: {}\n\n"
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(event), event)
        )
        _Closing.count += 1
        if _Closing.count % 2:
            asyncio.get_running_loop().call_later(0.05, self._transport.close)


@needs_history
async def test_fewer_open_streams_than_wanted_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Closing, "127.0.0.1", 0)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:  # noqa: ASYNC220
        measured = Server(process, server.sockets[0].getsockname()[1], 0.0)  # pyright: ignore[reportArgumentType]

        @asynccontextmanager
        async def served(*_: object) -> AsyncIterator[list[tuple[table.Contestant, Server]]]:
            yield [(built._ours[0], measured)]

        built = table.Table(table.QUICK, Cores(None, None), [current_checkout()], [])
        monkeypatch.setattr(built, "_serve", served)
        with pytest.raises(LoadFailed, match="of 100 streams are open"):
            await built.measure([one for one in table.ROWS if one.key == "idle-stub"])
        server.close()
        process.kill()


def test_a_missed_goal_is_printed_as_one() -> None:
    rows = {"json-memory": Row("json-memory", "JSON", "requests/s"), "idle-stub": Row("idle-stub", "idle", "KiB")}
    for row in rows.values():
        row.add("bare", 100.0)
        row.add("this", 45.0)
    text, all_met = table.goals_text(rows, "this")
    assert [line.split()[0] for line in text.splitlines()] == ["PASS", "MISS"]
    assert not all_met


def test_the_table_of_the_readme_is_made_of_the_results() -> None:
    rows = [
        {"key": key, "median": {"abc": 50.0, "other": 170.0, "bare": number}}
        for number, (key, _, _) in enumerate(readme.SHOWN, start=1)
    ]
    results = {"facts": {"commits": "abc, def"}, "peers": {"other": "`other` 1.0"}, "rows": rows}
    table_text = readme.readme_table(results)
    assert table_text.splitlines()[2] == (
        "| JSON, 64 connections: processor time of a request | 50.0 us | 170 us | 1.00 us |"
    )
    text = f"before\n{readme.MARK}| old |\n| --- |\n\nbehind\n\nend\n"
    assert readme.with_table(text, table_text) == f"before\n{readme.MARK}{table_text}\nbehind\n\nend\n"


@pytest.mark.skipif(not table.RESULTS.exists(), reason="no results of the whole bench are kept yet")
def test_the_readme_has_the_table_of_the_kept_results() -> None:
    made = readme.readme_table(json.loads(table.RESULTS.read_text("utf-8")))
    assert f"{readme.MARK}{made}\n" in readme.README.read_text("utf-8")


def test_the_profile_names_the_files_that_a_request_passes() -> None:
    command = [sys.executable, "-m", "bench.profile", "json-memory", "--least", "0"]
    printed = subprocess.check_output(command, cwd=ROOT, text=True, timeout=120)
    assert "`pipeline.py`" in printed
    assert "Python calls a request" in printed
