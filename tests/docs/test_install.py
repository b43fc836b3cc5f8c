"""What the documents and messages say about installing is what pip can do."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from frontdesk.errors.base import install_hint
from tests.docs.pages import PAGES, ROOT, blocks, tables

PAGE = ROOT / "docs/guides/install.md"
CHANNEL_PAGE = ROOT / "docs/write-your-own/write-a-channel.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
WHEEL = f"{PROJECT['name']}-{PROJECT['version']}-py3-none-any.whl"
TESTING_WHEEL = f"frontdesk_testing-{PROJECT['version']}-py3-none-any.whl"
SOURCES = sorted((ROOT / "src/frontdesk").rglob("*.py"))


def _extras_in(text: str) -> set[str]:
    named = re.findall(r"(?:\.|\.whl|frontdesk)\[([a-z,]+)\]", text)
    return {extra for names in named for extra in names.split(",")}


def test_every_extra_is_documented() -> None:
    assert {name.strip("`") for name, _ in tables(PAGE)["Extras"]} == EXTRAS


def test_nobody_is_sent_to_an_index() -> None:
    # What was said in earlier versions stays as it was.
    for path in [*(page for page in PAGES if page.name != "CHANGELOG.md"), *SOURCES]:
        # The command that is printed without the testing kit. The README.md of a new project names the checkout.
        text = path.read_text("utf-8").replace('pip install "frontdesk[testing]"', "")
        assert not re.search(r"pip install [\"']?frontdesk", text), path
        assert path.suffix != ".md" or _extras_in(text) <= EXTRAS, path


def test_messages_name_extras_that_there_are() -> None:
    used = {extra for path in SOURCES for extra in re.findall(r"install_hint\('(\w+)'", path.read_text("utf-8"))}
    assert used <= EXTRAS
    assert used >= EXTRAS - {"otel"}
    assert install_hint("seal") == (
        'pip install ".[seal]" in a checkout of Frontdesk, or pip install "the-wheel.whl[seal]"'
    )
    assert install_hint("seal", "/bin/python").startswith('/bin/python -m pip install ".[seal]"')


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the wheels with the command of the page."""
    directory = tmp_path_factory.mktemp("dist")
    lines = [line for block in blocks("sh") if block.page == PAGE for line in block.text.splitlines()]
    (command,) = [line for line in lines if line.startswith("pip wheel ")]
    words = command.replace("--wheel-dir dist", f"--wheel-dir {directory}").split()[1:]
    # What builds it is here already: nothing is fetched.
    run_pip(*words, "--no-build-isolation")
    return {path.name: path for path in directory.iterdir()}


def run_pip(*words: str) -> None:
    options = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *words, *options], cwd=ROOT, check=True, capture_output=True)


def test_a_wheel_is_built_under_the_name_that_the_page_has(wheels: dict[str, Path]) -> None:
    assert WHEEL in PAGE.read_text("utf-8")
    assert set(wheels) == {WHEEL, TESTING_WHEEL}
    metadata = (
        zipfile.ZipFile(wheels[WHEEL]).read(f"{PROJECT['name']}-{PROJECT['version']}.dist-info/METADATA").decode()
    )
    assert set(re.findall(r"^Provides-Extra: (\w+)", metadata, re.MULTILINE)) == EXTRAS


def test_the_kit_is_in_its_own_wheel_only(wheels: dict[str, Path]) -> None:
    package = zipfile.ZipFile(wheels[WHEEL]).namelist()
    assert [name for name in package if "testing" in name] == ["frontdesk/testing/__init__.py"]
    kit = zipfile.ZipFile(wheels[TESTING_WHEEL]).namelist()
    assert {"frontdesk_testing/py.typed", "frontdesk_testing/telegram/schema/bot_api.json"} < set(kit)
    assert {name.split("/")[0] for name in kit} == {"frontdesk_testing", TESTING_WHEEL.split("-py3")[0] + ".dist-info"}


def fresh_python(home: Path, *wheels: Path) -> Path:
    """Make an environment in which only some wheels were installed, beside the dependencies that are here."""
    venv.create(home, symlinks=True)
    python = home / "bin/python"
    run_pip("--python", str(python), "install", "--no-deps", "--no-index", "--no-compile", *map(str, wheels))
    (site,) = home.glob("lib/python*/site-packages")
    # The .pth files of a directory that is named by one are not read, so that the checkout stays out.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    return python


IS_THE_WHEEL = """
import frontdesk
import frontdesk_testing


def test_the_package_is_that_of_the_wheel():
    assert "/fresh/" in frontdesk.__file__
    assert "/fresh/" in frontdesk_testing.__file__
"""
ASKED = "of_the_wheel or answered_once_and_in_order or word_with_the_id or arrives_once_after or has_signed"


def test_the_wheel_alone_prints_how_the_kit_is_installed(wheels: dict[str, Path], tmp_path: Path) -> None:
    python = fresh_python(tmp_path / "fresh", wheels[WHEEL])
    command = [str(python.parent / "frontdesk"), "demo", "--port", "0", "--telegram"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert 'pip install "frontdesk[testing]"' in done.stderr


def test_a_channel_of_one_s_own_passes_its_contract_with_the_wheels(wheels: dict[str, Path], tmp_path: Path) -> None:
    python = fresh_python(tmp_path / "fresh", *wheels.values())
    place = tmp_path / "theirs"
    place.mkdir()
    channel = next(block.text for block in blocks("python") if block.page == CHANNEL_PAGE)
    tests = next(block.text for block in blocks("py") if block.page == CHANNEL_PAGE and "ChatContract" in block.text)
    (place / "letterbox.py").write_text(channel, "utf-8")
    (place / "test_letterbox.py").write_text(tests + IS_THE_WHEEL, "utf-8")
    (place / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n", "utf-8")
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "pytest_asyncio.plugin",
        "-p",
        "no:cacheprovider",
        "-k",
        ASKED,
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    asked = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert asked.returncode == 0, asked.stdout
    assert "8 passed" in asked.stdout, asked.stdout
