"""`frontdesk serve`: a real server in a process of its own."""

import gc
import importlib.util
import signal
import socket
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import PARROT
from tests.cli.processes import Running, frontdesk

NO_START = """
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel


async def echo(text: str) -> str:
    return text


async def connect() -> None:
    raise RuntimeError("no database")


host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], on_startup=[connect])
"""


def ask(server: Running, text: str) -> str:
    answer = httpx.post(f"{server.url()}/invocations", json={"message": text})
    answer.raise_for_status()
    return answer.json()["text"]


def test_the_urls_that_it_prints_are_served(parrot: Running) -> None:
    base = parrot.url()
    lines = parrot.output.splitlines()
    assert lines[0] == f"parrot is served at {base}"
    assert lines[1].split(maxsplit=2) == ["invocations", f"{base}/invocations", "no auth: it answers this machine only"]
    assert lines[2].split(maxsplit=2) == ["locked", f"{base}/locked", "auth: api_key"]
    for word in parrot.output.split():
        if word.endswith("z"):
            assert httpx.get(word).json() == {"status": "ok"}
    assert ask(parrot, "hello") == "you said hello"


def test_the_process_is_tuned(parrot: Running) -> None:
    frozen, threshold, loop = ask(parrot, "process").split()
    assert frozen == "True"
    assert int(threshold) > gc.get_threshold()[0]
    assert loop == ("uvloop" if importlib.util.find_spec("uvloop") else "asyncio.unix_events")


def test_ctrl_c_ends_it_well(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(PARROT)
    with Running("serve", "./parrot.py:make", "--port", "0", "--log-level", "debug", cwd=tmp_path) as server:
        assert ask(server, "hello") == "you said hello"
        assert server.stop() == 0
        errors = server.errors()
    assert '"POST /invocations HTTP/1.1" 200' in errors
    assert "runtime mode: long_running" in errors
    assert "Traceback" not in errors


def test_a_second_ctrl_c_does_not_wait_for_an_answer_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(PARROT)
    with Running("serve", "parrot:make", "--port", "0", cwd=tmp_path) as server, Running("chat", server.url()) as chat:
        chat.type("for ever")
        chat.read_until("you said ")
        server.interrupt()
        server.read_errors_until("Waiting for connections to close")
        assert server.stop() == 0
        assert "Traceback" not in server.errors()
        assert chat.end() == 1
        [line] = chat.errors().splitlines()
        assert line.startswith("frontdesk: ")


def test_a_termination_ends_it(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(PARROT)
    with Running("serve", "parrot:make", "--port", "0", "--log-level", "error", cwd=tmp_path) as server:
        server.url()
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == -signal.SIGTERM
        assert server.errors() == ""


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(PARROT)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = frontdesk("serve", "parrot:make", "--port", port, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"frontdesk: port {port} of 127.0.0.1 is in use. Choose another with --port\n"


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_public_address_without_auth_is_a_finding(address: str, tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(PARROT)
    ended = frontdesk("serve", "parrot:make", "--host", address, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    head, finding = ended.stderr.splitlines()
    assert head == "frontdesk: parrot:make: 1 finding"
    assert finding.startswith(f"- channel 'invocations': {address} ")


def test_an_address_of_nobody_is_named(tmp_path: Path) -> None:
    source = PARROT.replace("locked])", "locked], allow_anonymous=True)")
    (tmp_path / "parrot.py").write_text(source)
    for address in ("no..where", "192.0.2.1"):
        ended = frontdesk("serve", "parrot:make", "--host", address, cwd=tmp_path)
        assert (ended.returncode, ended.stdout) == (1, "")
        [line] = ended.stderr.splitlines()
        assert address in line


def test_a_state_directory_in_use_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(
        PARROT.replace("def make():", "def make(state_dir=None):").replace("locked])", "locked], state_dir=state_dir)")
    )
    serving = ("serve", "parrot:make", "--port", "0", "--state-dir", "state")
    with Running(*serving, cwd=tmp_path) as first:
        assert ask(first, "hello") == "you said hello"
        second = frontdesk(*serving, cwd=tmp_path)
        assert (second.returncode, second.stdout) == (1, "")
        assert (
            f"{tmp_path / 'state'} can't be used: another host uses it, process {first.process.pid} on "
            in second.stderr
        )
        assert "Traceback" not in second.stderr
        first.process.kill()
        first.process.wait()
    with Running(*serving, cwd=tmp_path) as third:
        assert ask(third, "hello") == "you said hello"
        assert third.stop() == 0
        assert "Traceback" not in third.errors()


def test_a_database_that_is_away_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(
        PARROT.replace("import AgentFrameworkHost", "import AgentFrameworkHost, PostgresStateStore").replace(
            "locked])", 'locked], store=PostgresStateStore("host=127.0.0.1 port=1 dbname=x"))'
        )
    )
    done = frontdesk("serve", "parrot:make", "--port", "0", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        "callback failed: callback=start-up owner=store: the database can't be opened: OperationalError: "
        in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_a_host_that_does_not_start_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(NO_START)
    ended = frontdesk("serve", "app:host", "--port", "0", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "callback failed: callback=start-up owner=connect" in ended.stderr
    assert ended.stderr.endswith("frontdesk: the host did not start. See the log above for the reason\n")


def _raw(server: Running, data: bytes) -> bytes:
    host, _, port = server.url().removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as wire:
        wire.sendall(data)
        received = b""
        while piece := wire.recv(65536):
            received += piece
        return received


def test_the_limits_of_heads_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(PARROT)
    options = ("--max-url-bytes", "100", "--max-head-bytes", "1000", "--head-seconds", "0.1", "--max-connections", "50")
    with Running("serve", "parrot:make", "--port", "0", *options, cwd=tmp_path) as server:
        assert ask(server, "hello") == "you said hello"
        assert _raw(server, b"GET /" + b"a" * 100 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 414 ")
        assert _raw(server, b"GET / HTTP/1.1\r\nx: " + b"a" * 1000).startswith(b"HTTP/1.1 431 ")
        assert _raw(server, b"GET / HTTP/1.1\r\n").startswith(b"HTTP/1.1 408 ")


def test_limits_that_could_not_hold_are_told(tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(PARROT)
    done = frontdesk("serve", "parrot:make", "--port", "0", "--max-head-bytes", "100", cwd=tmp_path)
    assert done.returncode == 1
    assert "max_url_bytes is larger than max_head_bytes" in done.stderr
