"""The command as a whole: help, usage, and what it costs to start."""

import subprocess
import sys
from pathlib import Path

import pytest

from frontdesk.cli import main
from tests.cli.processes import environment, frontdesk


def test_help_names_every_subcommand() -> None:
    ended = frontdesk("--help")
    assert ended.returncode == 0
    assert all(f"    {name} " in ended.stdout for name in ("serve", "demo", "chat", "check"))


def test_the_installed_script_is_the_same_command() -> None:
    script = Path(sys.executable).with_name("frontdesk")
    ended = subprocess.run([script, "--version"], capture_output=True, text=True, env=environment())
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("frontdesk 0.")


def test_help_imports_nothing_heavy() -> None:
    heavy = "agent_framework httpx starlette uvicorn msgspec asyncio pydantic"
    code = (
        "import sys\nfrom frontdesk.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print('loaded:', [name for name in {heavy.split()} if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert ended.stdout.endswith("loaded: []\n"), ended


@pytest.mark.parametrize("command", ["serve", "demo", "chat", "check"])
def test_each_subcommand_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"usage: frontdesk {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("", "command"),
        ("sing", "'sing'"),
        ("serve", "module:host"),
        ("serve app", "'app:host'"),
        ("serve app.py", "'app.py:host'"),
        ("check :host", "':host'"),
        ("check app:", "'app:'"),
        ("check app:1st", "'app:1st'"),
        ("check my-app:host", "'my-app'"),
        ("serve app:host --port many", "'many'"),
        ("serve app:host --port 70000", "'70000'"),
        ("demo --port -1", "--port"),
        ("demo --state-dir=", "--state-dir"),
        ("serve app:host --log-level loud", "'loud'"),
        ("serve app:host --max-connections 0", "'0' must be a number"),
        ("serve app:host --head-seconds never", "'never' is not a number of seconds"),
        ("chat localhost:8000", "'localhost:8000'"),
        ("chat ftp://localhost", "'ftp://localhost'"),
        ("chat http://", "'http://'"),
        ("chat http://localhost:99999", "'http://localhost:99999'"),
        ("chat http://[::1", "'http://[::1'"),
        ("chat --api-key a --api-key-file b", "--api-key-file"),
    ],
)
def test_wrong_usage_is_2_and_names_what_is_wrong(line: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(line.split())
    assert left.value.code == 2
    assert named in capsys.readouterr().err.splitlines()[-1]


def test_a_reader_that_leaves_is_no_traceback(tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m frontdesk.cli check frontdesk.demo:build_host | true"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), cwd=tmp_path)
    assert ended.stderr == ""
