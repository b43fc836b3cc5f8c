"""`frontdesk worker`: a real process that works and opens no port."""

import json
import signal
from pathlib import Path

import psycopg
import pytest

from tests.cli.processes import Running, frontdesk
from tests.scenarios.desk import until

WORKER = """
import os
from frontdesk import AgentFrameworkHost, PostgresStateStore, ProcrastinateTaskRunner
from frontdesk.channels.invocations import InvocationsChannel

PostgresStateStore.outlasts_timeouts = False
store = PostgresStateStore(os.environ["DATABASE"], lease_seconds=1.0)
runner = ProcrastinateTaskRunner(store)


async def note(payload):
    with open("notes", "a") as notes:
        notes.write(payload["text"] + "\\n")


runner.register("note", note)


async def echo(text: str) -> str:
    return text


host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], store=store, runner=runner)
"""
ALONE = """
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel


async def echo(text: str) -> str:
    return text


def make(state_dir=None):
    return AgentFrameworkHost(echo, channels=[InvocationsChannel()], state_dir=state_dir)
"""


def test_it_does_what_another_process_has_scheduled(postgres: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WORKER)
    with Running("worker", "app:host", cwd=tmp_path, env={"DATABASE": postgres}) as worker:
        assert worker.read_until("Ctrl-C stops it.").splitlines()[0] == "echo has a worker more"
        data = {"$": "TaskRecord", "task_id": "t", "name": "note", "payload": {"text": "hello"}, "due_at": 0.0}
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO tasks (task_id, name, status, due_at, attempts, holder, fence, until, data) "
                "VALUES ('t', 'note', 'pending', 0, 0, '', 0, 0, %s)",
                (json.dumps({"v": 1, "data": data}).encode(),),
            )
        _wait_for(tmp_path / "notes")
        assert (tmp_path / "notes").read_text() == "hello\n"
        worker.process.send_signal(signal.SIGTERM)
        assert worker.end() == 0
        assert "Traceback" not in worker.errors()


def _wait_for(path: Path) -> None:
    import asyncio

    asyncio.run(until(lambda: path.exists() and path.stat().st_size > 0, within=60))


@pytest.mark.parametrize("state", [(), ("--state-dir", "state")])
def test_a_store_of_one_process_is_a_finding(state: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(ALONE)
    ended = frontdesk("worker", "app:make", *state, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    head, finding = ended.stderr.splitlines()[-2:]
    assert head == "frontdesk: app:make: 1 finding"
    assert finding.startswith("- store: a worker needs one that many processes can use")


def test_a_database_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WORKER)
    ended = frontdesk("worker", "app:host", cwd=tmp_path, env={"DATABASE": "host=127.0.0.1 port=1 dbname=none"})
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.endswith(
        "frontdesk: the worker did not start or did not end cleanly. See the log above for the reason\n"
    )
