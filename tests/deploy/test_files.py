"""The files in deploy/: what they name is there, and their commands work."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from frontdesk.cli.options import build_parser
from tests.cli.processes import Running, frontdesk
from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def instruction(name: str) -> list[str]:
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Lay a directory out as the image has it, with a key."""
    shutil.copy(DEPLOY / "host.py", tmp_path)
    made = frontdesk("keys", "create", "ada", "--file", "keys.jsonl", cwd=tmp_path)
    (tmp_path / "key.txt").write_text(made.stdout.strip(), "utf-8")
    return tmp_path


def ask(url: str, place: Path) -> tuple[int, int]:
    """Return the statuses of a request with the key, and of one without."""
    key = {"x-api-key": (place / "key.txt").read_text("utf-8")}
    answers = [httpx.post(f"{url}/v1/responses", json={"input": "hi"}, headers=headers) for headers in (key, {})]
    return answers[0].status_code, answers[1].status_code


def parse_command(command: list[str]) -> list[str]:
    """Return the words behind `frontdesk`, for any free port."""
    assert command[0] == "frontdesk"
    build_parser().parse_args(command[1:])
    return ["0" if word == "8000" else word for word in command[1:]]


def test_what_the_image_copies_is_there() -> None:
    sources = [source for line in instruction("COPY") if "--from" not in line for source in line.split()[:-1]]
    assert sources
    assert all((ROOT / source).exists() for source in sources)
    assert {"pyproject.toml", "README.md", "LICENSE"} <= set(sources), "the package can't be built without them"


@pytest.mark.parametrize(
    ("extras", "installed"), [("", "."), ("postgres", ".[postgres]"), ("oauth,seal", ".[oauth,seal]")]
)
def test_the_image_can_have_any_extras(extras: str, installed: str) -> None:
    (words,) = re.findall(r'--no-build-isolation (".+") ', DOCKERFILE)
    said = subprocess.run(["sh", "-c", f"echo {words}"], env={"EXTRAS": extras}, capture_output=True, text=True)
    assert said.stdout.strip() == installed


def test_the_image_s_command_serves_and_its_health_check_agrees(place: Path) -> None:
    (command,) = instruction("CMD")
    (check,) = re.findall(r"CMD (\[.+\])$", instruction("HEALTHCHECK")[0])
    with Running(*parse_command(json.loads(command)), cwd=place) as server:
        url = server.url()
        assert ask(url, place) == (200, 401)
        program, *words = json.loads(check)
        asked = [sys.executable, *(word.replace("http://127.0.0.1:8000", url) for word in words)]
        assert program == "python"
        assert subprocess.run(asked, timeout=60).returncode == 0
        assert server.stop() == 0
    assert subprocess.run(asked, timeout=60, capture_output=True).returncode != 0
    assert (place / "state/frontdesk.db").exists()


def test_the_hosts_of_compose_share_a_database(place: Path, postgres: str) -> None:
    command = parse_command(COMPOSE["services"]["host"]["command"])
    env = {"DATABASE_URL": postgres, "KEY_FILE": str(place / "keys.jsonl")}
    assert set(COMPOSE["services"]["host"]["environment"]) == set(env)
    with Running(*command, cwd=place, env=env) as server:
        assert ask(server.url(), place) == (200, 401)
        assert server.stop() == 0
    assert not (place / "state").exists()


def test_compose_names_what_there_is() -> None:
    services = COMPOSE["services"]
    parse_command(services["worker"]["command"])
    for name in ("host", "worker"):
        build = services[name]["build"]
        context = (DEPLOY / build["context"]).resolve()
        assert (context / build["dockerfile"]).is_file()
        assert set(services[name]["secrets"]) <= set(COMPOSE["secrets"])
        assert set(services[name]["depends_on"]) <= set(services)
    volumes = {volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert volumes == set(COMPOSE["volumes"])
    assert "ports" not in services["host"], "only the proxy is reached from outside"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "frontdesk.service").read_text("utf-8")
    (started,) = re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)
    program, *words = shlex.split(started)
    assert program.endswith("/bin/frontdesk")
    build_parser().parse_args(words)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("NOT TESTED: whether systemd takes deploy/frontdesk.service: there is no systemd-analyze")
    unit = tmp_path / "frontdesk.service"
    # The program and the user are those of another machine.
    unit.write_text(text.replace(program, sys.executable).replace("User=hotel", "User=root"), "utf-8")
    checked = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")
