"""`frontdesk keys`: made, listed and revoked, while a host runs."""

import json
from pathlib import Path

import httpx
import pytest

from frontdesk.auth.api_keys import read_keys
from frontdesk.cli import main
from frontdesk.cli.keys import PREFIX
from tests.cli.processes import Running, frontdesk
from tests.scenarios.desk import until

HOST = """
from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel


async def echo(text: str) -> str:
    return text


host = AgentFrameworkHost(echo, channels=[InvocationsChannel(auth=ApiKeyAuth.from_file("keys.jsonl"))])
"""


def keys(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs the command in this process."""
    code = main(["keys", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_key_is_shown_once_and_kept_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = keys(capsys, "create", "alice")
    key = out.strip()
    assert code == 0
    assert out == f"{key}\n"
    assert key.startswith(PREFIX)
    assert len(key) > 40
    assert "alice" in err
    assert key not in err
    assert key not in (tmp_path / "keys.jsonl").read_text()
    assert oct((tmp_path / "keys.jsonl").stat().st_mode)[-3:] == "600"


def test_keys_are_listed_without_their_hashes(capsys: pytest.CaptureFixture[str]) -> None:
    keys(capsys, "create", "alice", "--expires", "90d")
    keys(capsys, "create", "bob")
    made = read_keys(Path("keys.jsonl"))
    code, out, _ = keys(capsys, "list")
    head, first, second = out.splitlines()
    assert code == 0
    assert head.split() == ["id", "principal", "state", "created", "expires", "revoked"]
    assert first.split() == [made[0].id, "alice", "active", made[0].created, made[0].expires]
    assert second.split() == [made[1].id, "bob", "active", made[1].created]
    rows = json.loads(keys(capsys, "list", "--json")[1])
    assert [row["principal"] for row in rows] == ["alice", "bob"]
    assert set(rows[0]) == {"id", "principal", "state", "created", "expires", "revoked"}


def test_a_key_is_revoked_once(capsys: pytest.CaptureFixture[str]) -> None:
    keys(capsys, "create", "alice")
    (made,) = read_keys(Path("keys.jsonl"))
    assert keys(capsys, "revoke", made.id)[:2] == (
        0,
        f"{made.id} of alice is revoked. A host that runs refuses it within a second.\n",
    )
    assert "is revoked already, since" in keys(capsys, "revoke", made.id)[1]
    assert " revoked " in keys(capsys, "list")[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["list"], "--file: file keys.jsonl not found"),
        (["revoke", "key_1", "--file", "nowhere/keys.jsonl"], "--file: file nowhere/keys.jsonl not found"),
        (["create", "alice", "--file", "nowhere/keys.jsonl"], "can't be written"),
        (["create", "alice", "--file", "."], "can't be read"),
        (["create", ""], "NAME: invalid principal name"),
        (["create", "anonymous"], "NAME: invalid principal name"),
        (["create", "a\x1b[31m"], r"NAME: invalid principal name 'a\\u001b[31m'"),
        (["create", "alice", "--expires", "soon"], "--expires: a time must look like"),
        (["create", "alice", "--expires", "0d"], "--expires: a time must look like"),
        (["create", "alice", "--expires", "2020-01-01"], "--expires: 2020-01-01 is in the past"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = keys(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("frontdesk: ")
    assert told in err
    assert len(err.splitlines()) == 1


def test_a_broken_file_is_not_made_longer(capsys: pytest.CaptureFixture[str]) -> None:
    Path("keys.jsonl").write_text("half a li")
    code, _, err = keys(capsys, "create", "alice")
    assert (code, "keys.jsonl, line 1: this is not JSON" in err) == (1, True)
    assert Path("keys.jsonl").read_text() == "half a li"
    keys(capsys, "create", "alice", "--file", "good.jsonl")
    code, _, err = keys(capsys, "revoke", "key_1", "--file", "good.jsonl")
    assert (code, err) == (1, "frontdesk: ID: good.jsonl has no key key_1\n")


def test_wrong_usage_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("", "create", "revoke", "rotate"):
        with pytest.raises(SystemExit) as left:
            main(["keys", *line.split()])
        assert left.value.code == 2
    capsys.readouterr()


async def test_a_running_host_takes_up_new_keys_and_drops_revoked_ones(tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(HOST)
    first = frontdesk("keys", "create", "alice", cwd=tmp_path).stdout.strip()
    with Running("serve", "host.py:host", "--port", "0", cwd=tmp_path) as server:
        url = f"{server.url()}/invocations"

        async def status(key: str) -> int:
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.post(url, json={"message": "hi"}, headers={"x-api-key": key})
            return answer.status_code

        async def is_in(key: str, wanted: int) -> bool:
            return await status(key) == wanted

        assert await status(first) == 200
        second = frontdesk("keys", "create", "alice", cwd=tmp_path).stdout.strip()
        await until(lambda: is_in(second, 200))
        listed = json.loads(frontdesk("keys", "list", "--json", cwd=tmp_path).stdout)
        frontdesk("keys", "revoke", listed[0]["id"], cwd=tmp_path)
        await until(lambda: is_in(first, 401))
        assert await status(second) == 200
        assert server.stop() == 0
        assert first not in server.output
        assert second not in server.output


def test_a_host_without_its_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(HOST)
    ended = frontdesk("check", "host.py:host", cwd=tmp_path)
    assert ended.returncode == 1
    assert "file keys.jsonl not found. Create it with `frontdesk keys create NAME --file keys.jsonl`" in ended.stderr
    assert "Traceback" not in ended.stderr
