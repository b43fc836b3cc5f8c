"""`frontdesk demo`: what it prints works."""

import contextlib
import importlib.util
import json
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import Running, frontdesk


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory in which the path of a socket has less than 108 bytes, whatever the directory of the tests is."""
    with tempfile.TemporaryDirectory(prefix="fd-", dir="/tmp" if Path("/tmp").is_dir() else None) as directory:
        yield Path(directory)


def curls(demo: Running) -> list[str]:
    demo.url()
    return [line.strip() for line in demo.output.splitlines() if line.strip().startswith("curl ")]


def paste(line: str) -> str:
    """What the line prints in a shell; without curl, what the request that it describes is answered."""
    if shutil.which("curl"):
        return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, timeout=60).stdout
    _, _, url, _, header, _, body = shlex.split(line)
    name, _, value = header.partition(": ")
    return httpx.post(url, headers={name: value}, content=body).text


def test_the_curl_lines_work_when_pasted(demo: Running) -> None:
    plain, again, streamed, openai = curls(demo)
    first = json.loads(paste(plain))
    assert first["status"] == "completed"
    assert first["text"].startswith("Breakfast is served from 7:00")
    assert first["usage"]["total_token_count"] > 0
    second = json.loads(paste(again))
    assert second["session_id"] == first["session_id"]
    assert second["text"] == "You said “My name is Ada. When is breakfast?”."
    events = [line for line in paste(streamed).splitlines() if line.startswith("event: ")]
    assert events[0] == "event: started"
    assert events.count("event: update") > 20
    assert events[-1] == "event: completed"
    answer = json.loads(paste(openai))
    assert (answer["object"], answer["status"], answer["model"]) == ("response", "completed", "Concierge")
    assert "391" in answer["output"][0]["content"][0]["text"]


def test_the_urls_are_served(demo: Running) -> None:
    base = demo.url()
    assert httpx.get(f"{base}/invocations/docs/openapi.json").json()["info"]["title"] == "Concierge"
    assert httpx.get(f"{base}/healthz").status_code == 200
    assert "<title>The Marmalade</title>" in httpx.get(f"{base}/chat").text
    # The page comes first: it is what a newcomer opens.
    assert demo.output.find("http") == demo.output.find(f"{base}/chat")
    assert all(url in demo.output for url in (f"{base}/invocations/docs/openapi.json", f"{base}/healthz"))


def test_the_chat_line_works_when_pasted(demo: Running) -> None:
    demo.url()
    [line] = [line.strip() for line in demo.output.splitlines() if " chat " in line and "http" in line]
    ended = subprocess.run(["sh", "-c", line], input="Thanks\n", capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "At your service.\n", "")


def test_the_next_free_port_is_taken_and_told() -> None:
    with contextlib.ExitStack() as stack:
        # If another program has the port already, so much the better.
        with contextlib.suppress(OSError):
            stack.enter_context(socket.create_server(("127.0.0.1", 8000)))
        demo = stack.enter_context(Running("demo"))
        port = demo.url().rpartition(":")[2]
        assert port != "8000"
        assert demo.output.startswith(f"Port 8000 is taken, so the demo is on port {port}.\n")
        assert demo.stop() == 0
        assert demo.errors() == ""


def test_it_remembers_where_it_was_told_to(short_path: Path) -> None:
    said: list[str] = []
    for message in ("My name is Ada.", "What did I say before?"):
        with Running("demo", "--port", "0", "--state-dir", str(short_path / "state")) as demo:
            body = {"message": message, "session_id": "visit"}
            said.append(httpx.post(f"{demo.url()}/invocations", json=body).raise_for_status().json()["text"])
            assert demo.stop() == 0
            assert demo.errors() == ""
    assert said[1] == "You said “My name is Ada.”."


def test_a_state_directory_that_can_t_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = frontdesk("demo", "--state-dir", str(tmp_path / "file"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"frontdesk: the demo: 1 finding\n- state_dir: {tmp_path / 'file'} is not a directory\n"


def test_a_port_that_was_asked_for_is_not_replaced() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = frontdesk("demo", "--port", port)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"frontdesk: port {port} of 127.0.0.1 is in use. Choose another with --port\n"


def test_it_is_not_shown_to_other_machines() -> None:
    ended = frontdesk("demo", "--host", "0.0.0.0")
    assert ended.returncode == 1
    assert ended.stderr.startswith("frontdesk: the demo: 5 findings\n")


@pytest.mark.skipif(importlib.util.find_spec("agent_framework_openai") is not None, reason="the extra is installed")
def test_a_key_without_the_package_says_how_to_install_it_and_goes_on() -> None:
    with Running("demo", "--port", "0", env={"OPENAI_API_KEY": "sk-a-secret"}) as demo:
        base = demo.url()
        assert '-m pip install ".[openai]"' in demo.output
        assert "sk-a-secret" not in demo.output
        assert httpx.post(f"{base}/invocations", json={"message": "Thanks"}).json()["text"] == "At your service."


def test_the_fake_telegram_has_a_page_and_ends_with_the_demo() -> None:
    with Running("demo", "--port", "0", "--telegram") as demo:
        demo.url()
        [page] = [line.split()[1] for line in demo.output.splitlines() if line.strip().startswith("Telegram ")]
        with httpx.Client(base_url=page, trust_env=False, timeout=60) as http:
            assert "<html" in http.get("/").text
            ann = next(user["id"] for user in http.get("/people/state").json()["users"] if not user["is_bot"])
            assert http.post("/people/say", json={"user": ann, "text": "When is breakfast?"}).status_code == 200
            state = {"after": -1, "chat": ann, "user": ann}
            while "Breakfast is served" not in (shown := http.get("/people/state", params=state)).text:
                state["after"] = shown.json()["changes"]
            assert demo.stop() == 0
            assert demo.errors() == ""
            with pytest.raises(httpx.ConnectError):
                http.get("/")
