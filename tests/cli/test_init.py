"""`frontdesk init`: what it asks, what it writes, and that what was written works."""

import ast
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from frontdesk.cli import main
from frontdesk.cli.init import CHANNEL_TEMPLATES, MODELS, list_files
from tests.cli.processes import environment, frontdesk
from tests.forked import run_forked

NAMES = ["host.py", "test_host.py", ".env.example", "requirements.txt", "README.md", "Makefile", ".gitignore"]


def run_tests(place: str) -> int:
    """Run the tests of a project, as its `make test` does."""
    return int(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", place, place]))


def test_the_written_project_passes_its_own_test(tmp_path: Path) -> None:
    place = tmp_path / "hotel"
    assert frontdesk("init", str(place), "--model", "openai", "--channels", ",".join(CHANNEL_TEMPLATES)).returncode == 0
    # The variables of the model are not set, and its package is not installed: neither is needed.
    asked = run_forked(
        "tests.cli.test_init:run_tests", str(place), directory=place, environment=environment(), stdin=""
    )
    assert f"{len(CHANNEL_TEMPLATES)} passed" in asked.stdout, asked.stdout
    assert asked.returncode == 0


@pytest.mark.parametrize("model", MODELS)
def test_each_model_has_a_host_that_is_python_and_the_settings_that_it_reads(model: str) -> None:
    files = list_files(model, ["web"])
    assert list(files) == NAMES
    ast.parse(files["host.py"])
    ast.parse(files["test_host.py"])
    set_up = dict(line.split("=", 1) for line in files[".env.example"].splitlines() if not line.startswith("#"))
    assert list(set_up) == [name for name, _, _ in MODELS[model].settings]
    assert all(len(shlex.split(value)) == 1 for value in set_up.values())
    assert all(name in files["host.py"] for name in set_up)
    assert MODELS[model].requirement in files["requirements.txt"]


@pytest.mark.parametrize("channel", CHANNEL_TEMPLATES)
def test_each_channel_can_be_the_only_one(channel: str) -> None:
    files = list_files("openai", [channel])
    imported = {name.name for node in ast.walk(ast.parse(files["host.py"])) for name in getattr(node, "names", [])}
    assert sum(name.endswith("Channel") for name in imported) == 1
    tests = [node for node in ast.parse(files["test_host.py"]).body if getattr(node, "name", "").startswith("test_")]
    assert len(tests) == 1
    assert ("BOT_TOKEN" in files[".env.example"]) == (channel == "telegram")
    assert ("BOT_APP_ID" in files[".env.example"]) == (channel == "activity")


def test_what_is_to_be_filled_in_is_named_before_anything_is_served(tmp_path: Path) -> None:
    assert frontdesk("init", ".", "--model", "openai", "--channels", "web", cwd=tmp_path).returncode == 0
    refused = subprocess.run(["make", "run"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert "2:OPENAI_API_KEY=''" in refused.stdout.splitlines()
    assert "Fill in these lines of .env" in refused.stderr
    settings = tmp_path / ".env"
    settings.write_text(settings.read_text("utf-8").replace("''", "'a-key'"), "utf-8")
    assert subprocess.run(["make", "filled"], cwd=tmp_path, timeout=60).returncode == 0


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.skipif(os.name == "nt", reason="Windows has no mode bits")
def test_the_makefile_wrote_keys_into_a_file_that_everybody_could_read(tmp_path: Path) -> None:
    assert frontdesk("init", ".", "--model", "openai", "--channels", "web", cwd=tmp_path).returncode == 0
    settings = tmp_path / ".env"

    def run(*command: str) -> int:
        return subprocess.run(command, cwd=tmp_path, timeout=60, umask=0o022).returncode

    assert (run("make", ".env"), _mode(settings)) == (0, 0o600)
    settings.unlink()
    # Copied by hand.
    assert (run("cp", ".env.example", ".env"), _mode(settings)) == (0, 0o600)
    # Written by hand, or copied from a checkout, which keeps no modes.
    settings.write_text("OPENAI_API_KEY='a-key'\n", "utf-8")
    settings.chmod(0o644)
    assert (run("make", "filled"), _mode(settings)) == (0, 0o600)


@pytest.mark.parametrize("taken", ["host.py", ".env.example", "Makefile"])
def test_nothing_is_overwritten(taken: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(taken).write_text("mine", "utf-8")
    assert main(["init", ".", "--model", "ollama", "--channels", "web"]) == 1
    assert f"has {taken} already" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == [taken]
    assert Path(taken).read_text("utf-8") == "mine"


def test_a_link_that_leads_nowhere_is_not_followed(folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    Path("host.py").symlink_to(elsewhere)
    assert main(["init", ".", "--model", "ollama", "--channels", "web"]) == 1
    assert not elsewhere.exists()


@pytest.mark.parametrize(
    ("typed", "model", "channels"),
    [
        ("", "OpenAIChatClient()", ["WebChatChannel", "ResponsesChannel"]),
        ("\n\n", "OpenAIChatClient()", ["WebChatChannel", "ResponsesChannel"]),
        ("gpt\nanthropic\ncar, web\ninvocations, web\n", "AnthropicClient()", ["WebChatChannel", "InvocationsChannel"]),
    ],
)
def test_it_asks_for_what_is_not_given(typed: str, model: str, channels: list[str], tmp_path: Path) -> None:
    asked = frontdesk("init", "hotel", cwd=tmp_path, stdin=typed)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert ("There is no 'gpt' among them." in asked.stdout) == ("There is no 'car' among them." in asked.stdout)
    assert ("'gpt'" in asked.stdout) == ("gpt" in typed)
    host = (tmp_path / "hotel/host.py").read_text("utf-8")
    assert f"return {model}" in host
    assert [f"{name}(" in host for name in channels] == [True, True]


def test_doors_that_there_are_not_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["init", "hotel", "--channels", "web,cat"])
    assert left.value.code == 2
    assert f"unknown channel 'cat', choose from {', '.join(CHANNEL_TEMPLATES)}" in capsys.readouterr().err


def test_a_place_that_can_t_be_written_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("", "utf-8")
    assert main(["init", "file/hotel", "--model", "openai", "--channels", "web"]) == 1
    assert "file/hotel can't be written" in capsys.readouterr().err


def test_a_host_without_the_package_of_its_model_says_what_to_install(tmp_path: Path) -> None:
    assert frontdesk("init", ".", "--model", "anthropic", "--channels", "web", cwd=tmp_path).returncode == 0
    checked = frontdesk("check", "host.py:build_host", cwd=tmp_path)
    assert checked.returncode == 1
    assert "agent-framework-anthropic" in checked.stderr


def test_make_install_said_nothing_about_frontdesk(tmp_path: Path) -> None:
    assert frontdesk("init", ".", "--model", "openai", "--channels", "web", cwd=tmp_path).returncode == 0
    assert "README.md" in (tmp_path / "requirements.txt").read_text("utf-8")
    assert "python -m pip install /path/to/frontdesk" in (tmp_path / "README.md").read_text("utf-8")
    # An interpreter without the package.
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "python").write_text("#!/bin/sh\nexit 1\n", "utf-8")
    (fake / "python").chmod(0o755)
    path = {**os.environ, "PATH": f"{fake}{os.pathsep}{os.environ['PATH']}"}
    refused = subprocess.run(["make", "install"], cwd=tmp_path, env=path, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert "Frontdesk is missing; README.md says how" in refused.stderr


def test_a_readme_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine", "utf-8")
    done = frontdesk("init", ".", "--model", "openai", "--channels", "web", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "README.md").read_text("utf-8") == "mine"
    assert "README.md" not in done.stdout
    assert (tmp_path / "host.py").exists()


def test_what_a_project_installs_can_be_read_by_pip() -> None:
    for model in MODELS:
        lines = [line for line in list_files(model, ["web"])["requirements.txt"].splitlines() if line[:1] != "#"]
        assert lines == [MODELS[model].requirement, "pytest>=8"]
