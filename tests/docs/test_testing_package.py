"""The testing kit is a distribution of its own, with the version of the package."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import frontdesk.testing
import frontdesk_testing
from frontdesk.scripted import ScriptedChatClient
from tests.docs.pages import ROOT

MAIN = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
KIT = tomllib.loads((ROOT / "packages/frontdesk-testing/pyproject.toml").read_text("utf-8"))["project"]
WITHOUT_KIT = """
import sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name == "frontdesk_testing" else find(name, *rest)
sys.meta_path[:] = [finder for finder in sys.meta_path if "ditable" not in repr(finder)]
"""


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )


def run_without_kit(code: str) -> subprocess.CompletedProcess[str]:
    return run_python("-c", WITHOUT_KIT + code)


def test_both_distributions_have_one_version() -> None:
    assert KIT["version"] == MAIN["version"]
    assert KIT["dependencies"] == [f"frontdesk=={MAIN['version']}"]
    assert MAIN["optional-dependencies"]["testing"] == [f"frontdesk-testing=={KIT['version']}"]
    assert KIT["requires-python"] == MAIN["requires-python"]


def test_no_lock_file_names_a_distribution_of_the_checkout() -> None:
    for path in (ROOT / "requirements").rglob("*.*"):
        assert "frontdesk-testing" not in path.read_text("utf-8"), path


def test_every_old_name_is_an_alias() -> None:
    old = set(frontdesk.testing.__all__) - {"ScriptedChatClient"}
    # The number of names in 0.1. Names that are added have no alias.
    assert len(old) == 26
    assert old <= set(frontdesk_testing.__all__)
    for name in sorted(old):
        with pytest.warns(DeprecationWarning, match=f"Import {name} from frontdesk_testing") as warned:
            assert getattr(frontdesk.testing, name) is getattr(frontdesk_testing, name)
        assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"from frontdesk\.scripted"):
        assert frontdesk.testing.ScriptedChatClient is ScriptedChatClient
    with pytest.raises(AttributeError, match="nothing"):
        frontdesk.testing.nothing  # noqa: B018


def test_old_submodules_are_the_new_modules() -> None:
    code = """
import warnings
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    from frontdesk.testing.telegram import fake_telegram
    import frontdesk.testing.messages.platform.driver as driver
    from frontdesk.testing import strategies
import frontdesk_testing.messages.platform.driver, frontdesk_testing.strategies, frontdesk_testing.telegram
assert fake_telegram is frontdesk_testing.telegram.fake_telegram
assert driver is frontdesk_testing.messages.platform.driver
assert strategies is frontdesk_testing.strategies
assert {one.category for one in warned} == {DeprecationWarning}
assert {one.filename for one in warned} == {"<string>"}, warned
print(*(str(one.message) for one in warned), sep="\\n")
"""
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    assert "frontdesk.testing.telegram is deprecated. Import frontdesk_testing.telegram." in done.stdout


def test_an_old_submodule_that_is_missing_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"frontdesk\.testing\.nothing"):
        __import__("frontdesk.testing.nothing")


@pytest.mark.parametrize("module", ["telegram", "messages", "issuer"])
def test_old_modules_run_as_programs(module: str) -> None:
    done = run_python("-m", f"frontdesk.testing.{module}", "--help")
    assert done.returncode == 0, done.stderr
    assert f"python -m frontdesk_testing.{module}" in done.stdout


@pytest.mark.parametrize("statement", ["from frontdesk.testing import serving", "import frontdesk.testing.telegram"])
def test_old_names_without_the_kit_print_the_install_command(statement: str) -> None:
    done = run_without_kit(statement)
    assert done.returncode == 1
    assert 'pip install "frontdesk[testing]"' in done.stderr.splitlines()[-1]


def test_the_scripted_client_needs_no_kit() -> None:
    done = run_without_kit("from frontdesk.testing import ScriptedChatClient; print(ScriptedChatClient.__module__)")
    assert (done.returncode, done.stdout) == (0, "frontdesk.scripted\n"), done.stderr


def test_demo_telegram_without_the_kit_prints_the_install_command() -> None:
    done = run_without_kit("from frontdesk.cli import main; sys.exit(main(['demo', '--port', '0', '--telegram']))")
    assert done.returncode == 1
    assert done.stderr.startswith("frontdesk: --telegram needs the package frontdesk-testing: ")
    assert 'pip install "frontdesk[testing]"' in done.stderr


def test_a_generated_test_without_the_kit_prints_the_install_command(tmp_path: Path) -> None:
    done = run_python(
        "-m", "frontdesk.cli", "init", str(tmp_path / "p"), "--model", "openai", "--channels", "web,telegram"
    )
    assert done.returncode == 0, done.stderr
    code = f"sys.path.insert(0, {str(tmp_path / 'p')!r}); import test_host"
    done = run_without_kit(code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith('pip install "frontdesk[testing]"')
