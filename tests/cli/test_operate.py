"""The commands for operators, beside a host that runs in a process of its own, and without one."""

import asyncio
import getpass
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk.admin.actions import ACTIONS
from frontdesk.admin.queries import FILTERS
from frontdesk.cli import main
from frontdesk.cli.operate import _OUTCOMES, COLUMNS
from frontdesk.cli.operator_options import KINDS
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.operations import Expiry
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing.store_ledger import fill
from frontdesk_testing.store_samples import audit_line, build_identity, link, question
from tests.cli.processes import Running, frontdesk
from tests.invisible import invisible_in
from tests.scenarios.desk import until

HOST = """
import asyncio
import os
from frontdesk import AgentFrameworkHost, PostgresStateStore
from frontdesk.channels.invocations import InvocationsChannel


async def echo(text: str) -> str:
    if text == "for ever":
        await asyncio.Event().wait()
    if text == "fail":
        raise RuntimeError("broken")
    return f"secret {text}"


def make(state_dir=None):
    place = os.environ.get("DATABASE")
    store = PostgresStateStore(place) if place else None
    return AgentFrameworkHost(echo, channels=[InvocationsChannel()], state_dir=state_dir, store=store)
"""


FOR_GOOD = Expiry(**dict.fromkeys(Expiry.__struct_fields__))


class Beside:
    """A running host, and the place of its state for commands."""

    def __init__(self, place: str, url: str) -> None:
        self.place = place
        self.url = url

    def command(self, *words: str) -> Any:
        """Run a command; return what it prints as JSON."""
        done = frontdesk(*words, "--json", "--state", self.place)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def post(self, **body: Any) -> Any:
        return httpx.post(f"{self.url}/invocations", json=body, timeout=60).json()


@pytest.fixture(params=["sqlite", "postgres"])
def beside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Beside]:
    (tmp_path / "app.py").write_text(HOST)
    state: tuple[str, ...] = ("--state-dir", str(tmp_path / "state"))
    place, env = str(tmp_path / "state"), {}
    if request.param == "postgres":
        place = request.getfixturevalue("postgres")
        state, env = (), {"DATABASE": place}
    with Running("serve", "app:make", "--port", "0", *state, cwd=tmp_path, env=env) as server:
        yield Beside(place, server.url())
        assert server.stop() == 0


def test_an_operator_works_beside_a_host(beside: Beside) -> None:
    beside.post(message="hello", session_id="mine")
    beside.post(message="fail")
    (failed,) = beside.command("runs", "list", "--status", "failed")["runs"]
    assert (failed["error"], failed["channel"]) == ("target_failed", "invocations")
    session = beside.command("sessions", "list", "--since", "1h", "--person", failed["person"])["sessions"][-1]
    assert "secret" not in json.dumps(beside.command("sessions", "show", session["session_id"]))
    shown = beside.command("sessions", "show", session["session_id"], "--content")
    assert shown["last_messages"][-1] == {"role": "assistant", "text": "secret hello"}
    run = beside.post(message="for ever", background=True)
    _cancel(beside, run["id"])
    lines = beside.command("audit", "list", "--by", "operator:ann")["audit"]
    assert [(line["action"], line["subject"]) for line in lines] == [("run_cancelled", run["id"])]
    (person,) = beside.command("people", "list", "--person", failed["person"])["people"]
    assert person["channel"] == "invocations"
    again = frontdesk("runs", "cancel", run["id"], "--state", beside.place)
    assert (again.returncode, "Only a pending or running background run" in again.stderr) == (4, True)
    gone = frontdesk("runs", "show", "run_nobodys", "--state", beside.place)
    assert (gone.returncode, gone.stderr) == (3, "frontdesk: No run with this id.\n")


def _cancel(beside: Beside, run_id: str) -> None:
    async def is_running() -> bool:
        return beside.command("runs", "show", run_id)["taken_up"]

    asyncio.run(until(is_running, within=60))
    seen = beside.command("runs", "show", run_id)["seen"]
    old = frontdesk("runs", "cancel", run_id, "--seen", "0123", "--state", beside.place)
    assert (old.returncode, "has changed since" in old.stderr) == (4, True)
    done = frontdesk("runs", "cancel", run_id, "--seen", seen, "--by", "ann", "--state", beside.place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{run_id} is ")

    async def is_cancelled() -> bool:
        return beside.command("runs", "show", run_id)["status"] == "cancelled"

    asyncio.run(until(is_cancelled, within=60))


def test_a_host_that_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(HOST)
    with Running("serve", "app:make", "--port", "0", "--state-dir", "state", cwd=tmp_path) as server:
        server.url()
        server.process.kill()
        server.process.wait()
        assert (tmp_path / "state" / "frontdesk.sock").exists()
        done = frontdesk("runs", "list", "--state", "state", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    with Running("serve", "app:make", "--port", "0", "--state-dir", "state", cwd=tmp_path) as server:
        server.url()
        done = frontdesk("runs", "list", "--socket", "state/frontdesk.sock", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        other = tmp_path / "state" / "other.db"
        other.write_bytes(b"")
        wrong = frontdesk("runs", "list", "--state", str(other), cwd=tmp_path)
        assert (wrong.returncode, "uses the state" in wrong.stderr) == (1, True)
    done = frontdesk("runs", "list", "--socket", "nowhere.sock", cwd=tmp_path)
    assert (done.returncode, "no host listens" in done.stderr) == (1, True)


def test_a_socket_that_others_could_have_put_there_is_not_used(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as foreign:
        foreign.bind(str(tmp_path / "frontdesk.sock"))
        foreign.listen()
        tmp_path.chmod(0o777)
        for place in ("--state", str(tmp_path)), ("--socket", str(tmp_path / "frontdesk.sock")):
            done = frontdesk("runs", "list", *place)
            assert (done.returncode, "is not used" in done.stderr) == (1, True)


async def _fill(store: SqlStateStore) -> None:
    await store.open()
    await fill(store, 7)
    await store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place with rows of each kind, and no host."""
    if request.param == "sqlite":
        asyncio.run(_fill(SqliteStateStore(tmp_path / "frontdesk.db", expiry=FOR_GOOD)))
        return str(tmp_path)
    place = request.getfixturevalue("postgres_tables")
    asyncio.run(_fill(PostgresStateStore(place, expiry=FOR_GOOD)))
    return place


def test_each_kind_is_listed_by_pages(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, columns in COLUMNS.items():
        assert main([kind, "list", "--state", place, "--limit", "3"]) == 0
        head, *rows = capsys.readouterr().out.splitlines()
        assert head.split() == list(columns)
        last = rows[-1]
        assert last.startswith("There may be more: --after ")
        shown = [line for line in rows[:-1] if not line.startswith("All together")]
        after = last.split()[-1]
        assert main([kind, "list", "--state", place, "--after", after]) == 0
        rest = [line for line in capsys.readouterr().out.splitlines()[1:] if not line.startswith("All together")]
        assert (len(shown), len(rest)) == (3, 4)


async def _add_names(store: SqlStateStore) -> None:
    """Ada, whose name a link has verified, and Eve, who calls herself Ada Lovelace."""
    ada = ChannelIdentity("telegram", "1001", {"name": "ada"})
    eve = ChannelIdentity("telegram", "vis_01a1ec71c6aabbccddee", {"name": "Ada Lovelace” \u202e (id 1001)" + "x" * 90})
    await store.open()
    async with store.transaction() as transaction:
        for identity, key in ((ada, "key_ada"), (eve, "key_eve")):
            transaction.remember_identity(build_identity(identity, key))
            asked = question(f"apr_{key}", owner=key).replace(requester=Caller(identity=identity))
            transaction.add_approval(asked)
            transaction.add_audit(audit_line(subject=f"apr_{key}").replace(owner=key, by=key))
        transaction.add_link(link(ada, key="key_ada").replace(claims={"name": "Ada Lovelace"}))
    await store.close()


@pytest.mark.parametrize("kind", ["approvals", "people", "audit"])
def test_an_operator_read_keys_although_the_names_were_known(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(_add_names(SqliteStateStore(tmp_path / "frontdesk.db", expiry=FOR_GOOD)))
    assert main([kind, "list", "--state", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert invisible_in(shown) == []
    (eve,) = [line for line in shown.splitlines() if "key_eve" in line]
    (ada,) = [line for line in shown.splitlines() if "key_ada" in line]
    # Her name ends where its mark does, and is cut.
    (name, more) = re.findall(r"“([^”]*)” \(([^)]*)\)", eve)[0]
    assert name.startswith("Ada Lovelace \\u202e (id 1001)x")
    assert len(name) <= 80
    assert more.startswith("unverified")
    assert "“Ada Lovelace”" in ada if kind != "approvals" else "“ada” (unverified, 1001)" in ada
    assert "vis_01a1…ddee" in eve or kind == "people"
    assert main([kind, "list", "--json", "--state", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)[kind]
    fields = {"approvals": "requester_name", "people": "shown_name", "audit": "by_name"}
    assert sorted(row[fields[kind]] for row in rows)[-1 if kind == "approvals" else 0] in ("ada", "Ada Lovelace")


def test_an_approval_and_an_event_are_cancelled_without_a_host(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approvals", "cancel", "apr_1", "--state", place]) == 0
    assert capsys.readouterr().out.startswith("apr_1 is cancelled. Messages that show it keep their buttons")
    assert main(["inbox", "list", "--channel", "slack", "--json", "--state", place]) == 0
    number = str(json.loads(capsys.readouterr().out)["inbox"][-1]["number"])
    assert main(["inbox", "cancel", number, "--state", place]) == 0
    assert capsys.readouterr().out == f"Event {number} is cancelled.\n"
    assert main(["inbox", "list", "--status", "cancelled", "--json", "--state", place]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["event_id"] for row in listed["inbox"]] == ["evt_1"]
    assert main(["audit", "list", "--since", "1h", "--state", place]) == 0
    lines = [line.split()[2:5] for line in capsys.readouterr().out.splitlines()[1:]]
    by = f"operator:{getpass.getuser()}"
    assert lines == [["event_cancelled", "event", number], ["cancelled", "apr_1", by]]


def test_an_approval_is_answered_shown_and_exported_and_each_is_audited(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ["approvals", "answer", "apr_1", "--no", "--reason", "too much", "--by", "ann", "--state", place]
    assert main(answer) == 0
    assert capsys.readouterr().out.startswith("apr_1 is rejected. ")
    assert main(["approvals", "show", "apr_1", "--content", "--state", place]) == 0
    assert "too much" in capsys.readouterr().out
    assert main(["approvals", "export", "--by", "bob", "--status", "rejected", "--state", place]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    exported = json.loads(line)
    assert (exported["approval_id"], exported["reason"]) == ("apr_1", "too much")
    assert [vote["by"] for vote in exported["votes"]] == ["operator:ann"]
    assert main(["audit", "list", "--since", "1h", "--json", "--state", place]) == 0
    lines = [(row["action"], row["by"]) for row in json.loads(capsys.readouterr().out)["audit"]]
    me = f"operator:{getpass.getuser()}"
    assert lines == [("exported", "operator:bob"), ("read", me), ("rejected", "operator:ann")]


@pytest.mark.parametrize(
    "line",
    ["list", "list --state x --status lost", "list --state x --limit 0", "show --state x", "burn 1 --state x"],
)
def test_wrong_usage_is_2(line: str) -> None:
    for kind in KINDS:
        with pytest.raises(SystemExit) as left:
            main([kind, *line.split()])
        assert left.value.code == 2


def test_a_wrong_time_or_cursor_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(_fill(SqliteStateStore(tmp_path / "frontdesk.db")))
    assert main(["runs", "list", "--since", "monday", "--state", str(tmp_path)]) == 1
    assert "--since:" in capsys.readouterr().err
    assert main(["runs", "list", "--after", "x", "--state", str(tmp_path)]) == 1
    assert "Invalid cursor for runs" in capsys.readouterr().err


def test_the_command_line_offers_what_there_is() -> None:
    assert KINDS.keys() == FILTERS.keys() == COLUMNS.keys()
    for name, kind in KINDS.items():
        assert {*kind.filters, "id"} == set(FILTERS[name]), name  # type: ignore[index]
        # A question is approved or rejected by `answer --yes` and `--no`.
        worded = ("approve", "reject") if name == "approvals" else ()
        assert (*kind.actions, *worded) == ACTIONS.get(name, ()), name  # type: ignore[arg-type]
    assert {(kind, action) for kind, actions in ACTIONS.items() for action in actions} == set(_OUTCOMES)
